// run_spec: all settings of a run as typed structs, made of the config once. Behind it no setting is looked up by name.
//
// Each struct lies in the folder that uses it; their defaults have one home, the table of core/config/keys.cpp.
#pragma once

#include "core/config/config.h"
#include "core/data/loader/augment_spec.h"
#include "core/data/loader/data_spec.h"
#include "core/graph/settings.h"
#include "core/label/label_spec.h"
#include "core/loss/spec.h"
#include "core/model/spec.h"
#include "core/optim/spec.h"
#include "core/oracle/oracle_spec.h"
#include "core/setup/train_spec.h"

namespace pal::setup {

struct RunSpec {
  data::DataSpec data;
  data::AugmentSpec augment;
  model::ModelSpec model;  // of images; setup::model_spec has the width of a file of features
  graph::GraphSettings graph;
  loss::LossSpec loss;
  optim::OptimSpec optim;
  oracle::OracleSpec oracle;
  TrainSpec train;
  EvalSpec eval;
  CheckpointSpec checkpoint;
  LogSpec log;
  CompareSpec compare;
  config::Config config;  // what it was made of: config.yaml of the run folder, and the keys in which two runs differ
};

// Reads no file.
RunSpec make_run_spec(const config::Config& config);
// The section label, which only the labeling page and the tasks for Label Studio read.
label::LabelSpec label_spec(const config::Config& config);

}  // namespace pal::setup
