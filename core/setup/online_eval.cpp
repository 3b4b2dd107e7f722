#include "core/setup/online_eval.h"

#include <algorithm>

#include "core/data/loader/augment_spec.h"
#include "core/eval/embed.h"
#include "core/eval/knn.h"
#include "core/eval/representation.h"
#include "core/model/encoder.h"
#include "kernels/base/error.h"

namespace pal::setup {
namespace {

constexpr double kOnlineRidge = 1e-2;

// Up to `count` of the labeled ones among `from`, spread evenly.
std::vector<int64_t> spread(const std::vector<int64_t>& from, const std::vector<int64_t>& labels, int64_t count) {
  std::vector<int64_t> known;
  for (const int64_t s : from) {
    if (!labels.empty() && labels[static_cast<size_t>(s)] >= 0) known.push_back(s);
  }
  const auto n = static_cast<int64_t>(known.size());
  std::vector<int64_t> kept;
  for (int64_t k = 0; k < std::min(count, n); ++k)
    kept.push_back(known[static_cast<size_t>(k * n / std::min(count, n))]);
  return kept;
}

std::vector<int64_t> pick(const std::vector<int64_t>& values, const std::vector<int64_t>& at) {
  std::vector<int64_t> picked;
  for (const int64_t i : at) picked.push_back(values[static_cast<size_t>(i)]);
  return picked;
}

std::vector<int64_t> all_of(const data::Dataset& data) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(i);
  return all;
}

}  // namespace

OnlineEval::OnlineEval(const RunSpec& spec, std::shared_ptr<const data::Dataset> train,
                       const std::vector<int64_t>& subset, int threads)
    : augment_(spec.augment), dtype_(spec.train.dtype), threads_(threads), train_(std::move(train)) {
  PAL_CHECK(!spec.data.test.empty(), "eval.every asks for evaluation while training, but data.test is empty", "",
            "set data.test, or eval.every=0");
  test_ = data::Dataset::open(spec.data.test);
  PAL_DATA_CHECK(train_->classes() == test_->classes(), "training and test set have different classes",
                 std::to_string(train_->classes().size()) + " and " + std::to_string(test_->classes().size()),
                 "give the test set that belongs to it");
  train_samples_ = spread(subset, train_->labels(), spec.eval.train_samples);
  test_samples_ = spread(all_of(*test_), test_->labels(), spec.eval.test_samples);
  PAL_DATA_CHECK(!train_samples_.empty() && !test_samples_.empty(),
                 "eval.every asks for evaluation, but {} has no labels",
                 train_samples_.empty() ? "data.train" : "data.test", "import it with labels, or set eval.every=0");
  train_labels_ = pick(train_->labels(), train_samples_);
  test_labels_ = pick(test_->labels(), test_samples_);
}

std::vector<std::pair<std::string, double>> OnlineEval::look(model::Encoder& encoder, comm::Comm& comm) const {
  eval::EmbedOptions options;
  options.augment = data::augment_options(augment_, *train_);
  options.dtype = dtype_;
  options.threads = threads_;
  const at::Tensor a = eval::embed(encoder, *train_, train_samples_, options, comm),
                   b = eval::embed(encoder, *test_, test_samples_, options, comm);
  const auto classes = static_cast<int64_t>(train_->classes().size());
  const eval::Accuracy near =
      eval::knn_sweep(a, train_labels_, b, test_labels_, classes, {eval::KnnOptions{}}, comm).front();
  std::vector<std::pair<std::string, double>> found = {{"eval_knn_top1", near.top1}};
  if (comm.rank() != 0) return found;
  eval::ProbeOptions ridge;
  ridge.method = eval::ProbeMethod::ridge;
  ridge.ridge = kOnlineRidge;
  found.emplace_back("eval_linear_top1", eval::linear_probe(a, train_labels_, b, test_labels_, classes, ridge).top1);
  found.emplace_back("eval_rank", eval::feature_rank(b));
  found.emplace_back("eval_uniformity", eval::uniformity(b));
  return found;
}

std::unique_ptr<OnlineEval> make_online_eval(const RunSpec& spec, std::shared_ptr<const data::Dataset> train,
                                             const std::vector<int64_t>& subset, int threads) {
  return spec.eval.every > 0 ? std::make_unique<OnlineEval>(spec, std::move(train), subset, threads) : nullptr;
}

}  // namespace pal::setup
