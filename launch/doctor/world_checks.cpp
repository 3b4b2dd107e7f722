// world_checks: what the ranks of a job do together: the collectives of training, by the trainer's own communicators,
// and three steps of training, compared with CPU ranks.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/setup/run_spec.h"
#include "dist/health/hang_detector.h"
#include "dist/health/watchdog.h"
#include "dist/train/trainer.h"
#include "kernels/base/clock.h"
#include "launch/doctor/gpu_parts.h"

namespace pal::launch::detail {
namespace {

using dist::World;

// What rank r gives in round k: small integers, whose sum over ranks every type holds exactly, bfloat16 that of 85
// ranks.
at::Tensor given(int rank, int64_t round, int64_t count, const at::TensorOptions& options) {
  const bool narrow = options.dtype() == at::kBFloat16;
  const at::Tensor numbers = at::arange(count, options.dtype(at::kLong)).remainder(narrow ? 2 : 13);
  return numbers.add(narrow ? (rank + round) % 3 : rank + round % 5).to(options.dtype().toScalarType());
}
at::Tensor sum_of(int ranks, int64_t round, int64_t count, const at::TensorOptions& options) {
  at::Tensor sum = given(0, round, count, options).to(at::kDouble);
  for (int r = 1; r < ranks; ++r) sum = sum + given(r, round, count, options).to(at::kDouble);
  return sum;
}

// Every collective of a communicator, on tensors that the device has only just made, read right after it. Several
// rounds with other numbers: what is not waited for may be right once, by luck.
struct Collectives {
  comm::Comm& comm;
  const char* name;
  at::Device device;
  Wrong& wrong;
  int64_t compared = 0;

  int rank() const { return comm.rank(); }
  int size() const { return comm.size(); }

  void expect(const char* collective, const at::Tensor& got, const at::Tensor& expected, at::ScalarType type) {
    const at::Tensor host = got.cpu();
    ++compared;
    if (host.sizes() == expected.sizes() && host.to(at::kDouble).equal(expected.to(at::kDouble))) return;
    wrong.add(fmt::format("{} of {} gives a wrong result on communicator {}", collective, c10::toString(type), name));
  }

  void round(int64_t round, at::ScalarType type) {
    const at::TensorOptions host(type), there = host.device(device);
    const int64_t count = 257 + 1000 * round;
    std::vector<int64_t> rows;
    std::vector<at::Tensor> all;
    for (int r = 0; r < size(); ++r) {
      rows.push_back(3 + r);
      all.push_back(given(r, round, 3 + r, host));
    }
    const at::Tensor sums = sum_of(size(), round, count, host);
    const auto mine = [&](int64_t n) { return given(rank(), round, n, there); };

    const at::Tensor reduced = mine(count);
    comm.all_reduce(reduced, comm::ReduceOp::sum);
    expect("all_reduce", reduced, sums, type);
    const at::Tensor most = mine(count);
    comm.all_reduce(most, comm::ReduceOp::max);
    expect("all_reduce (max)", most, given(size() - 1, round, count, host), type);
    expect("all_gather_v", comm.all_gather_v(mine(3 + rank()), rows), at::cat(all), type);
    const at::Tensor gathered = comm.gather_v(mine(3 + rank()), rows, 0);
    if (rank() == 0) expect("gather_v", gathered, at::cat(all), type);
    const at::Tensor sent = mine(count);
    comm.broadcast(sent, size() - 1);
    expect("broadcast", sent, given(size() - 1, round, count, host), type);
    int64_t total = 0, before = 0;
    for (int r = 0; r < size(); ++r) {
      before += r < rank() ? rows[static_cast<size_t>(r)] : 0;
      total += rows[static_cast<size_t>(r)];
    }
    expect("reduce_scatter", comm.reduce_scatter(mine(total), rows),
           sum_of(size(), round, total, host).narrow(0, before, rows[static_cast<size_t>(rank())]), type);
    const std::vector<int64_t> two(static_cast<size_t>(size()), 2);
    std::vector<at::Tensor> pieces;
    for (int r = 0; r < size(); ++r) pieces.push_back(given(r, round, 2 * size(), host).narrow(0, 2 * rank(), 2));
    expect("all_to_all_v", comm.all_to_all_v(mine(2 * size()), two, two), at::cat(pieces), type);
  }

  // As gradients are sent: several are under way at once, and the device computes meanwhile.
  void buckets(int64_t round, at::ScalarType type) {
    auto* const able = dynamic_cast<dist::DeviceComm*>(&comm);
    if (able == nullptr || !able->enqueues()) return;
    const at::TensorOptions host(type), there = host.device(device);
    std::vector<at::Tensor> sent;
    for (int64_t b = 0; b < 4; ++b) {
      sent.push_back(given(rank(), round + b, 100 + 900 * b, there));
      able->begin_all_reduce(sent.back());
    }
    at::Tensor other = given(rank(), round, 5000, there);
    for (int k = 0; k < 4; ++k) other = other.mul(1);
    able->join();
    for (int64_t b = 0; b < 4; ++b)
      expect("begin_all_reduce", sent[static_cast<size_t>(b)], sum_of(size(), round + b, 100 + 900 * b, host), type);
    able->overlap();
  }

  void run() {
    for (int64_t k = 0; k < 6; ++k) {
      round(k, k % 3 == 0 ? at::kFloat : k % 3 == 1 ? at::kDouble : at::kLong);
      buckets(k, k % 3 == 2 ? at::kBFloat16 : at::kFloat);
    }
  }
};

// As in backward: buckets are under way while batch norm sums over ranks, or over the ranks of a host.
void check_mixed(World& world, at::Device device, Wrong& wrong) {
  auto& gradients = dynamic_cast<dist::DeviceComm&>(world.gradients());
  const at::TensorOptions host(at::kFloat), there = host.device(device);
  for (int64_t round = 0; round < 4; ++round) {
    const at::Tensor bucket = given(world.rank(), round, 3000, there);
    gradients.begin_all_reduce(bucket);
    const at::Tensor sums = given(world.rank(), round + 1, 64, there);
    world.compute().all_reduce(sums, comm::ReduceOp::sum);
    const at::Tensor of_host = given(world.node().rank(), round + 2, 32, there);
    world.node().all_reduce(of_host, comm::ReduceOp::sum);
    gradients.join();
    const auto expect = [&](const char* what, const at::Tensor& got, int ranks, int64_t k) {
      if (!got.cpu().to(at::kDouble).equal(sum_of(ranks, k, got.numel(), host)))
        wrong.add(fmt::format("the sum of {} is wrong while other sums are under way", what));
    };
    expect("a bucket", bucket, world.size(), round);
    expect("statistics", sums, world.size(), round + 1);
    expect("the ranks of a host", of_host, world.node().size(), round + 2);
    gradients.overlap();
  }
}

constexpr double kPatience = 60;  // seconds: for a thread that looks every 50 ms

// One rank comes late to a collective. The others' guard threads must see that they wait, and so must a thread that has
// chosen no device, as that of the hang detector, without a call of CUDA.
void check_late_rank(World& world, int late, at::Device device, Wrong& wrong) {
  const dist::FlightRecorder* log = nullptr;
  for (const dist::FlightRecorder* recorder : world.flight_recorders()) {
    if (recorder->name() == "device") log = recorder;
  }
  const at::Tensor t = at::full({5}, world.rank() + 1.0, at::TensorOptions(at::kFloat).device(device));
  world.compute().all_reduce(at::full({1}, 1.0, t.options()), comm::ReduceOp::sum);  // connects the ranks
  world.control().barrier();
  if (world.rank() != late) {
    world.compute().all_reduce(t, comm::ReduceOp::sum);
    std::atomic<bool> seen{false};
    std::thread([&] {
      for (const auto begin = Clock::now(); !seen && seconds_since(begin) < kPatience;) {
        seen = log->newest().pending;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }).join();
    if (!seen) wrong.add(fmt::format("a collective that waited {} s for rank {} was not noticed", kPatience, late));
  }
  world.control().barrier();
  if (world.rank() == late) world.compute().all_reduce(t, comm::ReduceOp::sum);
  const double expected = world.size() * (world.size() + 1) / 2.0;
  if (t.cpu()[4].item<double>() != expected)
    wrong.add(fmt::format("an all_reduce to which rank {} came late gives a wrong result", late));
}

constexpr double kAllowed = 1e-4;  // relative, of a loss, with float32 products that are not rounded to TF32

setup::RunSpec small_run(const std::string& folder, int ranks) {
  const int batch = std::max(13, 2 * ranks + 1);
  return setup::make_run_spec(config::Config::defaults(
      {"data.train=" + folder + "/train.h5", "data.threads=2", "data.memory_mb=64", "model.backbone=convnet",
       "model.widths=[6, 8]", "model.projector=[16, 8]", "graph.kind=mixed", "graph.labeled_fraction=0.5",
       fmt::format("train.global_batch={}", batch), "train.steps=3", "train.seed=3", "train.threads=1",
       "train.bucket_mb=0.001", "optim.kind=sgd", "optim.lr=0.05", "checkpoint.every=1000000", "log.every=1",
       "train.hang_seconds=120"}));
}

std::vector<double> train(World& world, const setup::RunSpec& spec, const std::string& run_dir, at::Device device) {
  dist::Watchdog watchdog(world, run_dir,
                          {spec.train.heartbeat_seconds, spec.train.stall_seconds, spec.train.hang_seconds});
  dist::RunControl control;
  control.watchdog = &watchdog;
  control.device = device;
  std::vector<double> losses;
  {
    dist::Trainer trainer(spec, world, run_dir, dist::Beginning(dist::Resume::automatic), control);
    while (!trainer.done()) losses.push_back(trainer.step().loss);
    world.control().barrier();
  }
  watchdog.stop();
  return losses;
}

}  // namespace

Checked check_collectives(World& world, int device) {
  const at::Device here(at::kCUDA, static_cast<c10::DeviceIndex>(device));
  if (world.size() == 1) return {true, "one rank: its collectives send nothing", {}};
  Wrong wrong;
  check_mixed(world, here, wrong);
  int64_t compared = 0;
  const struct {
    comm::Comm& comm;
    const char* name;
  } all[] = {{world.compute(), "compute"}, {world.gradients(), "gradients"}, {world.node(), "node"}};
  for (const auto& c : all) {
    Collectives collectives{c.comm, c.name, here, wrong};
    collectives.run();
    compared += collectives.compared;
  }
  check_late_rank(world, 0, here, wrong);
  if (world.size() > 1) check_late_rank(world, world.size() - 1, here, wrong);
  return wrong.result(
      fmt::format("{} results of {} ranks are right, and a late rank is noticed", compared, world.size()));
}

Checked check_training(World& world, int device, const std::string& folder) {
  if (world.rank() == 0) write_small_set(folder + "/train.h5", SmallSet::raw, 4 * std::max(13, 2 * world.size() + 1));
  world.control().barrier();
  const setup::RunSpec spec = small_run(folder, world.size());
  const bool before = at::globalContext().allowTF32CuDNN();
  at::globalContext().setAllowTF32CuDNN(false);
  const std::vector<double> got =
      train(world, spec, folder + "/cuda", at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device)));
  const std::vector<double> expected = train(world, spec, folder + "/cpu", at::kCPU);
  at::globalContext().setAllowTF32CuDNN(before);
  Wrong wrong;
  double most = 0;
  for (size_t step = 0; step < expected.size(); ++step) {
    const double off = std::abs(got[step] - expected[step]) / std::max(1.0, std::abs(expected[step]));
    wrong.compare(fmt::format("the loss of step {}, {:.6g} and not {:.6g},", step + 1, got[step], expected[step]), off,
                  kAllowed);
    most = std::max(most, off);
  }
  return wrong.result(
      fmt::format("losses of {} steps of a small net on {} device(s) are within {:.1g} of CPU ranks "
                  "(allowed: {:.1g})",
                  expected.size(), world.size(), most, kAllowed));
}

}  // namespace pal::launch::detail
