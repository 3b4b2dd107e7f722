// run_info: machine.json of a run folder: program, machine and command of each start, one entry per start.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace pal::record {

using RunInfo = std::map<std::string, std::string>;  // pal, torch, host, cpu, cores, memory, ranks, started, command

// Of this process. `ranks`: "2 × 1 thread".
RunInfo this_machine(const std::string& ranks);
// Words as a user types them, quoted for a shell.
std::string command_text(const std::vector<std::string>& words);
// The command line of this process, quoted for a shell: "pal eval runs/a linear".
std::string command_line();
// Adds an entry. Never throws: the checkpoint writer reports a folder that cannot be written.
void add_run_info(const std::string& run_dir, const RunInfo& info);
// All entries, oldest first; none where the file is missing or cut.
std::vector<RunInfo> read_run_info(const std::string& run_dir);

}  // namespace pal::record
