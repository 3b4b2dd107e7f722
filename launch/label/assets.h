// assets: the files of the labeling page, compiled in from launch/label/page by launch/cmake/PalAssets.cmake.
#pragma once

#include <string_view>
#include <vector>

namespace pal::launch {

struct Asset {
  std::string_view path;  // as the browser asks for it: "/app.js"
  std::string_view type;  // of its content
  std::string_view content;
};
const std::vector<Asset>& page_assets();

}  // namespace pal::launch
