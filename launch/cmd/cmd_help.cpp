// cmd_help: `pal help [TOPIC]`: the list of commands and topics, or a page.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/config/suggest.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/embedded.h"

namespace pal::launch {
namespace {

std::string title(const HelpPage& page) {
  const std::string line = page.text.substr(0, page.text.find('\n'));
  return line.substr(line.find(": ") + 2);
}

// Names are padded to the longest of all commands and topics, so that both lists are aligned.
std::string overview() {
  size_t width = 0;
  for (const Command& command : commands()) width = std::max(width, std::string(command.name).size());
  for (const HelpPage& page : help_pages()) width = std::max(width, page.topic.size());
  std::string out =
      "pal: active self-supervised learning on a similarity graph, on one machine or many\n\nUsage: pal COMMAND "
      "[arguments]\n\nCommands:\n";
  for (const Command& command : commands()) out += fmt::format("  {:<{}}  {}\n", command.name, width, command.summary);
  out += "\nTopics:\n";
  for (const HelpPage& page : help_pages()) out += fmt::format("  {:<{}}  {}\n", page.topic, width, title(page));
  out += "\n`pal help start` is where to begin. `pal COMMAND --help` shows a command's options with an example.\n";
  return out;
}

}  // namespace

int cmd_help(const std::vector<std::string>& args, Context&) {
  CLI::App app("Explains a topic; without one, lists commands and topics.", "pal help");
  std::string topic;
  app.add_option("TOPIC", topic, "What to explain");
  app.footer("Example:\n  pal help start");
  if (const int code = parse_arguments(app, args); code >= 0) return code;
  if (topic.empty()) {
    std::fputs(overview().c_str(), stdout);
    return 0;
  }
  std::vector<std::string> topics;
  for (const HelpPage& page : help_pages()) {
    if (page.topic == topic) {
      std::fputs(page.text.c_str(), stdout);
      return 0;
    }
    topics.push_back(page.topic);
  }
  throw Error(Exit::usage, "there is no help topic " + topic + "; the nearest topic is " +
                               config::suggest(topic, topics) + " (all of them: pal help)");
}

}  // namespace pal::launch
