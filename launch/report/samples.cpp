#include <fmt/format.h>

#include <algorithm>

#include "core/data/loader/augment_spec.h"
#include "core/eval/knn.h"
#include "core/eval/representation.h"
#include "core/io/cores.h"
#include "core/plot/plot.h"
#include "core/setup/setup.h"
#include "kernels/base/error.h"
#include "launch/report/html.h"
#include "launch/report/parts.h"
#include "launch/run/montage.h"
#include "launch/run/trained_run.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

std::vector<int64_t> evenly(int64_t count, int64_t of) {
  count = std::min(count, of);
  std::vector<int64_t> samples;
  for (int64_t k = 0; k < count; ++k) samples.push_back(k * of / count);
  return samples;
}

std::string label_text(const data::Dataset& data, int64_t sample) {
  const int64_t label = data.labels().empty() ? -1 : data.labels()[static_cast<size_t>(sample)];
  return label >= 0 && label < static_cast<int64_t>(data.classes().size()) ? data.classes()[static_cast<size_t>(label)]
                                                                           : data.id(sample);
}

std::string shown_sample(const data::Dataset& data, int64_t sample, const std::string& kind, const std::string& below) {
  const std::string name = label_text(data, sample);
  return fmt::format("<figure class=\"{}\">{}<figcaption>{}</figcaption></figure>", kind,
                     html_picture(sample_picture(data, sample), 72, name),
                     html_escaped(below.empty() ? name : name + " " + below));
}

// A data set and the features of some of its samples.
struct Looked {
  std::shared_ptr<data::Dataset> data;
  std::vector<int64_t> samples;
  at::Tensor features;
};

Looked look_at(model::Encoder& encoder, const setup::RunSpec& spec, const std::string& path, int64_t count,
               comm::Comm& comm, const std::string& name) {
  Looked looked{data::Dataset::open(path), {}, {}};
  looked.samples = evenly(count, looked.data->size());
  eval::EmbedOptions options;
  options.augment = data::augment_options(spec.augment, *looked.data);
  options.dtype = spec.train.dtype;
  options.threads = io::usable_cores();
  Progress bar(name, static_cast<int64_t>(looked.samples.size()));
  options.progress = [&](int64_t done) { bar.update(done, ""); };
  looked.features = eval::embed(encoder, *looked.data, looked.samples, options, comm);
  return looked;
}

int64_t known_label(const Looked& looked, int64_t row) {  // -1: unknown
  const std::vector<int64_t>& labels = looked.data->labels();
  return labels.empty() ? -1 : labels[static_cast<size_t>(looked.samples[static_cast<size_t>(row)])];
}

// The nearest training samples of some rows of `of`, which may be the training samples themselves: a sample is no
// neighbor of its own.
std::string neighbor_rows(const Looked& train, const Looked& of, const SampleOptions& options) {
  std::string out;
  const bool itself = train.data == of.data;
  const int64_t k = std::min<int64_t>(options.neighbors + (itself ? 1 : 0), train.features.size(0));
  for (const int64_t row : evenly(options.queries, of.features.size(0))) {
    const eval::Neighbors near = eval::neighbors(of.features.narrow(0, row, 1), train.features, k);
    out += "<div class=\"near\">" + shown_sample(*of.data, of.samples[static_cast<size_t>(row)], "query", "");
    int64_t shown = 0;
    for (int64_t j = 0; j < k && shown < options.neighbors; ++j) {
      const auto at = near.index[0][j].item<int64_t>();
      if (at < 0 || (itself && at == row)) continue;
      ++shown;
      const int64_t mine = known_label(of, row), its = known_label(train, at);
      out += shown_sample(*train.data, train.samples[static_cast<size_t>(at)],
                          mine < 0 || its < 0 ? "plain"
                          : mine == its       ? "same"
                                              : "other",
                          fmt::format("{:.2f}", near.similarity[0][j].item<double>()));
    }
    out += "</div>\n";
  }
  return out;
}

}  // namespace

SampleParts sample_parts(const RunSummary& run, const SampleOptions& options) {
  if (!run.spec || run.checkpoint < 0)
    return {"<p>The run has no checkpoint, so samples cannot be embedded.</p>\n", ""};
  const setup::RunSpec& spec = *run.spec;
  const bool tested = !spec.data.test.empty();
  try {
    const auto alone = comm::make_local_comm();
    const TrainedRun trained = load_trained_run(run.path, spec, *alone, options.device);
    const Looked train =
        look_at(*trained.encoder, spec, spec.data.train, options.train, *alone, run.name + ": embed train");
    const Looked of =
        tested ? look_at(*trained.encoder, spec, spec.data.test, options.test, *alone, run.name + ": embed test")
               : train;
    const std::string kind = tested ? "test" : "training";
    std::vector<int64_t> labels;
    for (size_t row = 0; row < of.samples.size(); ++row) labels.push_back(known_label(of, static_cast<int64_t>(row)));
    const bool labeled = std::any_of(labels.begin(), labels.end(), [](int64_t label) { return label >= 0; });
    if (!labeled) labels.clear();
    SampleParts parts;
    parts.neighbors =
        fmt::format(
            "<p>Left, with a black frame: a {} sample. Then the nearest of {} training samples by the cosine of their "
            "features (the number){}. Checkpoint of step {}. <code>pal report {}</code></p>\n",
            kind, train.samples.size(), labeled ? "; green: the same class, red: another" : "", trained.step,
            html_escaped(run.path)) +
        neighbor_rows(train, of, options);
    const std::vector<std::string> command = {"pal eval " + run.path + " ridge --picture plane.svg"};
    parts.plane = html_figure(embedding_plot(of.features, labels, of.data->classes()),
                              fmt::format("{}: {} {} samples of step {}, in the two directions of most variance.",
                                          run.name, of.samples.size(), kind, trained.step),
                              tested ? command : std::vector<std::string>{});
    return parts;
  } catch (const Error& e) {
    return {"<p class=\"note\">No samples are shown: " + html_escaped(e.what()) + "</p>\n", ""};
  }
}

std::string embedding_plot(const at::Tensor& features, const std::vector<int64_t>& labels,
                           const std::vector<std::string>& classes) {
  constexpr int64_t kShown = 3000;
  constexpr size_t kNamed = 40;  // classes; a legend of more hides the plot
  const eval::PlaneMap map = eval::principal_plane(features);
  plot::PlotPanel panel;
  panel.title = "features, principal components";
  panel.x.label = fmt::format("first, {:.0f} % of the variance", 100 * map.share[0]);
  panel.y.label = fmt::format("second, {:.0f} %", 100 * map.share[1]);
  const size_t kinds = labels.empty() ? 1 : std::max<size_t>(classes.size(), 1);
  panel.curves.resize(kinds);
  for (size_t c = 0; c < kinds; ++c) {
    panel.curves[c].name = labels.empty() || c >= classes.size() || kinds > kNamed ? "" : classes[c];
    panel.curves[c].stroke = plot::CurveStroke::dots;
  }
  const at::Tensor points = map.points.contiguous();
  const int64_t n = points.size(0), shown = std::min(n, kShown);
  for (int64_t k = 0; k < shown; ++k) {
    const int64_t i = k * n / shown;
    const int64_t label = labels.empty() ? 0 : labels[static_cast<size_t>(i)];
    if (label < 0) continue;
    plot::PlotCurve& curve = panel.curves[static_cast<size_t>(label)];
    curve.x.push_back(points.const_data_ptr<double>()[2 * i]);
    curve.y.push_back(points.const_data_ptr<double>()[2 * i + 1]);
  }
  return plot::svg_plot({panel});
}

}  // namespace pal::launch
