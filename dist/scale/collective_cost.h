// collective_cost: seconds of a collective in the alpha-beta model, and the fit of a link to measured times. A message
// of n bytes takes alpha + n / beta; a link may have other numbers for larger messages.
//
// Math: p ranks on a ring, n bytes: all-reduce 2(p−1)·α + 2(p−1)/p·n/β; all-gather and broadcast likewise. With several
//   nodes it is either one ring through all GPUs, or a ring inside each node and a ring or a tree between the nodes,
//   whichever is faster: the nodes' cards then carry each byte once, not once per GPU.
//   A time is A·α + B/β with steps A and bytes B: linear in α and 1/β, so each piece of a link is a least squares fit
//   of the relative errors. The pieces begin at the best choice of measured sizes (Bellman 1961), and their number has
//   the least n·log(mean squared error) + 3·pieces·log(n) (Schwarz 1978): each must justify its three numbers.
// Reference: Hockney (1994); Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
//   MPICH" (2005); the latencies per step are those of NCCL's own model, src/graph/tuning.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pal::dist {

// What messages of `from` bytes and more take, up to the next piece.
struct CommPiece {
  double from = 0;
  double alpha = 0;  // s per message
  double beta = 1;   // bytes/s
};

// Libraries change their protocol with the size of a message (eager copies, then a rendezvous), and memory is slower
// than caches: a link may have pieces beyond the first, in the order of their sizes.
struct CommLink {
  double alpha = 0;
  double beta = 1;
  std::vector<CommPiece> larger = {};

  CommPiece at(double message_bytes) const;
};

struct Fabric {
  int per_node = 1;                     // GPUs (ranks) of a node
  CommLink node;                        // between GPUs of a node, per GPU
  CommLink network;                     // between nodes: beta is that of ALL cards of a node together
  double call = 0;                      // s that any collective costs to start
  std::optional<CommLink> gather = {};  // in a node, for collectives that do not add numbers up, where that differs
};

enum class Collective { all_reduce, all_gather, broadcast, all_to_all };
enum class Route { flat_ring, hierarchical, best };

const char* collective_name(Collective collective);

// Of `ranks` GPUs, filling nodes one after another. `bytes` is what a rank holds after an all-reduce, an all-gather or
// a broadcast, and what it sends in an all-to-all. One rank: 0.
double collective_seconds(Collective collective, const Fabric& fabric, int ranks, double bytes,
                          Route route = Route::best);

// One measured time.
struct CommSample {
  Collective collective;
  int ranks = 2;
  double bytes = 0, seconds = 0;
};
// Bytes of one message of it on a ring: a rank's share, or all of a broadcast.
double message_bytes(const CommSample& sample);
// Seconds of it on a ring of ranks that share one node.
double ring_seconds(const CommSample& sample, const CommLink& link);

// The link of ranks that share one node, from times of any collectives. A piece covers at least two sizes and begins at
// a measured one: libraries switch at round numbers. Four pieces: two protocols, another algorithm, and sizes beyond
// the caches.
CommLink fit_link(std::vector<CommSample> samples, size_t most_pieces = 4);

}  // namespace pal::dist
