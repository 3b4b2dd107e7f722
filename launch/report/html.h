// html: the few elements a report is made of, as text. Everything is escaped; pictures are data inside the page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/image/picture.h"

namespace pal::launch {

std::string html_escaped(const std::string& text);
// The first row is the head; cells that look like numbers stand to the right.
std::string html_table(const std::vector<std::vector<std::string>>& rows);
// A figure with what it shows and the commands that made its data; long ones are folded away.
std::string html_figure(const std::string& body, const std::string& caption, const std::vector<std::string>& commands);
// A picture as PNG inside the page, its longer side `shown` pixels on screen.
std::string html_picture(const data::Picture& picture, int shown, const std::string& title);
// A section with its heading; `id` is where links lead.
std::string html_section(const std::string& id, const std::string& title, const std::string& body);
// The whole page, with its style; nothing in it is fetched.
std::string html_page(const std::string& title, const std::string& body);

std::string base64(const std::vector<uint8_t>& bytes);

}  // namespace pal::launch
