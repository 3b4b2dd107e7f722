#include "launch/run/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/config/config.h"

namespace pal::launch {
namespace {

enum class On { gpu, cpu };

// A network and its views. The first that fits and reaches kEnoughSteps in the given time is taken, else the last.
struct Network {
  On on;
  double least_minutes;  // it is not tried in less time
  int32_t from_side;     // images are at least this large
  int32_t largest_view;  // pixels
  int64_t batch;
  std::vector<Setting> settings;
};

const std::vector<Network>& networks() {
  static const std::vector<Network> table = {
      {On::gpu,
       1,
       0,
       64,
       256,
       {{"model.backbone", "resnet18", "a GPU is here"},
        {"model.stem", "cifar", "for views of at most 64 pixels"},
        {"model.projector", "[2048, 2048, 2048]", "as VICReg on CIFAR"},
        {"optim.kind", "adamw", "needs no tuning of the learning rate"},
        {"optim.lr", "0.001", "usual with adamw"},
        {"optim.weight_decay", "1.0e-4", "usual with adamw"}}},
      {On::gpu,
       0,
       65,
       224,
       256,
       {{"model.backbone", "resnet18", "a GPU is here"},
        {"model.stem", "imagenet", "for views above 64 pixels"},
        {"model.projector", "[2048, 2048, 2048]", "as VICReg"},
        {"optim.kind", "adamw", "needs no tuning of the learning rate"},
        {"optim.lr", "0.001", "usual with adamw"},
        {"optim.weight_decay", "1.0e-4", "usual with adamw"}}},
      {On::cpu,
       5,
       24,
       64,
       256,
       {{"model.backbone", "resnet18", "enough steps fit into the time"},
        {"model.stem", "imagenet", "16 times fewer products than the stem cifar"},
        {"model.projector", "[512, 512, 512]", "small, for a CPU"},
        {"optim.kind", "adamw", "needs no tuning of the learning rate"},
        {"optim.lr", "0.001", "usual with adamw"},
        {"optim.weight_decay", "1.0e-4", "usual with adamw"}}},
      {On::cpu,
       0,
       0,
       32,
       256,
       {{"model.backbone", "convnet", "the fastest network, for a CPU"},
        {"model.widths", "[32, 64, 128, 256]", "four blocks"},
        {"model.projector", "[256, 256, 128]", "as in configs/quickstart.yaml"},
        {"optim.kind", "adamw", "needs no tuning of the learning rate"},
        {"optim.lr", "0.003", "as in configs/quickstart.yaml"},
        {"optim.weight_decay", "1.0e-4", "usual with adamw"}}},
  };
  return table;
}

// The graph and its loss, by what is known of the pictures.
const std::vector<Setting>& graph_of(const RecipeFacts& facts) {
  static const std::vector<Setting> unlabeled = {
      {"graph.kind", "mixed", "views of an image are related, and later what people call the same"},
      {"graph.alpha", "0.5", "weight of the answers"},
      {"graph.labeled_fraction", "0", "no label is used"},
      {"graph.edge_share", "0.25", "share of a batch that is drawn as pairs known to be the same"},
      {"loss.kind", "vicreg", "the variance and covariance terms keep the embedding from collapsing"},
  };
  static const std::vector<Setting> labeled = {
      {"graph.kind", "mixed", "views of an image are related, and images of a class"},
      {"graph.alpha", "0.5", "weight of the labels"},
      {"graph.labeled_fraction", "1", "every known label of the training part is used"},
      {"graph.edge_share", "0.25", "share of a batch that is drawn as pairs known to be the same"},
      {"loss.kind", "vicreg", "the variance and covariance terms keep the embedding from collapsing"},
      {"loss.variance", "50", "with 25, related images pull the embedding to two or three directions"},
  };
  static const std::vector<Setting> grouped = {
      {"graph.kind", "mixed", "views of an image are related, and images of a group"},
      {"graph.alpha", "0.5", "weight of the groups"},
      {"graph.edge_share", "0.5", "half of a batch is drawn as pairs of a group"},
      {"loss.kind", "vicreg", "the variance and covariance terms keep the embedding from collapsing"},
      {"loss.variance", "50", "with 25, related images pull the embedding to two or three directions"},
  };
  return !facts.groups.empty() ? grouped : facts.labeled > 0 ? labeled : unlabeled;
}

// Answers are used where some image has no label.
bool is_asked(const RecipeFacts& facts) { return facts.labeled < facts.images; }

constexpr double kTrained = 0.9;  // of the time; the rest is for starting, evaluations and checkpoints
constexpr int64_t kFewestSteps = 20, kMostEpochs = 1000;

int32_t view_side(const RecipeFacts& facts, const Network& network) {
  return std::min(std::max(facts.side, 16), network.largest_view);
}

std::string size_why(const RecipeFacts& facts, int32_t side) {
  if (facts.one_size && side == facts.side) return fmt::format("the height of the images is {} pixels", facts.side);
  if (side > facts.side) return fmt::format("the images have {} pixels; this network needs more", facts.side);
  return fmt::format("the shorter side has {}{} pixels; {}", facts.one_size ? "" : "about ", facts.side,
                     side < facts.side ? "smaller views make a step faster" : "views of that side");
}

}  // namespace

RecipeFacts recipe_facts(const std::string& train, const std::string& test) {
  RecipeFacts facts;
  facts.train = train;
  const auto data = data::Dataset::open(train);
  facts.images = data->size();
  facts.labeled = std::count_if(data->labels().begin(), data->labels().end(), [](int64_t label) { return label >= 0; });
  const std::vector<int32_t> shape = data->shape();
  facts.one_size = shape[0] > 0 && shape[1] > 0;
  facts.side =
      facts.one_size ? std::min(shape[0], shape[1]) : std::min(data->sides().height.median, data->sides().width.median);
  facts.gray = shape[2] == 1;
  if (test.empty()) return facts;
  facts.test = test;
  facts.tested = data::Dataset::open(test)->size();
  return facts;
}

std::vector<size_t> fitting_networks(const RecipeFacts& facts) {
  std::vector<size_t> fitting;
  const On here = facts.gpus > 0 ? On::gpu : On::cpu;
  for (size_t n = 0; n < networks().size(); ++n) {
    const Network& network = networks()[n];
    const bool last = n + 1 == networks().size() || networks()[n + 1].on != network.on;
    const bool small = facts.side <= network.largest_view || network.on == On::cpu;
    if (network.on == here &&
        (last || (small && facts.side >= network.from_side && facts.minutes >= network.least_minutes)))
      fitting.push_back(n);
  }
  return fitting;
}

int64_t recipe_batch(const RecipeFacts& facts, size_t network) {
  int64_t batch = networks()[network].batch;
  while (batch > 8 && 2 * batch > facts.images) batch /= 2;
  return std::min(batch, facts.images);
}

std::vector<Setting> recipe(const RecipeFacts& facts, size_t number) {
  const Network& network = networks()[number];
  const int32_t side = view_side(facts, network);
  std::vector<Setting> out = {
      {"data.train", facts.train, fmt::format("{} images, {} with a label", facts.images, facts.labeled)}};
  const auto add = [&](const std::string& key, const std::string& value, const std::string& why) {
    out.push_back({key, value, why});
  };
  if (!facts.test.empty())
    add("data.test", facts.test, fmt::format("{} images that are never trained on", facts.tested));
  add("data.size", std::to_string(side), size_why(facts, side));
  add("augment.crop_scale", side <= 32 ? "[0.4, 1.0]" : "[0.2, 1.0]",
      side <= 32 ? "smaller crops of a small image show too little" : "usual");
  if (facts.gray) {
    add("augment.jitter_strength", "[0.4, 0.4, 0.0, 0.0]", "gray images have no saturation and no hue");
    add("augment.gray", "0", "they are gray");
    add("augment.mean", "0.45", "about that of photographs");
    add("augment.std", "0.225", "about that of photographs");
  }
  out.insert(out.end(), network.settings.begin(), network.settings.end());
  out.insert(out.end(), graph_of(facts).begin(), graph_of(facts).end());
  if (!facts.groups.empty())
    add("graph.groups", facts.groups, "as given by --groups; labels are left to the evaluation");
  if (is_asked(facts)) {
    add("oracle.sampler", "ssl", "asks nothing while it trains; the labeling page asks afterwards");
    add("oracle.labeler", "exchange", "people answer");
  }
  add("train.global_batch", std::to_string(recipe_batch(facts, number)),
      recipe_batch(facts, number) == network.batch ? "usual" : "at most half of the images");
  return out;
}

int64_t steps_for(double minutes, double step_seconds, int64_t images, int64_t batch) {
  const double fit = 60 * kTrained * minutes / std::max(step_seconds, 1e-6);
  const int64_t most = kMostEpochs * images / batch;
  return std::max(kFewestSteps, fit < static_cast<double>(most) ? static_cast<int64_t>(fit) : most);
}

std::vector<Setting> recipe_length(const RecipeFacts& facts, int64_t batch, double step_seconds) {
  const int64_t fit = steps_for(facts.minutes, step_seconds, facts.images, batch);
  // An evaluation of n samples costs as much as training on n / 4 samples: no backward pass, one view.
  const int64_t looks = facts.test.empty() ? 0 : fit < 400 ? 4 : 8, seen = 2048, tested = 1024;
  const int64_t looking = looks * (std::min(seen, facts.labeled) + std::min(tested, facts.tested)) / (4 * batch);
  const int64_t steps = std::max(kFewestSteps, fit - looking);
  const auto number = [](int64_t n) { return std::to_string(std::max<int64_t>(1, n)); };
  std::vector<Setting> out;
  if (is_asked(facts))
    out.push_back({"oracle.every", number(std::min<int64_t>(50, steps / 100)), "answers take effect soon"});
  out.push_back({"train.steps", std::to_string(steps),
                 fit == kMostEpochs * facts.images / batch
                     ? fmt::format("{} epochs are enough", kMostEpochs)
                     : fmt::format("fit into --minutes {:g}: a step took {:.3g} s", facts.minutes, step_seconds)});
  if (!facts.test.empty()) {
    out.push_back({"eval.every", number(steps / looks), "evaluates on the test part while it trains"});
    out.push_back({"eval.train_samples", std::to_string(seen), "few, to spare time"});
    out.push_back({"eval.test_samples", std::to_string(tested), "few, to spare time"});
  }
  out.push_back({"checkpoint.minutes", "2", "at most this much is lost when the machine stops"});
  out.push_back({"log.every", number(std::min<int64_t>(10, steps / 20)), "a smooth curve"});
  return out;
}

std::string recipe_yaml(const std::vector<Setting>& settings, const std::string& head) {
  std::vector<std::string> texts;
  for (const Setting& s : settings) texts.push_back(s.key + "=" + s.value);
  const config::Config checked = config::Config::defaults(texts);
  std::vector<Setting> sorted;  // in the order of the table of keys
  for (const config::KeySpec& key : config::config_keys()) {
    for (const Setting& s : settings) {
      if (s.key == key.name) sorted.push_back({s.key, checked.formatted(s.key), s.why});
    }
  }
  size_t width = 0;
  const auto line = [](const Setting& s) { return "  " + s.key.substr(s.key.find('.') + 1) + ": " + s.value; };
  for (const Setting& s : sorted) width = std::max(width, std::min<size_t>(40, line(s).size()));
  std::string out = head, section;
  for (const Setting& s : sorted) {
    const std::string of = s.key.substr(0, s.key.find('.'));
    if (of != section) out += of + ":\n";
    section = of;
    out += fmt::format("{:<{}}  # {}\n", line(s), width, s.why);
  }
  return out;
}

}  // namespace pal::launch
