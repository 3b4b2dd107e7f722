// html: the HTML elements of a report. Text is escaped; pictures are embedded in the page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/image/picture.h"

namespace pal::launch {

std::string html_escaped(const std::string& text);
// The first row is the head; columns of numbers are right-aligned.
std::string html_table(const std::vector<std::vector<std::string>>& rows);
// A figure with a caption and the commands that made its data; long commands are collapsed.
std::string html_figure(const std::string& body, const std::string& caption, const std::vector<std::string>& commands);
// A picture as PNG inside the page, its longer side `shown` pixels on screen.
std::string html_picture(const data::Picture& picture, int shown, const std::string& title);
// A section with its heading; `id` is the target of links.
std::string html_section(const std::string& id, const std::string& title, const std::string& body);
// The whole page with its style; it loads no other files.
std::string html_page(const std::string& title, const std::string& body);

std::string base64(const std::vector<uint8_t>& bytes);

}  // namespace pal::launch
