// value: checks the text of a setting against its key and brings it into one canonical form.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.h"

namespace pal::config {

// The canonical text of one value (of a scalar key, or one item of a list): numbers in their shortest exact form, flags
// as true or false. Throws Error (usage) "where: key is value; it must be …".
std::string canonical_value(const KeySpec& key, const std::string& text, const std::string& where);
bool is_list(KeyType type);
// As YAML text that reads back as the same string.
std::string yaml_scalar(const std::string& text);
double to_real(const std::string& canonical);
int64_t to_integer(const std::string& canonical);

}  // namespace pal::config
