// run_info: machine.json of a run folder: which program on which machine trained it, and by what command; one entry a start.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pal::record {

using RunInfo = std::map<std::string, std::string>;  // pal, torch, host, cpu, cores, memory, ranks, started, command

// Of this process. `ranks`: "2 × 1 thread".
RunInfo this_machine(const std::string& ranks);
// How this process was called, as one would type it: "pal eval runs/a linear".
std::string command_line();
// Adds an entry. A folder that cannot be written to is somebody else's to report: nothing is thrown.
void add_run_info(const std::string& run_dir, const RunInfo& info);
// All entries, oldest first; none where the file is missing or cut.
std::vector<RunInfo> read_run_info(const std::string& run_dir);

}  // namespace pal::record
