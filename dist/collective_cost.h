// collective_cost: seconds of a collective in the alpha-beta model: a message of n bytes takes alpha + n / beta.
//
// Math: p ranks on a ring, n bytes: all-reduce 2(p−1)·α + 2(p−1)/p·n/β; all-gather and broadcast likewise. With several
//   nodes it is either one ring through all GPUs, or a ring inside each node and a ring or a tree between the nodes,
//   whichever is faster: the nodes' cards then carry each byte once, not once per GPU.
//   Everything is linear in the alphas and in the 1/betas: so both can be fitted to measured times by least squares.
// Reference: Hockney (1994); Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH"
//   (2005); the latencies per step are those of NCCL's own model, src/graph/tuning.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pal {

struct CommLink {
  double alpha = 0;   // s per message
  double beta = 1;    // bytes/s
};

struct Fabric {
  int per_node = 1;    // GPUs (ranks) of a node
  CommLink node;           // between GPUs of a node, per GPU
  CommLink network;        // between nodes: beta is that of ALL cards of a node together
  double call = 0;     // s that any collective costs to start
};

enum class Collective { all_reduce, all_gather, broadcast, all_to_all };
enum class Route { flat_ring, hierarchical, best };

const char* collective_name(Collective collective);

// Of `ranks` GPUs, filling nodes one after another. `bytes` is what a rank holds after an all-reduce, an all-gather or a
// broadcast, and what it sends in an all-to-all. One rank: 0.
double collective_seconds(Collective collective, const Fabric& fabric, int ranks, double bytes, Route route = Route::best);

// One measured time.
struct CommSample {
  Collective collective;
  int ranks = 2;
  double bytes = 0, seconds = 0;
};
// α and β of ranks that share one node: the least relative errors over `samples`, of any collectives.
CommLink fit_link(const std::vector<CommSample>& samples);

}  // namespace pal
