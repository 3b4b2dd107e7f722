// pal/graph.h: similarity graphs: what is known about the relations of samples, and the graph of a batch made of it.
#pragma once

#include "core/graph/batch_graph.h"
#include "core/graph/build.h"
#include "core/graph/store.h"
#include "core/graph/weighted_edges.h"
