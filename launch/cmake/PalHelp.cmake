# PalHelp: plain-text pages of launch/help compiled into a target.
#
# pal_help_pages(<target> <topic>...): each launch/help/<topic>.txt becomes an entry of pal::launch::help_pages(), in this order.
function(pal_help_pages target)
  set(entries "")
  foreach(topic ${ARGN})
    set(page ${PROJECT_SOURCE_DIR}/launch/help/${topic}.txt)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
    file(READ ${page} text)
    string(APPEND entries "    {\"${topic}\", R\"PAGE(${text})PAGE\"},\n")
  endforeach()
  set(source ${PROJECT_BINARY_DIR}/help_pages.cpp)
  # file(GENERATE) leaves the file alone when nothing changed; its generator expressions begin with $<, which no page has.
  file(GENERATE OUTPUT ${source} CONTENT
"// Written by CMake from launch/help/*.txt.
#include \"launch/help.h\"

namespace pal::launch {
const std::vector<HelpPage>& help_pages() {
  static const std::vector<HelpPage> pages = {
${entries}  };
  return pages;
}
}  // namespace pal::launch
")
  target_sources(${target} PRIVATE ${source})
endfunction()
