#include "dist/scale/collective_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "kernels/base/error.h"

namespace pal::dist {
namespace {

double log2_up(int n) { return std::ceil(std::log2(static_cast<double>(n))); }

double ring_message(Collective c, int p, double bytes) { return c == Collective::broadcast ? bytes : bytes / p; }

// Seconds on a ring of `p` ranks; `piece` has the alpha and beta of every message.
double ring(Collective c, const CommPiece& piece, int p, double bytes) {
  if (p <= 1) return 0;
  const double steps = p - 1, share = steps / p;
  switch (c) {
    case Collective::all_reduce:
      return 2 * steps * piece.alpha + 2 * share * bytes / piece.beta;
    case Collective::all_gather:
      return steps * piece.alpha + share * bytes / piece.beta;
    case Collective::broadcast:
      return steps * piece.alpha + bytes / piece.beta;  // in pieces, pipelined
    case Collective::all_to_all:
      return steps * piece.alpha + share * bytes / piece.beta;
  }
  return 0;
}
double ring(Collective c, const CommLink& link, int p, double bytes) {
  return ring(c, link.at(ring_message(c, p, bytes)), p, bytes);
}

// The same with the fewest steps: trees, and recursive doubling for the all-gather, whose last message is half of all.
double tree(Collective c, const CommLink& link, int p, double bytes) {
  if (p <= 1) return 0;
  const double steps = log2_up(p), share = (p - 1.0) / p;
  const CommPiece whole = link.at(bytes), half = link.at(bytes / 2);
  switch (c) {
    case Collective::all_reduce:
      return 2 * steps * whole.alpha + 2 * bytes / whole.beta;
    case Collective::all_gather:
      return steps * half.alpha + share * bytes / half.beta;
    case Collective::broadcast:
      return steps * whole.alpha + bytes / whole.beta;
    case Collective::all_to_all:
      return ring(c, link, p, bytes);
  }
  return 0;
}

const CommLink& node_link(const Fabric& fabric, Collective c) {
  return fabric.gather && c != Collective::all_reduce ? *fabric.gather : fabric.node;
}

struct Shape {
  int local, nodes;
};
Shape shape_of(const Fabric& fabric, int ranks) {
  const int local = std::min(ranks, fabric.per_node);
  return {local, (ranks + local - 1) / local};
}

double flat(Collective c, const Fabric& fabric, int ranks, double bytes) {
  const auto [local, nodes] = shape_of(fabric, ranks);
  if (nodes == 1) return ring(c, node_link(fabric, c), ranks, bytes);
  // Steps between nodes use the network, the others the node's link; each node's cards carry all bytes of the ring.
  const double slow = nodes - 1, fast = ranks - nodes, message = ring_message(c, ranks, bytes);
  const CommPiece node = node_link(fabric, c).at(message), network = fabric.network.at(message);
  return ring(c,
              CommPiece{0, (fast * node.alpha + slow * network.alpha) / (ranks - 1), std::min(node.beta, network.beta)},
              ranks, bytes);
}

double hierarchical(Collective c, const Fabric& fabric, int ranks, double bytes) {
  const auto [local, nodes] = shape_of(fabric, ranks);
  const CommLink& node = node_link(fabric, c);
  if (c == Collective::all_to_all) {  // of a rank's bytes, what leaves the node shares its cards with the neighbors'
    const double inside = bytes * local / ranks, outside = bytes - inside;
    const CommPiece network = fabric.network.at(ring_message(c, ranks, bytes));
    return ring(c, node, local, inside) + (nodes - 1) * network.alpha + local * outside / network.beta;
  }
  const double between = std::min(ring(c, fabric.network, nodes, bytes), tree(c, fabric.network, nodes, bytes));
  return std::min(ring(c, node, local, bytes), tree(c, node, local, bytes)) + between;
}

}  // namespace

CommPiece CommLink::at(double message) const {
  CommPiece piece{0, alpha, beta};
  for (const CommPiece& next : larger) {
    if (message >= next.from) piece = next;
  }
  return piece;
}

const char* collective_name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::all_gather:
      return "all_gather";
    case Collective::broadcast:
      return "broadcast";
    case Collective::all_to_all:
      return "all_to_all_v";
  }
  return "";
}

double collective_seconds(Collective collective, const Fabric& fabric, int ranks, double bytes, Route route) {
  if (ranks <= 1) return 0;
  const double a = flat(collective, fabric, ranks, bytes), b = hierarchical(collective, fabric, ranks, bytes);
  return fabric.call + (route == Route::flat_ring ? a : route == Route::hierarchical ? b : std::min(a, b));
}

double message_bytes(const CommSample& sample) { return ring_message(sample.collective, sample.ranks, sample.bytes); }

double ring_seconds(const CommSample& sample, const CommLink& link) {
  return ring(sample.collective, link, sample.ranks, sample.bytes);
}

namespace {

constexpr size_t kLeastSizes = 2;  // of messages in a piece
constexpr double kExact = 1e-6;    // squared relative error below which no fit is better than another

struct FittedPiece {
  CommPiece piece;
  double error = 0;  // sum of the squared relative errors
};

// Least squares of (A α + B /β) / t = 1: a and b, the steps and bytes of a sample, are the model's times with unit
// links.
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
