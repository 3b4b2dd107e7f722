#include "launch/run/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/io/files.h"
#include "core/io/sha256.h"
#include "core/plot/plot.h"
#include "core/setup/run_spec.h"
#include "kernels/base/error.h"
#include "launch/terminal.h"

namespace pal::launch {
namespace {

namespace fs = std::filesystem;
const char* const kColumns = "questions,cost,linear,knn,own,known,alike,alike_wrong,components,contradictions,seconds";

struct LineSpec {
  study::StudyLine line;
  std::vector<std::string> overrides;
};

LineSpec line_spec(const std::string& text) {
  const std::string example = "write {name: captcha, oracle.sampler: captcha}";
  LineSpec spec;
  try {
    const YAML::Node node = YAML::Load(text);
    PAL_CHECK(node.IsMap(), "line of compare.lines", text, example);
    for (const auto& entry : node) {
      const std::string key = entry.first.Scalar(), value = entry.second.Scalar();
      if (key == "name")
        spec.line.name = value;
      else if (key == "answers") {
        PAL_CHECK(value == "assumed" || value == "labeler", "answers of a line of compare.lines", value,
                  "write labeler or assumed");
        spec.line.answers = value == "assumed" ? study::StudyAnswers::assumed : study::StudyAnswers::labeler;
      } else {
        spec.overrides.push_back(key + "=" + value);
      }
    }
  } catch (const YAML::Exception&) {
    PAL_CHECK(false, "line of compare.lines", text, example);
  }
  const std::string& name = spec.line.name;
  const bool plain = !name.empty() && name.size() < 60 && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_';
  });
  PAL_CHECK(plain, "name of a line of compare.lines", name.empty() ? text : name,
            "give each line a name of letters, digits, - and _");
  return spec;
}

// "5,440".
std::string with_commas(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (auto at = static_cast<ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

// With the settings of a line; an error names the line.
config::Config config_of_line(const LineSpec& spec, const std::string& path,
                              const std::vector<std::string>& overrides) {
  try {
    return config::Config::load(path, overrides);
  } catch (const Error& e) {
    const std::string sentence = e.what(), given = "command line: ";
    throw Error(e.code(), "line " + spec.line.name + " of compare.lines: " +
                              (sentence.rfind(given, 0) == 0 ? sentence.substr(given.size()) : sentence));
  }
}

struct Statistics {
  double mean = 0, deviation = 0;
};
Statistics statistics(const std::vector<double>& x) {
  Statistics s;
  for (double v : x) s.mean += v / static_cast<double>(x.size());
  for (double v : x) s.deviation += (v - s.mean) * (v - s.mean);
  s.deviation = x.size() > 1 ? std::sqrt(s.deviation / static_cast<double>(x.size() - 1)) : 0;
  return s;
}

// The curves of a line at one noise level, by seed.
struct LineCurves {
  std::string name;
  std::vector<std::vector<study::StudyPoint>> curves;

  size_t points() const { return curves.empty() ? 0 : curves[0].size(); }
  template <class F>
  Statistics at(size_t k, const F& value) const {
    std::vector<double> all;
    for (const auto& curve : curves) all.push_back(static_cast<double>(value(curve[k])));
    return statistics(all);
  }
};
using LinesByNoise = std::map<double, std::vector<LineCurves>>;

LinesByNoise group(const std::vector<CompareResult>& results) {
  LinesByNoise groups;
  for (const CompareResult& r : results) {
    std::vector<LineCurves>& lines = groups[r.job.noise];
    auto at = std::find_if(lines.begin(), lines.end(), [&](const LineCurves& l) { return l.name == r.job.line.name; });
    if (at == lines.end()) at = lines.insert(lines.end(), {r.job.line.name, {}});
    at->curves.push_back(r.curve);
  }
  return groups;
}

// A line that asks nothing is horizontal.
bool passive(const LineCurves& line) {
  return line.at(line.points() - 1, [](const study::StudyPoint& p) { return p.questions; }).mean == 0;
}

template <class X, class Y>
plot::PlotPanel panel(const std::string& title, const std::string& x_label, const std::string& y_label,
                      const std::vector<LineCurves>& lines, const X& x, const Y& y) {
  plot::PlotPanel out{.title = title, .x = {.label = x_label, .low = 0.0}, .y = {.label = y_label}, .curves = {}};
  double last = 0;
  for (const LineCurves& line : lines) last = std::max(last, line.at(line.points() - 1, x).mean);
  int color = 0;
  for (const LineCurves& line : lines) {
    plot::PlotCurve curve{.name = line.name, .x = {}, .y = {}, .color = color++};
    for (size_t k = 0; k < line.points(); ++k) {
      const Statistics s = line.at(k, y);
      curve.x.push_back(line.at(k, x).mean);
      curve.y.push_back(s.mean);
      curve.spread.push_back(s.deviation);
    }
    if (passive(line)) {
      curve.x = {0, last};
      curve.y = {curve.y[0], curve.y[0]};
      curve.spread = {};
      curve.stroke = plot::CurveStroke::dashed;
    }
    out.curves.push_back(curve);
  }
  return out;
}

plot::PlotPanel without_silent_lines(plot::PlotPanel panel) {
  std::erase_if(panel.curves, [](const plot::PlotCurve& c) { return c.stroke == plot::CurveStroke::dashed; });
  return panel;
}

// The uncertainty of the figures in the tables, and the meaning of their words.
std::string explanation(const std::vector<LineCurves>& lines, const CompareSet& set) {
  double error = 0;
  for (const LineCurves& l : lines)
    error = std::max(error, l.at(l.points() - 1, [](const study::StudyPoint& p) { return p.linear; }).mean);
  const double noise = 100 * std::sqrt(error * (1 - error) / static_cast<double>(std::max<int64_t>(set.tests, 1)));
  const std::string start =
      set.labeled_at_start.empty()
          ? ""
          : fmt::format("  known before the first question: one true label of each class, to {}\n",
                        fmt::join(set.labeled_at_start, ", "));
  return fmt::format(
             "  {} test samples: the choice of them alone moves a linear figure by ± {:.1f} (one standard deviation)\n"
             "  linear, kNN: with all labels, on the representation learned from the answers; 20 %, 50 %: of the "
             "budget\n"
             "  own labels: a classifier of the labels that are answered or inferred, on the features\n"
             "  relations known: pairs of samples answered or inferred; same but wrong: of those known as the same\n",
             with_commas(static_cast<double>(set.tests)), noise) +
         start;
}

// Lines below `random` at every point past a tenth of the budget.
std::string better_than_random(const std::vector<LineCurves>& lines) {
  const auto random = std::find_if(lines.begin(), lines.end(), [](const LineCurves& l) { return l.name == "random"; });
  if (random == lines.end()) return "";
  const auto error = [](const study::StudyPoint& p) { return p.linear; };
  std::string better;
  for (const LineCurves& line : lines) {
    if (passive(line) || line.name == "random") continue;
    bool below = true;
    for (size_t k = 1; k < line.points(); ++k) {
      if (static_cast<double>(k) <= 0.1 * static_cast<double>(line.points() - 1)) continue;
      below = below && line.at(k, error).mean < random->at(k, error).mean;
    }
    if (below) better += (better.empty() ? "" : ", ") + line.name;
  }
  return "below random at every point past a tenth of the budget (linear probe, mean over seeds): " +
         (better.empty() ? "none" : better) + "\n";
}

}  // namespace

std::vector<std::string> without_steps(std::vector<std::string> overrides) {
  overrides.insert(overrides.end(), {"train.epochs=null", "train.steps=1", "optim.base_lr=null", "optim.lr=1"});
  return overrides;
}

std::vector<CompareJob> compare_jobs(const std::string& config_path, const std::vector<std::string>& overrides,
                                     const std::string& folder) {
  const setup::CompareSpec compare =
      setup::make_run_spec(config::Config::load(config_path, without_steps(overrides))).compare;
  std::vector<CompareJob> jobs;
  PAL_CHECK(!compare.lines.empty(), "compare.lines is empty in", config_path, "name the oracles to compare");
  std::map<std::string, int> names;
  for (const std::string& text : compare.lines) {
    const LineSpec spec = line_spec(text);
    PAL_CHECK(names[spec.line.name]++ == 0, "two lines of compare.lines have one name", spec.line.name, "rename one");
    for (double noise : compare.noise) {
      for (int64_t seed = 0; seed < compare.seeds; ++seed) {
        CompareJob job{.line = spec.line,
                       .overrides = overrides,
                       .seed = static_cast<uint64_t>(seed),
                       .noise = noise,
                       .file = {},
                       .fingerprint = {}};
        job.overrides.push_back("train.seed=" + std::to_string(seed));
        job.overrides.push_back(fmt::format("oracle.noise={}", noise));
        job.overrides.insert(job.overrides.end(), spec.overrides.begin(),
                             spec.overrides.end());  // a line may have a noise of its own
        job.overrides = without_steps(job.overrides);
        job.file = fmt::format("{}/runs/{}-noise{}-seed{}.csv", folder, spec.line.name, noise, seed);
        std::vector<std::string> alone = job.overrides;  // without the other lines, seeds and levels: these may change
        alone.insert(alone.end(), {"compare.lines=null", "compare.seeds=null", "compare.noise=null"});
        const std::string settings =
            config_of_line(spec, config_path, alone).dump() + fmt::format("{}", static_cast<int>(spec.line.answers));
        job.fingerprint = io::sha256_hex(settings.data(), settings.size()).substr(0, 16);
        jobs.push_back(std::move(job));
      }
    }
  }
  return jobs;
}

void write_result(const CompareJob& job, const std::vector<study::StudyPoint>& curve) {
  std::string text = "# " + job.fingerprint + "\n" + kColumns + "\n";
  for (const study::StudyPoint& p : curve) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.6f}\n", p.questions, p.cost, p.linear, p.knn, p.own, p.known,
                        p.alike, p.alike_wrong, p.components, p.contradictions, p.seconds);
  }
  io::write_file_atomically(job.file, text);
}

std::vector<study::StudyPoint> read_result(const CompareJob& job) {
  if (!fs::exists(job.file)) return {};
  std::istringstream in(io::read_whole_file(job.file));
  std::string line;
  if (!std::getline(in, line) || line != "# " + job.fingerprint || !std::getline(in, line) || line != kColumns)
    return {};
  std::vector<study::StudyPoint> curve;
  while (std::getline(in, line)) {
    study::StudyPoint p;
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream row(line);
    if (!(row >> p.questions >> p.cost >> p.linear >> p.knn >> p.own >> p.known >> p.alike >> p.alike_wrong >>
          p.components >> p.contradictions >> p.seconds))
      return {};
    curve.push_back(p);
  }
  return curve;
}

std::string write_summary(const std::vector<CompareResult>& results, const CompareSet& set, const std::string& folder) {
  std::string csv = fmt::format("line,noise,seed,{}\n", kColumns);
  for (const CompareResult& r : results) {
    for (const study::StudyPoint& p : r.curve) {
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{:.6f}\n", r.job.line.name, r.job.noise, r.job.seed,
                         p.questions, p.cost, p.linear, p.knn, p.own, p.known, p.alike, p.alike_wrong, p.components,
                         p.contradictions, p.seconds);
    }
  }
  io::write_file_atomically(folder + "/compare.csv", csv);

  std::string text, summary =
                        "line,noise,questions,cost,linear_mean,linear_std,knn_mean,knn_std,own_mean,own_std,known,"
                        "alike_wrong_share,components,ms_per_question\n";
  std::vector<plot::PlotPanel> panels;
  const auto linear = [](const study::StudyPoint& p) { return p.linear; };
  const auto nearest = [](const study::StudyPoint& p) { return p.knn; };
  const auto own = [](const study::StudyPoint& p) { return p.own; };
  const auto in_percent = [](const auto& share) {
    return [share](const study::StudyPoint& p) { return 100 * share(p); };
  };
  const auto questions = [](const study::StudyPoint& p) { return p.questions; };
  const auto cost = [](const study::StudyPoint& p) { return p.cost; };
  const auto known = [](const study::StudyPoint& p) { return p.known; };
  const auto wrong = [](const study::StudyPoint& p) {
    return p.alike > 0 ? static_cast<double>(p.alike_wrong) / static_cast<double>(p.alike) : 0.0;
  };
  const auto percent = [](const Statistics& s) {
    return fmt::format("{:.2f} ± {:.2f}", 100 * s.mean, 100 * s.deviation);
  };
  const LinesByNoise groups = group(results);
  for (const auto& [noise, lines] : groups) {
    const std::string title = noise == 0 ? "" : fmt::format(", {:g} % of the answers wrong", 100 * noise);
    std::vector<std::vector<std::string>> errors = {
        {"oracle", "questions", "linear 20 %", "linear 50 %", "linear", "kNN", "own labels"}};
    std::vector<std::vector<std::string>> relations_known = {
        {"oracle", "questions", "cost", "relations known", "same but wrong", "components", "ms/question"}};
    for (const LineCurves& line : lines) {
      const size_t last = line.points() - 1;
      const double asked = line.at(last, questions).mean;
      const double ms =
          asked > 0 ? 1000 * line.at(last, [](const study::StudyPoint& p) { return p.seconds; }).mean / asked : 0;
      for (size_t k = 0; k <= last; ++k) {
        const Statistics a = line.at(k, linear), b = line.at(k, nearest), c = line.at(k, own);
        summary += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{:.6f},{},{:.4f}\n", line.name, noise,
                               line.at(k, questions).mean, line.at(k, cost).mean, a.mean, a.deviation, b.mean,
                               b.deviation, c.mean, c.deviation, line.at(k, known).mean, line.at(k, wrong).mean,
                               line.at(k, [](const study::StudyPoint& p) { return p.components; }).mean, ms);
      }
      errors.push_back({line.name, with_commas(asked), percent(line.at(last / 5, linear)),
                        percent(line.at(last / 2, linear)), percent(line.at(last, linear)),
                        percent(line.at(last, nearest)), percent(line.at(last, own))});
      relations_known.push_back(
          {line.name, with_commas(asked), with_commas(line.at(last, cost).mean), with_commas(line.at(last, known).mean),
           fmt::format("{:.1f} %", 100 * line.at(last, wrong).mean),
           with_commas(line.at(last, [](const study::StudyPoint& p) { return p.components; }).mean),
           fmt::format("{:.3f}", ms)});
    }
    text += fmt::format(
        "test error in %{}, mean ± deviation over {} seeds\n{}{}the graph after the last question{}\n{}", title,
        lines[0].curves.size(), format_table(errors), better_than_random(lines), title, format_table(relations_known));
    panels.push_back(panel("linear probe" + title, "questions", "test error, %", lines, questions, in_percent(linear)));
    panels.push_back(panel("kNN" + title, "questions", "test error, %", lines, questions, in_percent(nearest)));
    panels.push_back(panel("own labels" + title, "questions", "test error, %", lines, questions, in_percent(own)));
    const bool one_each = std::all_of(lines.begin(), lines.end(), [&](const LineCurves& line) {
      return line.at(line.points() - 1, cost).mean == line.at(line.points() - 1, questions).mean;
    });
    if (!one_each)  // else it would repeat the first plot
      panels.push_back(
          panel("linear probe against cost" + title, "cost", "test error, %", lines, cost, in_percent(linear)));
    plot::PlotPanel relations =
        without_silent_lines(panel("pairs answered or inferred" + title, "questions", "pairs", lines, questions,
                                   [](const study::StudyPoint& p) { return std::max<int64_t>(p.known, 1); }));
    relations.y.scale = plot::AxisScale::log;
    for (plot::PlotCurve& c : relations.curves) c.spread = {};
    panels.push_back(relations);
    panels.push_back(without_silent_lines(panel("pairs known as the same that are not" + title, "questions",
                                                "% of them", lines, questions, in_percent(wrong))));
    panels.push_back(without_silent_lines(panel("components" + title, "questions", "components", lines, questions,
                                                [](const study::StudyPoint& p) { return p.components; })));
  }
  io::write_file_atomically(folder + "/summary.csv", summary);
  io::write_file_atomically(folder + "/compare.svg", plot::svg_plot(panels));
  return text + explanation(groups.begin()->second, set);
}

}  // namespace pal::launch
