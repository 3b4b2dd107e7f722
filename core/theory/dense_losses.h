// dense_losses: formulas of the paper on a dense graph, for cases that the criteria of core/loss do not cover.
#pragma once

#include <cstdint>
#include <vector>

#include "core/theory/minimize.h"

namespace pal::theory {

Matrix supervised_graph(const std::vector<int64_t>& class_sizes);  // YYᵀ, samples sorted by class
Matrix class_indicators(const std::vector<int64_t>& class_sizes);  // Y
std::vector<double> degrees(const Matrix& graph);

double literal_vic2(const Matrix& z, const Matrix& graph, Matrix* gradient = nullptr);  // ‖ZZᵀ − G‖²
// ‖Z̃ᵀGZ̃ − I‖² with normalized columns of Z: Barlow Twins as printed, G not normalized.
double literal_barlow(const Matrix& z, const Matrix& graph);
// The sampled loss as printed, over all pairs: Σ G_ij‖z_i − z_j‖² + Σ R(z_i, z_j).
double literal_printed_vic2(const Matrix& z, const Matrix& graph, Matrix* gradient = nullptr);
double printed_repulsion(const double* a, const double* b, int64_t width);  // R(a, b)

}  // namespace pal::theory
