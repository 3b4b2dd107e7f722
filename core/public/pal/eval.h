// pal/eval.h: frozen features and what they are worth: nearest neighbors, linear probe, rank.
#pragma once

#include "core/eval/embed.h"
#include "core/eval/knn.h"
#include "core/eval/linear_probe.h"
#include "core/eval/representation.h"
#include "core/eval/scores.h"
