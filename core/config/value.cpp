#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/config/config_internal.h"
#include "core/config/source.h"
#include "core/config/suggest.h"
#include "kernels/base/error.h"

namespace pal::config {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string join(const std::vector<std::string>& words, const std::string& last) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " " + last + " " : ", ";
    out += words[i];
  }
  return out;
}

std::string describe_range(const KeySpec& key) {
  const bool low = key.min > -kNoLimit, high = key.max < kNoLimit;
  if (low && high) return fmt::format(" from {} to {}", key.min, key.max);
  if (low) return fmt::format(" of at least {}", key.min);
  if (high) return fmt::format(" of at most {}", key.max);
  return "";
}

[[noreturn]] void refuse(const KeySpec& key, const std::string& text, const std::string& where) {
  std::string sentence = where + ": " + key.name + " is " + (text.empty() ? "empty" : printable(text)) +
                         "; it must be " + describe_allowed(key);
  if (key.type == KeyType::choice) sentence += " (the nearest is " + suggest(text, key.choices) + ")";
  throw Error(Exit::usage, sentence);
}

}  // namespace

std::string describe_allowed(const KeySpec& key) {
  switch (key.type) {
    case KeyType::text:
      return "text without line breaks";
    case KeyType::choice:
      return join(key.choices, "or");
    case KeyType::integer:
      return "an integer" + describe_range(key);
    case KeyType::real:
      return "a number" + describe_range(key);
    case KeyType::flag:
      return "true or false";
    case KeyType::text_list:
      return "a list of words";
    case KeyType::lines:
      return "a text, or a list of lines";
    case KeyType::integer_list:
      return "a list of integers" + describe_range(key);
    case KeyType::real_list:
      return "a list of numbers" + describe_range(key);
  }
  return "";
}

bool is_list(KeyType type) {
  return type == KeyType::text_list || type == KeyType::lines || type == KeyType::integer_list ||
         type == KeyType::real_list;
}

std::string canonical_value(const KeySpec& key, const std::string& text, const std::string& where) {
  const auto within = [&](double value) { return std::isfinite(value) && value >= key.min && value <= key.max; };
  switch (key.type) {
    case KeyType::text:
    case KeyType::text_list:
    case KeyType::lines: {
      // yaml-cpp treats some control characters as the end of the file, and no path or name needs one.
      const bool clean = std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
      if (!clean) refuse(key, text, where);
      return text;
    }
    case KeyType::choice:
      if (std::find(key.choices.begin(), key.choices.end(), text) == key.choices.end()) refuse(key, text, where);
      return text;
    case KeyType::integer:
    case KeyType::integer_list: {
      const std::optional<int64_t> value = parse_number<int64_t>(text);
      if (!value || !within(static_cast<double>(*value))) refuse(key, text, where);
      return std::to_string(*value);
    }
    case KeyType::real:
    case KeyType::real_list: {
      const std::optional<double> value = parse_number<double>(text);
      if (!value || !within(*value)) refuse(key, text, where);
      return fmt::format("{}", *value == 0 ? 0.0 : *value);  // no negative zero
    }
    case KeyType::flag:
      if (text == "true" || text == "yes" || text == "on") return "true";
      if (text == "false" || text == "no" || text == "off") return "false";
      refuse(key, text, where);
  }
  return "";
}

std::string yaml_scalar(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '/' || c == '-' || c == '+';
  };
  const bool null = text.empty() || text == "null" || text == "Null" || text == "NULL" || text == "~";
  const bool starts_as_marker = !text.empty() && text[0] == '-' && (text.size() == 1 || text == "---");
  if (!null && !starts_as_marker && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

double to_real(const std::string& canonical) { return parse_number<double>(canonical).value(); }
int64_t to_integer(const std::string& canonical) { return parse_number<int64_t>(canonical).value(); }

}  // namespace pal::config
