#include "dist/scale/link_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/base/error.h"

namespace pal::dist {
namespace {

constexpr size_t kLeastSizes = 2;  // of messages in a piece
constexpr double kExact = 1e-6;    // squared relative error below which no fit is better than another

struct FittedPiece {
  CommPiece piece;
  double error = 0;  // sum of the squared relative errors
};

// Least squares of (A α + B /β) / t = 1: a steps and b bytes of each sample by asking the model with unit links.
FittedPiece fit_piece(std::span<const CommSample> samples) {
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const CommSample& s : samples) {
    const double a = ring_seconds(s, {1, 1e300}) / s.seconds;
    const double b = ring_seconds(s, {0, 1}) / s.seconds;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  const double det = aa * bb - ab * ab;
  double alpha = a1 / aa, inverse = 0;
  if (det > 1e-12 * aa * bb) alpha = (a1 * bb - b1 * ab) / det, inverse = (b1 * aa - a1 * ab) / det;
  if (alpha < 0) alpha = 0, inverse = b1 / bb;  // neither can be negative
  if (inverse <= 0) inverse = 1e-15, alpha = a1 / aa;
  FittedPiece out{{message_bytes(samples[0]), alpha, 1 / inverse}};
  for (const CommSample& s : samples) out.error += std::pow(ring_seconds(s, {alpha, 1 / inverse}) / s.seconds - 1, 2);
  return out;
}

}  // namespace

CommLink fit_link(std::vector<CommSample> samples, size_t most_pieces) {
  std::sort(samples.begin(), samples.end(),
            [](const CommSample& a, const CommSample& b) { return message_bytes(a) < message_bytes(b); });
  std::vector<size_t> begin;  // of the samples of each message size
  for (size_t k = 0; k < samples.size(); ++k) {
    if (k == 0 || message_bytes(samples[k]) > message_bytes(samples[k - 1])) begin.push_back(k);
  }
  const size_t sizes = begin.size();
  PAL_CHECK(sizes >= kLeastSizes, "sizes of messages that α and β are fitted to", sizes, "measure at least two");
  begin.push_back(samples.size());
  const auto piece = [&](size_t first, size_t end) {
    return fit_piece(std::span(samples).subspan(begin[first], begin[end] - begin[first]));
  };

  // The best k + 1 pieces for the sizes before `end`: their error, and where the last of them begins.
  struct Cover {
    double error = std::numeric_limits<double>::infinity();
    size_t last = 0;
  };
  std::vector<std::vector<Cover>> cover(most_pieces, std::vector<Cover>(sizes + 1));
  for (size_t end = kLeastSizes; end <= sizes; ++end) {
    for (size_t last = 0; last + kLeastSizes <= end; ++last) {
      const double error = piece(last, end).error;
      if (last == 0) cover[0][end] = {error, 0};
      for (size_t k = 1; k < most_pieces; ++k) {
        if (cover[k - 1][last].error + error < cover[k][end].error)
          cover[k][end] = {cover[k - 1][last].error + error, last};
      }
    }
  }
  const auto n = static_cast<double>(samples.size());
  const auto score = [&](size_t k) {
    return n * std::log(std::max(cover[k][sizes].error / n, kExact)) + 3 * static_cast<double>(k) * std::log(n);
  };
  size_t best = 0;
  for (size_t k = 1; k < most_pieces; ++k) {
    if (score(k) < score(best)) best = k;
  }
  CommLink link;
  for (size_t k = best, end = sizes;; --k) {
    const size_t first = cover[k][end].last;
    const CommPiece fitted = piece(first, end).piece;
    if (k == 0) {
      link.alpha = fitted.alpha;
      link.beta = fitted.beta;
      return link;
    }
    link.larger.insert(link.larger.begin(), fitted);
    end = first;
  }
}

}  // namespace pal::dist
