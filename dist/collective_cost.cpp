#include "dist/collective_cost.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"

namespace pal {
namespace {

double log2_up(int n) { return std::ceil(std::log2(static_cast<double>(n))); }

// Of `p` peers on one kind of link.
double ring(Collective c, const CommLink& link, int p, double bytes) {
  if (p <= 1) return 0;
  const double steps = p - 1, share = steps / p;
  switch (c) {
    case Collective::all_reduce: return 2 * steps * link.alpha + 2 * share * bytes / link.beta;
    case Collective::all_gather: return steps * link.alpha + share * bytes / link.beta;
    case Collective::broadcast: return steps * link.alpha + bytes / link.beta;    // in pieces, one behind the other
    case Collective::all_to_all: return steps * link.alpha + share * bytes / link.beta;
  }
  return 0;
}

// The same with as few steps as can be: trees, and doubling for the all-gather.
double tree(Collective c, const CommLink& link, int p, double bytes) {
  if (p <= 1) return 0;
  const double steps = log2_up(p), share = (p - 1.0) / p;
  switch (c) {
    case Collective::all_reduce: return 2 * steps * link.alpha + 2 * bytes / link.beta;
    case Collective::all_gather: return steps * link.alpha + share * bytes / link.beta;
    case Collective::broadcast: return steps * link.alpha + bytes / link.beta;
    case Collective::all_to_all: return ring(c, link, p, bytes);
  }
  return 0;
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
  if (nodes == 1) return ring(c, fabric.node, ranks, bytes);
  // The steps between nodes take the network's time, the others the node's; each node's cards pass all bytes of the ring.
  const double slow = nodes - 1, fast = ranks - nodes;
  const CommLink narrow{(fast * fabric.node.alpha + slow * fabric.network.alpha) / (ranks - 1), std::min(fabric.node.beta, fabric.network.beta)};
  return ring(c, narrow, ranks, bytes);
}

double hierarchical(Collective c, const Fabric& fabric, int ranks, double bytes) {
  const auto [local, nodes] = shape_of(fabric, ranks);
  if (c == Collective::all_to_all) {   // of a rank's bytes, what leaves the node shares its cards with the neighbours'
    const double inside = bytes * local / ranks, outside = bytes - inside;
    return ring(c, fabric.node, local, inside) + (nodes - 1) * fabric.network.alpha + local * outside / fabric.network.beta;
  }
  const double between = std::min(ring(c, fabric.network, nodes, bytes), tree(c, fabric.network, nodes, bytes));
  return std::min(ring(c, fabric.node, local, bytes), tree(c, fabric.node, local, bytes)) + between;
}

}  // namespace

const char* collective_name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::all_gather: return "all_gather";
    case Collective::broadcast: return "broadcast";
    case Collective::all_to_all: return "all_to_all_v";
  }
  return "";
}

double collective_seconds(Collective collective, const Fabric& fabric, int ranks, double bytes, Route route) {
  if (ranks <= 1) return 0;
  const double a = flat(collective, fabric, ranks, bytes), b = hierarchical(collective, fabric, ranks, bytes);
  return fabric.call + (route == Route::flat_ring ? a : route == Route::hierarchical ? b : std::min(a, b));
}

CommLink fit_link(const std::vector<CommSample>& samples) {
  // Least squares of (A α + B /β) / t = 1: a steps and b bytes of each sample by asking the model with unit links.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (const CommSample& s : samples) {
    const double a = ring(s.collective, {1, 1e300}, s.ranks, s.bytes) / s.seconds;
    const double b = ring(s.collective, {0, 1}, s.ranks, s.bytes) / s.seconds;
    aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
  }
  const double det = aa * bb - ab * ab;
  PAL_CHECK(samples.size() >= 2 && det > 1e-12 * aa * bb, "times that α and β are fitted to", samples.size(), "measure at least two sizes");
  double alpha = (a1 * bb - b1 * ab) / det, inverse = (b1 * aa - a1 * ab) / det;
  if (alpha < 0) alpha = 0, inverse = b1 / bb;      // neither can be negative
  if (inverse <= 0) inverse = 1e-15, alpha = a1 / aa;
  return {alpha, 1 / inverse};
}

}  // namespace pal
