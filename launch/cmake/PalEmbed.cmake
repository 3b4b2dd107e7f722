# PalEmbed: files compiled into a target, as the tables of launch/embedded.h.
#
# pal_help_pages(<target> <topic>...): each launch/help/<topic>.txt becomes an entry of help_pages(), in this order.
# pal_assets(<target> <file>...): each launch/label/page/<file> becomes an entry of page_assets().

# pal_embedded_text(<variable> <file>): the text of a file, as a string literal.
function(pal_embedded_text variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REPLACE "$<" "$<1:$><" text "${text}")   # $< would be a generator expression
  set(${variable} "R\"FILE(${text})FILE\"" PARENT_SCOPE)   # a compiler takes literals of 64 KiB at least
endfunction()

# pal_embedded_table(<target> <function> <type> <entries>): the function that returns the entries.
function(pal_embedded_table target function type entries)
  set(source ${PROJECT_BINARY_DIR}/${function}.cpp)
  # file(GENERATE) leaves the file alone when nothing changed.
  file(GENERATE OUTPUT ${source} CONTENT
"// Written by launch/cmake/PalEmbed.cmake.
#include \"launch/embedded.h\"

namespace pal::launch {
const std::vector<${type}>& ${function}() {
  static const std::vector<${type}> entries = {
${entries}  };
  return entries;
}
}  // namespace pal::launch
")
  target_sources(${target} PRIVATE ${source})
endfunction()

function(pal_help_pages target)
  set(entries "")
  foreach(topic ${ARGN})
    pal_embedded_text(text ${PROJECT_SOURCE_DIR}/launch/help/${topic}.txt)
    string(APPEND entries "    {\"${topic}\", ${text}},\n")
  endforeach()
  pal_embedded_table(${target} help_pages HelpPage "${entries}")
endfunction()

function(pal_assets target)
  set(type_html "text/html; charset=utf-8")
  set(type_css "text/css; charset=utf-8")
  set(type_js "text/javascript; charset=utf-8")
  set(type_svg "image/svg+xml")
  set(entries "")
  foreach(name ${ARGN})
    pal_embedded_text(text ${PROJECT_SOURCE_DIR}/launch/label/page/${name})
    string(REGEX MATCH "[a-z]+$" ending ${name})
    string(APPEND entries "    {\"/${name}\", \"${type_${ending}}\", ${text}},\n")
  endforeach()
  pal_embedded_table(${target} page_assets Asset "${entries}")
endfunction()
