// help: the pages of `pal help TOPIC`, compiled in from launch/help/*.txt.
#pragma once

#include <string>
#include <vector>

namespace pal::launch {

struct HelpPage {
  std::string topic;
  std::string text;  // its first line is the page's title
};
const std::vector<HelpPage>& help_pages();  // defined in a file that launch/cmake/PalHelp.cmake writes

}  // namespace pal::launch
