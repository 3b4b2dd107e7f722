// choices: the names that a config gives the values of an enum. One table reads and prints them.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/base/error.h"

namespace pal::config {

template <class E>
struct NamedChoice {
  const char* name;
  E value;
};

// Throws Error (usage) for a name that the table does not have; a loaded config has none such.
template <class E, size_t N>
E choice_of(const NamedChoice<E> (&table)[N], const std::string& name) {
  std::string all;
  for (const NamedChoice<E>& choice : table) {
    if (name == choice.name) return choice.value;
    all += (all.empty() ? "" : ", ") + std::string(choice.name);
  }
  PAL_CHECK(false, "unknown name", name, "choose one of " + all);
}

template <class E, size_t N>
const char* choice_name(const NamedChoice<E> (&table)[N], E value) {
  for (const NamedChoice<E>& choice : table) {
    if (choice.value == value) return choice.name;
  }
  PAL_ASSERT(false, "a value of an enum without a name");
}

}  // namespace pal::config
