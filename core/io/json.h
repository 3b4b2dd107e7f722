// json: JSON of files and of the network, of bounded depth: deep nesting would overflow the stack of dump() and of
// functions that recurse.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace pal::io {

inline constexpr int kJsonDepth = 64;

// A discarded value (is_discarded()) for text that is not JSON, or is nested deeper than kJsonDepth.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text) {
  bool deep = false;
  const auto watch = [&](int depth, typename Json::parse_event_t, Json&) {
    deep = deep || depth > kJsonDepth;
    return !deep;
  };
  Json value = Json::parse(text, watch, /*allow_exceptions=*/false);
  return deep ? Json(Json::value_t::discarded) : value;
}

}  // namespace pal::io
