#include "core/oracle/labeler.h"

#include <string>
#include <utility>

#include "core/config/config.h"
#include "kernels/base/error.h"
#include "kernels/base/philox.h"

namespace pal {
namespace {

class Simulated final : public Labeler {
 public:
  Simulated(std::vector<int64_t> labels, const SimulatedOptions& options) : labels_(std::move(labels)), options_(options) {
    PAL_DATA_CHECK(!labels_.empty(), "labels for oracle.labeler=labels", 0, "use a data set with labels");
    PAL_CHECK(options.noise >= 0 && options.noise <= 1, "oracle.noise", options.noise, "give a number from 0 to 1");
  }

  std::string name() const override { return "labels"; }

  std::vector<Answer> answer(const Query& query, int64_t vote) const override {
    std::vector<Answer> answers;
    if (vote > 0) return answers;
    for (int64_t member : query.members) {
      answers.push_back({query.id, query.template_sample, member, verdict(query, member), "labels", 0, options_.cost});
    }
    return answers;
  }

 private:
  Verdict verdict(const Query& query, int64_t member) const {
    const int64_t a = label(query.template_sample), b = label(member);
    if (a < 0 || b < 0) return Verdict::unsure;
    Random random(options_.seed, Purpose::noise, static_cast<uint64_t>(query.id), static_cast<uint64_t>(member));
    const bool flipped = random.next_double() < options_.noise;
    return (a == b) != flipped ? Verdict::yes : Verdict::no;
  }
  int64_t label(int64_t sample) const {
    PAL_DATA_CHECK(sample >= 0 && sample < static_cast<int64_t>(labels_.size()), "sample of a query", sample,
                   "samples are 0 to " + std::to_string(labels_.size() - 1));
    return labels_[sample];
  }

  const std::vector<int64_t> labels_;
  const SimulatedOptions options_;
};

}  // namespace

std::unique_ptr<Labeler> make_simulated_labeler(std::vector<int64_t> labels, const SimulatedOptions& options) {
  return std::make_unique<Simulated>(std::move(labels), options);
}

std::unique_ptr<Labeler> make_labeler(const Config& config, LabelerOf of) {
  const std::string& kind = config.text("oracle.labeler");
  if (kind == "labels") {
    SimulatedOptions options;
    options.noise = config.real("oracle.noise");
    options.seed = static_cast<uint64_t>(config.integer("train.seed"));
    return make_simulated_labeler(std::move(of.labels), options);
  }
  PAL_CHECK(false, "oracle.labeler", kind, "choose labels");
  return nullptr;
}

}  // namespace pal
