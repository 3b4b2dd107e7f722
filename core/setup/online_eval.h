// online_eval: measures while training how well the encoder separates the classes: kNN and a ridge probe on samples.
//
// Every eval.every steps eval.train_samples of the samples trained on and eval.test_samples of data.test are embedded
// in evaluation mode, by all ranks; no gradient reaches the encoder and no label its loss. The same samples each time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/comm/comm.h"
#include "core/data/dataset.h"
#include "core/setup/run_spec.h"

namespace pal::model {
class Encoder;
}

namespace pal::setup {

class OnlineEval {
 public:
  // Throws Error (usage or data) without data.test, or without labels.
  OnlineEval(const RunSpec& spec, std::shared_ptr<const data::Dataset> train, const std::vector<int64_t>& subset,
             int threads);

  // Collective. By name: eval_knn_top1, eval_linear_top1, eval_rank, eval_uniformity; complete on rank 0.
  std::vector<std::pair<std::string, double>> look(model::Encoder& encoder, comm::Comm& comm) const;

 private:
  const data::AugmentSpec augment_;
  const at::ScalarType dtype_;
  const int threads_;
  std::shared_ptr<const data::Dataset> train_, test_;
  std::vector<int64_t> train_samples_, test_samples_;
  std::vector<int64_t> train_labels_, test_labels_;
};

// Null when eval.every is 0.
std::unique_ptr<OnlineEval> make_online_eval(const RunSpec& spec, std::shared_ptr<const data::Dataset> train,
                                             const std::vector<int64_t>& subset, int threads);

}  // namespace pal::setup
