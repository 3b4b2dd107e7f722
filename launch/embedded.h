// embedded: files that are compiled into the program; launch/cmake/PalEmbed.cmake writes the functions below.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pal::launch {

// A page of `pal help TOPIC`: launch/help/*.txt.
struct HelpPage {
  std::string topic;
  std::string text;  // its first line is the page's title
};
const std::vector<HelpPage>& help_pages();

// A file of the labeling page: launch/label/page.
struct Asset {
  std::string_view path;  // as the browser asks for it: "/app.js"
  std::string_view type;  // of its content
  std::string_view content;
};
const std::vector<Asset>& page_assets();

}  // namespace pal::launch
