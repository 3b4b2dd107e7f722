#include "dist/train/run_observers.h"

#include "core/model/encoder.h"
#include "core/model/state.h"
#include "dist/health/consistency.h"

namespace pal::dist {

void FaultObserver::before(int64_t step) { faults_.before_step(step, model::model_state(encoder_)); }

void FaultObserver::on_gradient(int64_t step, const at::Tensor& dz) { faults_.poison(dz, step); }

void ParameterObserver::after(const FinishedStep& done) {
  if (done.steps_done % every_ == 0) check_same_parameters(model::trainable(encoder_), done.steps_done, comm_);
}

void CheckpointObserver::after(const FinishedStep& done) {
  if (done.steps_done % every_ == 0 && !done.report.give_up) save_();
}

}  // namespace pal::dist
