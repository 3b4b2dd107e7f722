// task_content: what people see of a question in Label Studio: names, pictures, the words of the question.
#pragma once

#include <cstdint>
#include <string>

#include "core/label/label_spec.h"
#include "core/oracle/ledger/label_studio.h"
#include "launch/label/pictures.h"

namespace pal::launch {

// The names of the classes under a node of the taxonomy, the first of them.
std::string node_name(const data::Dataset& data, int64_t node);

// The data set and the pictures must outlive the result. A stored picture that cannot be read is left empty, with a
// line on standard error.
oracle::TaskContent task_content(const label::LabelSpec& words, const data::Dataset& data, const Pictures& pictures);

}  // namespace pal::launch
