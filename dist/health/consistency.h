// consistency: checks that all ranks have the same program, settings, data and parameters; an error names the ranks
// that differ.
//
// Collective: every function, on the computing thread. The error is the same on every rank, so it is printed once.
#pragma once

#include <cstdint>
#include <string>

#include "core/comm/comm.h"
#include "core/config/config.h"
#include "core/ops/named_tensors.h"

namespace pal::dist {

void check_same_program(comm::Comm& comm);
void check_same_config(const config::Config& config, comm::Comm& comm);  // names the keys
// `what`: "the training set FILE", "the graph".
void check_same_data(uint64_t fingerprint, const std::string& what, comm::Comm& comm);
// Whether every rank sees the folder that rank 0 sees.
void check_same_folder(const std::string& path, comm::Comm& comm);
// The parameters after `step` steps have the same bits everywhere; otherwise Error (lost).
void check_same_parameters(const ops::NamedTensors& parameters, int64_t step, comm::Comm& comm);
// The same for the graph with which a query round begins.
void check_same_graph(uint64_t fingerprint, comm::Comm& comm);

}  // namespace pal::dist
