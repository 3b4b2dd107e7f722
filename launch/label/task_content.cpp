#include "launch/label/task_content.h"

#include <fmt/format.h>

#include "kernels/base/error.h"
#include "kernels/base/printable.h"
#include "launch/report/html.h"

namespace pal::launch {

std::string node_name(const data::Dataset& data, int64_t node) {
  const std::vector<int64_t> parents = data.parents();
  const std::vector<std::string>& classes = data.classes();
  constexpr int64_t kShown = 6;
  std::string names;
  int64_t count = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    auto at = static_cast<int64_t>(c);
    while (at >= 0 && at != node && at < static_cast<int64_t>(parents.size())) at = parents[at];
    if (at == node && ++count <= kShown) names += (names.empty() ? "" : ", ") + classes[c];
  }
  return count > kShown ? names + " …" : names;
}

oracle::TaskContent task_content(const label::LabelSpec& words, const data::Dataset& data, const Pictures& pictures) {
  oracle::TaskContent content;
  content.instructions = words.instructions;
  content.name = [&data](int64_t sample) { return data.id(sample); };
  content.question = [&data, question = words.question](oracle::QueryKind kind, int64_t node) -> std::string {
    if (kind == oracle::QueryKind::coarse)
      return node == oracle::kNoNode ? "Does this belong to the group?"
                                     : "Is this one of: " + node_name(data, node) + "?";
    return question.empty() ? "Is this the same kind of thing?" : question;
  };
  if (!pictures.any()) return content;
  content.picture = [&pictures](int64_t sample) -> std::string {
    try {
      const std::optional<PageImage> image = pictures.of(sample, ImageSize::small);
      if (!image) return "";
      return "data:" + image->type + ";base64," + base64({image->bytes.begin(), image->bytes.end()});
    } catch (const Error& e) {
      fmt::print(stderr, "warning: the picture of sample {} is left out: {}\n", sample, printable(e.what()));
      return "";
    }
  };
  return content;
}

}  // namespace pal::launch
