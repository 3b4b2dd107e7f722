// label_spec: the user's words on the labeling page.
#pragma once

#include <string>

namespace pal::label {

struct LabelSpec {
  std::string question;      // "": the page's own for each kind of question
  std::string instructions;  // plain text
  bool class_names = true;   // the template's class, where it is known
};

}  // namespace pal::label
