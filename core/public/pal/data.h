// pal/data.h: data sets in PAL's shards: read samples by id, write shards, and load augmented views on threads.
#pragma once

#include "core/data/dataset.h"
#include "core/data/loader/loader.h"
#include "core/data/shard_writer.h"
