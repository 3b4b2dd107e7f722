// pal/oracle.h: active learning: samplers choose questions, labelers answer them, the ledger keeps both.
#pragma once

#include "core/oracle/labeler.h"
#include "core/oracle/ledger/ledger.h"
#include "core/oracle/oracle.h"
#include "core/oracle/samplers/samplers.h"
