// ledger_schema: the tables of a ledger, and how those of older programs become them.
#pragma once

#include <string>

#include "core/oracle/ledger/sqlite.h"

namespace pal::oracle {

// A new file gets its tables; an old one must be ours, of this run (kAnyRun: of any) and of a schema we know, and is
// brought to the newest. Inside a transaction of the caller.
void prepare_ledger(const Sqlite& db, const std::string& run_id);

}  // namespace pal::oracle
