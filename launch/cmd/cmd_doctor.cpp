// cmd_doctor: `pal doctor`: checks whether this machine can train, and prints what to do if not.
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/comm/comm.h"
#include "core/data/image/nvjpeg_decoder.h"
#include "core/io/files.h"
#include "dist/comm/world.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/doctor/findings.h"
#include "launch/doctor/gpu_parts.h"
#include "launch/doctor/nccl_links.h"
#include "launch/process/interleaved.h"
#include "launch/report/html.h"
#include "launch/run/output_file.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

using Rows = std::vector<std::vector<std::string>>;

struct DoctorOptions {
  GpuOptions gpu;
  LinkOptions links;
  int ranks = 0;  // 0: one per device
  std::string report;
};

// All that was found, for the terminal and the page.
struct Diagnosis {
  dist::CudaState cuda;
  std::vector<Finding> findings;
  std::vector<GpuPart> parts;  // empty: no GPU was tested
  bool links_right = true;
  Rows links;  // of all-reduce; empty: not measured
  bool fit() const { return is_healthy(findings) && (!cuda.reason.empty() || (all_passed(parts) && links_right)); }
};

std::string verdict(const Diagnosis& d) {
  if (!d.cuda.reason.empty()) {
    return d.fit() ? "this machine can train on CPUs; no GPU was tested." : "something is missing or wrong, see above.";
  }
  const int devices = d.cuda.devices;
  if (d.fit()) return fmt::format("fit: this machine can train on {} GPU{}.", devices, devices == 1 ? "" : "s");
  std::string failed;
  for (const GpuPart& p : d.parts) {
    if (p.state == GpuPart::State::passed || p.state == GpuPart::State::not_run) continue;
    failed += fmt::format("{}{} on host {}, {}", failed.empty() ? "" : "; ", p.part, p.host, p.device);
  }
  if (!d.links_right) failed += std::string(failed.empty() ? "" : "; ") + "NCCL's all-reduce";
  if (failed.empty()) failed = "something is missing";
  return "unfit: " + failed + "; see above. Do not train on these GPUs before it is repaired.";
}

// ---- the page ----

Rows versions(const dist::CudaState& cuda) {
  utsname system{};
  uname(&system);
  std::ifstream driver("/proc/driver/nvidia/version");
  std::string module;
  std::getline(driver, module);
  const auto or_none = [](const std::string& text) { return text.empty() ? std::string("none") : text; };
  return {{"what", "version"},
          {"pal", PAL_VERSION},
          {"LibTorch", TORCH_VERSION},
          {"CUDA runtime", or_none(cuda.runtime)},
          {"newest CUDA of the driver", or_none(cuda.driver)},
          {"driver", or_none(module)},
          {"NCCL", or_none(cuda.nccl)},
          {"nvJPEG", or_none(data::nvjpeg_state().version)},
          {"MPI", dist::mpi_library()},
          {"system", std::string(system.sysname) + " " + system.release + " " + system.machine}};
}

// Of the environment only these: other variables may hold secrets.
Rows settings() {
  Rows rows = {{"variable", "value"}};
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG", "NCCL_ALGO", "NCCL_DEBUG",
                           "NCCL_IB_DISABLE", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_NET_GDR_LEVEL", "NCCL_P2P_DISABLE",
                           "NCCL_PROTO", "NCCL_SHM_DISABLE", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* value = std::getenv(name);
    rows.push_back({name, value == nullptr ? "not set" : value});
  }
  return rows;
}

std::string page(const Diagnosis& d) {
  const auto table = [](const char* id, const char* title, const Rows& rows) {
    return rows.size() < 2 ? std::string() : html_section(id, title, html_table(rows));
  };
  std::string body = html_section("result", "Result", "<p>" + html_escaped(verdict(d)) + "</p>");
  body += table("machine", "This machine", finding_rows(d.findings));
  body += table("versions", "Versions", versions(d.cuda));
  if (d.cuda.reason.empty()) {
    body += table("devices", "Devices", visible_devices());
    if (const std::string topology = driver_topology(); !topology.empty())
      body += html_section("topology", "Topology", "<pre>" + html_escaped(topology) + "</pre>");
    body += table("parts", "Run on the devices", gpu_part_rows(d.parts));
    for (const GpuPart& p : d.parts) {
      if (p.rows.size() > 1 && p.rank == 0)
        body += table("details", ("Details of " + p.part + ", " + p.device).c_str(), p.rows);
    }
    body += table("links", "All-reduce between the devices", d.links);
  }
  return html_page("pal doctor", body + table("settings", "Settings of the environment", settings()));
}

// ---- what runs ----

Rows link_rows(const std::string& json) {
  Rows rows = {{"bytes", "ms", "bus GB/s", "wrong elements"}};
  std::ifstream in(json);
  const nlohmann::json all = nlohmann::json::parse(in, nullptr, false);
  if (!all.is_object()) return {};
  for (const auto& r : all["results"]) {
    rows.push_back({r["params"]["bytes"].dump(), fmt::format("{:.4f}", r["ours_ms"].get<double>()),
                    fmt::format("{:.2f}", r["busbw_gbs"].get<double>()), r["wrong"].dump()});
  }
  return rows;
}

void print_parts(const std::vector<GpuPart>& parts) {
  fmt::print("\nRun on the devices:\n{}", format_table(gpu_part_rows(parts)));
  for (const GpuPart& p : parts) {
    if (p.rank == 0 && p.rows.size() > 1) fmt::print("\n{} on {}:\n{}", p.part, p.device, format_table(p.rows));
  }
  std::fflush(stdout);
}

// On this machine: one job after the other, each with a rank per device. This process opens no device itself, because
// in exclusive mode a device takes one process.
void examine_devices(Diagnosis& d, const std::string& program, DoctorOptions options) {
  if (!d.cuda.reason.empty()) {
    fmt::print("\nGPU kernels were not compared with the CPU kernels: {}.\n", d.cuda.reason);
    measure_links(d.cuda, program, options.links);
    return;
  }
  const BenchFolder folder;
  options.gpu.folder = folder.path;
  const int ranks = options.ranks > 0 ? options.ranks : d.cuda.devices;
  fmt::print("\na job of {} rank{}, one per device\n", ranks, ranks == 1 ? "" : "s");
  std::fflush(stdout);
  const int code = start_gpu_parts(program, ranks, options.gpu);
  d.parts = read_gpu_parts(folder.path, ranks);
  if (code != static_cast<int>(Exit::ok) && all_passed(d.parts)) {
    GpuPart end = d.parts.front();
    end.part = "end";
    end.state = GpuPart::State::ended;
    end.found = fmt::format("the job ended with exit code {} after its last part", code);
    d.parts.push_back(end);
  }
  print_parts(d.parts);
  if (options.links.json.empty()) options.links.json = folder.path + "/links.json";
  d.links_right = measure_links(d.cuda, program, options.links) == static_cast<int>(Exit::ok);
  d.links = link_rows(options.links.json);
}

// The text of rank 0 on every rank.
std::string from_rank0(comm::Comm& comm, const std::string& text) {
  const at::Tensor bytes = at::zeros({4096}, at::kByte);
  std::copy_n(text.begin(), std::min<size_t>(text.size(), 4095), bytes.data_ptr<uint8_t>());
  comm.broadcast(bytes, 0);
  return reinterpret_cast<const char*>(bytes.data_ptr<uint8_t>());
}

// Collective: under mpirun or srun this process is a rank, and the job's ranks are those that are tested. Their files
// are in the current folder, which hosts share.
void examine_ranks(Diagnosis& d, dist::World& world, DoctorOptions options) {
  std::string folder = "pal-doctor-XXXXXX";
  if (world.rank() == 0) {
    PAL_CHECK(mkdtemp(folder.data()) != nullptr, "no folder can be made here", std::filesystem::current_path().string(),
              "change to a folder that all hosts share and you may write to");
  }
  options.gpu.folder = from_rank0(world.control(), folder);
  run_gpu_parts(world, options.gpu);
  if (world.rank() == 0) {
    d.parts = read_gpu_parts(options.gpu.folder, world.size());
    print_parts(d.parts);
    std::filesystem::remove_all(options.gpu.folder);
  }
}

int be_a_rank(Context& context) {
  dist::World& world = context.start_world();
  world.control().barrier();
  PAL_CHECK(world.size() == 2, "the job has {} ranks instead of 2", world.size(),
            "mpirun belongs to another MPI than this program");
  return static_cast<int>(Exit::ok);
}

int diagnose(const DoctorOptions& options, Context& context) {
  std::optional<OutputFile> report;
  const bool is_rank = dist::started_as_rank();
  const bool speaks = !is_rank || context.start_world().rank() == 0;
  if (speaks && !options.report.empty()) report.emplace(options.report);
  if (speaks) fmt::print("checking this machine{}\n", is_rank ? "" : ", and a job of two ranks");
  std::fflush(stdout);
  Diagnosis d;
  d.cuda = dist::cuda_state();
  d.findings = check_machine(context, d.cuda);
  if (speaks) fmt::print("{}", format_table(finding_rows(d.findings)));
  std::fflush(stdout);
  if (is_rank && d.cuda.reason.empty()) {
    examine_ranks(d, *context.world, options);
  } else if (speaks) {
    examine_devices(d, context.program, options);
  }
  if (!speaks) return static_cast<int>(Exit::ok);
  fmt::print("\nResult: {}\n", verdict(d));
  if (report) {
    report->write(page(d));
    fmt::print("wrote {}: what was checked, versions, devices and times; it holds the name of this host\n",
               options.report);
  }
  return static_cast<int>(d.fit() ? Exit::ok : Exit::check_failed);
}

}  // namespace

int cmd_doctor(const std::vector<std::string>& args, Context& context) {
  CLI::App app("Checks whether this machine can train, and prints what is missing and what to do.", "pal doctor");
  DoctorOptions options;
  bool rank = false, link_rank = false, gpu_rank = false;
  app.add_option("--report", options.report, "writes a page to send: one HTML file with all that was found");
  app.add_option("--np", options.ranks, "ranks on this machine's GPUs (default: one per GPU)")
      ->check(CLI::Range(1, 64));
  app.add_flag("--quick", options.gpu.quick, "small sizes: whether results are right, and no speed");
  app.add_flag("--rank", rank, "")->group("");  // how the doctor starts itself under mpirun
  app.add_flag("--link-rank", link_rank, "")->group("");
  app.add_flag("--gpu-rank", gpu_rank, "")->group("");
  app.add_option("--folder", options.gpu.folder, "")->group("");
  app.add_option("--most-bytes", options.links.most_bytes, "")->group("");
  app.add_option("--repeats", options.links.repeats, "")->group("");
  app.add_option("--json", options.links.json, "")->group("");
  app.footer(
      "On a machine with GPUs it runs on every one of them: each kernel and LibTorch's operators against the CPU,\n"
      "views made on the device, NCCL through the trainer's communicators, and three steps of training beside CPU\n"
      "ranks. Then it measures NCCL's all-reduce between them. The result is fit or unfit (pal help doctor).\n"
      "Exit code 1 when something that training needs is missing, or a result is wrong.\n"
      "Examples:\n  pal doctor\n  pal doctor --quick --report doctor.html\n"
      "  srun --gpus-per-node=8 --gpu-bind=none pal doctor      all ranks of a job");
  if (const int code = parse_arguments(app, args); code >= 0) return code;
  if (rank) return be_a_rank(context);
  if (link_rank) return be_a_link_rank(context.start_world(), options.links);
  if (gpu_rank) {
    run_gpu_parts(context.start_world(), options.gpu);
    return static_cast<int>(Exit::ok);
  }
  if (options.gpu.quick && options.links.repeats == LinkOptions{}.repeats) {
    options.links.most_bytes = std::min<int64_t>(options.links.most_bytes, 1 << 20);
    options.links.repeats = 2;
  }
  return diagnose(options, context);
}

}  // namespace pal::launch
