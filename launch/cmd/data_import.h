// data_import: `pal data import`: which importer, its progress, its report.
#pragma once

#include <string>

#include "core/data/import/import.h"
#include "launch/cli.h"

namespace pal::launch {

struct DataImport {
  std::string format, classes;  // classes: names with commas between them
  data::ImportOptions options;
};

// The options of the sub-command; they are in `import` when it is parsed.
void add_import_options(CLI::App& command, DataImport& import);
int run_data_import(DataImport import);

}  // namespace pal::launch
