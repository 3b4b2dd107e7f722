// recipe: the settings that a folder of pictures is trained with, each with the reason for its value.
//
// The values are in two tables of recipe.cpp: the networks, from large to small, and the graphs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"

namespace pal::launch {

// What a recipe depends on.
struct RecipeFacts {
  std::string train, test;  // data sets; test "": none
  std::string groups;       // FILE:COLUMN; ""
  int64_t images = 0;       // to train on
  int64_t labeled = 0;      // of them, with a label
  int64_t tested = 0;       // images of the test set
  int32_t side = 0;         // the shorter side of the images: of all, or the median
  bool one_size = false, gray = false;
  int gpus = 0, ranks = 1;
  double minutes = 30;
};
// Opens both sets.
RecipeFacts recipe_facts(const std::string& train, const std::string& test);

struct Setting {
  std::string key, value, why;
};

// The numbers of the table of networks that fit the pictures and the machine, from the largest on.
std::vector<size_t> fitting_networks(const RecipeFacts& facts);
// Settings of a network but for those of the length.
std::vector<Setting> recipe(const RecipeFacts& facts, size_t network);
// How long to train with a step of so many seconds: train.steps and what follows from it.
std::vector<Setting> recipe_length(const RecipeFacts& facts, int64_t batch, double step_seconds);
int64_t steps_for(double minutes, double step_seconds);
int64_t recipe_batch(const RecipeFacts& facts, size_t network);
// The steps that a network should get; fewer: the next one is tried.
inline constexpr int64_t kEnoughSteps = 500;

// YAML with a comment for each value. `head`: lines of a comment above it.
std::string recipe_yaml(const std::vector<Setting>& settings, const std::string& head);

}  // namespace pal::launch
