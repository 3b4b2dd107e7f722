# PalAssets: the files of the labeling page compiled into a target.
#
# pal_assets(<target> <file>...): each launch/label/page/<file> becomes an entry of pal::launch::page_assets().
function(pal_assets target)
  set(type_html "text/html; charset=utf-8")
  set(type_css "text/css; charset=utf-8")
  set(type_js "text/javascript; charset=utf-8")
  set(type_svg "image/svg+xml")
  set(entries "")
  foreach(name ${ARGN})
    set(file ${PROJECT_SOURCE_DIR}/launch/label/page/${name})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    # A compiler takes string literals of 64 KiB at least; $< would be a generator expression.
    string(REPLACE "$<" "$<1:$><" text "${text}")
    string(REGEX MATCH "[a-z]+$" ending ${name})
    string(APPEND entries "    {\"/${name}\", \"${type_${ending}}\", R\"ASSET(${text})ASSET\"},\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/page_assets.cpp)
  file(GENERATE OUTPUT ${source} CONTENT
"// Written by CMake from launch/label/page.
#include \"launch/label/assets.h\"

namespace pal::launch {
const std::vector<Asset>& page_assets() {
  static const std::vector<Asset> assets = {
${entries}  };
  return assets;
}
}  // namespace pal::launch
")
  target_sources(${target} PRIVATE ${source})
endfunction()
