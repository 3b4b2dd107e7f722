#include "dist/scale/collective_cost.h"

#include <algorithm>
#include <cmath>

namespace pal::dist {
namespace {

double log2_up(int n) { return std::ceil(std::log2(static_cast<double>(n))); }

double ring_message(Collective c, int p, double bytes) { return c == Collective::broadcast ? bytes : bytes / p; }

// Of `p` peers whose messages all take what `piece` says.
double ring(Collective c, const CommPiece& piece, int p, double bytes) {
  if (p <= 1) return 0;
  const double steps = p - 1, share = steps / p;
  switch (c) {
    case Collective::all_reduce:
      return 2 * steps * piece.alpha + 2 * share * bytes / piece.beta;
    case Collective::all_gather:
      return steps * piece.alpha + share * bytes / piece.beta;
    case Collective::broadcast:
      return steps * piece.alpha + bytes / piece.beta;  // in pieces, one behind the other
    case Collective::all_to_all:
      return steps * piece.alpha + share * bytes / piece.beta;
  }
  return 0;
}
double ring(Collective c, const CommLink& link, int p, double bytes) {
  return ring(c, link.at(ring_message(c, p, bytes)), p, bytes);
}

// The same with as few steps as can be: trees, and doubling for the all-gather, whose last message is half of all.
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
  // The steps between nodes take the network's time, the others the node's; each node's cards pass all bytes of the ring.
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

}  // namespace pal::dist
