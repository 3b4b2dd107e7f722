#include <ATen/ops/zeros.h>

#include "core/loss/criterion.h"
#include "dist/train/run_observers.h"
#include "kernels/base/clock.h"
#include "kernels/base/error.h"

#ifdef PAL_WITH_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace pal::dist {
namespace {

// Of the rank with the most, in bytes: tensors at their peak, and what LibTorch took from the device for them.
struct DeviceMemory {
  int64_t peak = 0, reserved = 0;
};

// Collective. Zeros where ranks compute on the CPU.
DeviceMemory device_memory(c10::Device device, comm::Comm& comm) {
  if (!device.is_cuda()) return {};
  const at::Tensor most = at::zeros({2}, at::kLong);
  auto* const bytes = most.data_ptr<int64_t>();
#ifdef PAL_WITH_CUDA
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  bytes[0] = stats.allocated_bytes[kAll].peak;
  bytes[1] = stats.reserved_bytes[kAll].peak;
#endif
  comm.all_reduce(most, comm::ReduceOp::max);
  return {bytes[0], bytes[1]};
}

}  // namespace

void StepMetrics::after(const FinishedStep& done) {
  StepReport& report = done.report;
  const int64_t step = done.steps_done;
  const bool last = step >= of_.last_step;
  const bool looks = of_.online && !report.skipped && (step % of_.spec.eval.every == 0 || last);
  if (step % of_.spec.log.every != 0 && !last && !report.skipped && !looks) return;
  const eval::Diagnostics d = eval::diagnose(done.z, done.batch, of_.world.compute());
  if (looks && of_.watchdog) of_.watchdog->set_phase(Phase::long_operation);
  if (looks) of_.share_statistics();
  const auto seen =
      looks ? of_.online->look(of_.encoder, of_.world.compute()) : std::vector<std::pair<std::string, double>>{};
  if (of_.rounds && !seen.empty()) of_.rounds->saw_figure(step, seen.front().second);
  const DeviceMemory memory = device_memory(done.z.device(), of_.world.control());
  if (!of_.writer) return;
  record::StepMetrics m;
  m.step = step;
  m.epoch = static_cast<double>(step) / static_cast<double>(of_.steps_per_epoch);
  m.loss = report.loss;
  m.terms = report.terms;
  m.lr = report.lr;
  m.images_per_s = report.images_per_s;
  m.seconds = seconds_since(of_.start);
  m.graph_version = of_.store.version();
  m.queries = of_.rounds ? of_.rounds->questions() : 0;
  m.cost = of_.rounds ? of_.rounds->cost() : 0;
  m.effective_rank = d.effective_rank;
  m.sync_ms = 1000 * of_.grads.time().seconds;
  m.sync_hidden = of_.grads.time().hidden();
  m.diagnostics = {{"column_abs_mean", d.mean_abs_mean},
                   {"column_std", d.mean_std},
                   {"column_std_min", d.min_std},
                   {"unit_std", d.unit_std},
                   {"pairs_positive", d.positive_share},
                   {"pairs_negative", d.negative_share},
                   {"pairs_unknown", d.unknown_share},
                   {"rows_with_partner", d.partnered_share},
                   {"loss_bytes", static_cast<double>(report.loss_bytes)}};
  if (memory.peak > 0) {
    m.diagnostics.emplace_back("device_peak_mb", 1e-6 * static_cast<double>(memory.peak));
    m.diagnostics.emplace_back("device_reserved_mb", 1e-6 * static_cast<double>(memory.reserved));
  }
  if (of_.rounds) {
    const RoundTimes& t = of_.rounds->times();
    m.diagnostics.insert(
        m.diagnostics.end(),
        {{"round_embed_ms", t.embed_ms}, {"round_wait_ms", t.wait_ms}, {"round_choose_ms", t.choose_ms}});
  }
  m.diagnostics.insert(m.diagnostics.end(), seen.begin(), seen.end());
  if (of_.spec.data.decoder == data::Decoder::nvjpeg)
    m.diagnostics.emplace_back("left_to_libjpeg", static_cast<double>(of_.loader.report().left_to_libjpeg));
  if (!report.skipped) m.warning = collapse_.check(d, done.z.size(1));
  if (!m.warning.empty()) report.warning += (report.warning.empty() ? "" : "; ") + m.warning;
  try {
    of_.writer->write(m);
  } catch (const Error& e) {  // a full disk is no reason to stop
    if (!failed_) of_.warn(std::string(e.what()) + "; training continues without its lines");
    failed_ = true;
  }
}

}  // namespace pal::dist
