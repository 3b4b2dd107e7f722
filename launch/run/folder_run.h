// folder_run: a folder of pictures made ready to train: imported, a step measured, a config written. For `pal start`
// and `pal train FOLDER`.
#pragma once

#include <string>
#include <vector>

#include "launch/run/image_folder.h"
#include "launch/run/recipe.h"

namespace pal::launch {

struct FolderRun {
  std::string program;      // this one
  std::string folder, out;  // out: the run folder, which holds the data sets and the config too
  FolderOptions options = {};
  double minutes = 30;
  int ranks = 0;                            // 0: as many as GPUs, else as cores, at most four
  std::vector<std::string> overrides = {};  // key=value of `pal train`

  std::string data() const { return out + "/data.h5"; }
  std::string test() const { return out + "/data-test.h5"; }
  std::string config() const { return out + "/start.yaml"; }
};

// runs/<name of the folder>.
std::string default_out(const std::string& folder);

// Whether its last start trained to the end; its checkpoints may have been removed since.
bool has_finished(const std::string& run);

// Prints what it decides. Sets `ranks`. What is there already stays: a data set of the same pictures, and a config.
// Returns the exit code of a step that failed, or 0.
int prepare_folder(FolderRun& folder);

}  // namespace pal::launch
