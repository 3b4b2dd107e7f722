// figures: one function for each of the paper's five figures and two more; experiment.cpp has their table.
#pragma once

#include <cstdint>

#include "core/theory/experiment.h"

namespace pal::theory {

// The streams of a trial of the query figures (trial_random's `what`).
constexpr uint32_t kDataStream = 0, kChoiceStream = 1, kPairStream = 2, kNetworkStream = 16;

FigureSpec active_figure();
FigureSpec contrastive_figure();
FigureSpec interpolation_figure();
FigureSpec missing_figure();
FigureSpec noise_figure();
FigureSpec network_figure();  // figure_network.cpp
FigureSpec scale_figure();

}  // namespace pal::theory
