// finetune: trains a linear classifier on the encoder's features, with a frozen encoder (linear evaluation) or jointly.
//
// SGD with a cosine schedule on cropped and flipped views, with all labels or a share of them.
// Order:  the loss is the mean over the GLOBAL batch, gradients are summed in fp64 and each sample occurs once per
//         epoch, so the result does not depend on the number of ranks (see core/model/batch_norm.h for the statistics).
// The encoder's device computes; the views are made as in training.
// Collective: finetune().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/comm/comm.h"
#include "core/data/dataset.h"
#include "core/data/loader/renderer.h"
#include "core/eval/scores.h"

namespace pal::model {
class Encoder;
}

namespace pal::eval {

enum class TrainedPart { head, all };

struct FinetuneOptions {
  TrainedPart part = TrainedPart::head;
  double fraction = 1;  // of the labels of each class, at least one
  int64_t epochs = 100;
  int64_t global_batch = 256;
  double lr = 0.3;           // of the head, per 256 samples
  double encoder_lr = 0.03;  // of the encoder, if it is trained
  double weight_decay = 0;
  double momentum = 0.9;
  uint64_t seed = 0;
  kernels::AugmentOptions augment;  // size, channels, mean and std of the views
  data::Decode decode = data::Decode::scaled;
  at::ScalarType dtype = at::kFloat;
  int threads = 1;
  std::function<void(int64_t step, int64_t steps, double loss)> progress;  // may be empty
};

// Trains on `train` and evaluates on the center views of `test`. TrainedPart::all changes the encoder.
Accuracy finetune(model::Encoder& encoder, std::shared_ptr<const data::Dataset> train, const data::Dataset& test,
                  const FinetuneOptions& options, comm::Comm& comm);

// The labeled samples for training, ascending: a share of each class, drawn by the seed.
std::vector<int64_t> labeled_share(const std::vector<int64_t>& labels, int64_t classes, double fraction, uint64_t seed);

}  // namespace pal::eval
