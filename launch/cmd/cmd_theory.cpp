// cmd_theory: pal theory: checks each statement of the paper by a computation and prints a line for it.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "core/io/files.h"
#include "core/theory/statement.h"
#include "kernels/base/error.h"
#include "launch/cli.h"
#include "launch/commands.h"
#include "launch/terminal.h"

namespace pal::launch {

int cmd_theory(const std::vector<std::string>& arguments, Context&) {
  std::string json_path;
  CLI::App app(
      "Checks the statements of the paper: identities, recovery, optima, sampling, descent. Exit 1 if one fails.",
      "pal theory");
  app.add_option("--json", json_path, "also write the results to this file");
  app.footer(
      "Where the printed statement is wrong, the line gives the correct one and both numbers.\nExample:\n  pal theory "
      "--json theory.json");
  if (const int code = parse_arguments(app, arguments); code >= 0) return code;

  std::unique_ptr<Progress> bar;
  const std::vector<theory::CheckedClaim> statements = theory::check_statements([&](int64_t done, int64_t total) {
    if (!bar) bar = std::make_unique<Progress>("groups of statements", total);
    bar->update(done, "");
  });
  bar.reset();
  std::vector<std::vector<std::string>> rows = {{"", "group", "statement, and below it what was measured"}};
  nlohmann::json out = {{"statements", nlohmann::json::array()}};
  int failed = 0;
  for (const theory::CheckedClaim& s : statements) {
    rows.push_back({s.holds ? "PASS" : "FAIL", s.group, s.claim});
    rows.push_back({"", "", s.figure});
    out["statements"].push_back({{"group", s.group}, {"claim", s.claim}, {"figure", s.figure}, {"holds", s.holds}});
    failed += !s.holds;
  }
  out["failed"] = failed;
  fmt::print("{}{} of {} statements hold\n", format_table(rows), statements.size() - static_cast<size_t>(failed),
             statements.size());
  if (!json_path.empty()) io::write_file_atomically(json_path, out.dump(2) + "\n");
  return static_cast<int>(failed == 0 ? Exit::ok : Exit::check_failed);
}

}  // namespace pal::launch
