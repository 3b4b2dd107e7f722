// config_internal: what config.cpp uses of value.cpp and cross_checks.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "core/config/config.h"

namespace pal::config {

// value.cpp checks the text of a setting against its key and brings it into one canonical form.
//
// The canonical text of one value (of a scalar key, or one item of a list): numbers in their shortest exact form, flags
// as true or false. Throws Error (usage) "where: key is value; it must be …".
std::string canonical_value(const KeySpec& key, const std::string& text, const std::string& where);
bool is_list(KeyType type);
// As YAML text that reads back as the same string.
std::string yaml_scalar(const std::string& text);
double to_real(const std::string& canonical);
int64_t to_integer(const std::string& canonical);

// cross_checks.cpp has all conditions between several keys of a config, or between the items of a list.
enum class Completeness { required, optional };  // whether a length of the run and a learning rate must be given
// Throws Error (usage) naming the keys, where they were set, and what to do.
void check_between_keys(const Config& config, Completeness completeness);

}  // namespace pal::config
