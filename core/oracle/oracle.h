// oracle: who asks and who answers. A QuerySampler chooses questions, a Labeler answers them; any sampler works with any
// labeler. Samplers know neither ranks, files nor time: the query round (dist) carries questions and answers, the ledger
// keeps them. What a question, an answer and a decision are: core/oracle/ledger/question.h.
//
// Order: a choice is a function of (store, pool, seed, round) alone, ties by sample id: the same for any sharding of the
//   pool and for any W. Randomness is counter-based: (seed, Purpose::oracle, round, sample).
// Collective: choose() by all ranks that hold rows of the pool (core/oracle/samplers/pool_rows.h); all of them get the same queries.
// To add a sampler or a labeler: one file, one line in its factory, one test.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/comm.h"
#include "core/graph/store.h"
#include "core/oracle/ledger/question.h"

namespace pal::config {
class Config;
}

namespace pal::oracle {

// The samples a round may choose from, and what the model thinks of them. The rows lie in one process, or on several ranks,
// each with those of a stretch of the samples.
struct Pool {
  std::vector<int64_t> samples;  // distinct, any order; the same on every rank
  at::Tensor embeddings;   // (rows here, D), of samples[first …]; undefined when the sampler did not ask for them
  at::Tensor inputs = {};  // (rows here, values) what the samples themselves are (pixels); likewise
  int64_t first = 0;
  comm::Comm* comm = nullptr;  // of the ranks that hold the rows; null: all are here
};
enum class PoolNeeds { samples, embeddings, inputs };  // each with what stands before it
// Samples that a class refused and no other has taken yet: drawn as all others, or before them, up to half of the pool.
enum class RefusedOrder { drawn, first };

// One round of questions.
struct Round {
  uint64_t seed = 0;
  int64_t round = 0;
  int64_t questions = 0;            // at most this many (the round's share, cut by what is left of the budget)
  std::vector<Query> pending = {};  // asked before and not yet in the store: not to be asked again
  // Pairs that were asked and about which nothing can be known: unsure, broken, or against what is known. Not to be asked
  // again (the query round drops such a question); about other pairs of these samples anything may be asked.
  std::vector<std::pair<int64_t, int64_t>> closed = {};
  std::vector<Decision> coarse =
      {};  // decisions about coarse questions that stand, in order; the store knows their `no`s
};

class QuerySampler {
 public:
  virtual ~QuerySampler() = default;
  virtual std::string name() const = 0;
  // What the ranks have to compute of the pool before choose().
  virtual PoolNeeds needs() const = 0;
  // first: it asks on about a refused sample until its class is known. Who leaves them knows only samples that are easy to
  // place, and what is learned from those alone is wrong about all others.
  virtual RefusedOrder refused_order() const { return RefusedOrder::drawn; }
  // Queries without id; none when nothing is left to ask of this pool. Never a relation known, implied or pending. A
  // mixture of samplers names each query's own (Query::sampler).
  virtual std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const = 0;
};

// Whether answers come at once, or when people find the time.
enum class Answering { at_once, later };

// Who answers. With Answering::later the questions are handed out by publish(), and what has come in since is taken by
// collect(); it never waits. Other programs may hand in answers to questions of any labeler (core/oracle/ledger/inbox.h).
// Thread: one at a time.
class Labeler {
 public:
  virtual ~Labeler() = default;
  virtual std::string name() const = 0;
  virtual Answering answering() const { return Answering::at_once; }
  // at_once: an answer for every member, in order, by the vote-th annotator of this query (from 0); none when there are
  // not that many annotators. A function of (query, vote): a resumed run is told the same.
  virtual std::vector<Answer> answer(const Query&, int64_t /*vote*/ = 0) const { return {}; }
  // later: hands out exactly these questions, in place of those before.
  virtual void publish(const std::vector<Query>& /*open*/) {}
  // later: answers that came in since the last call; one that cannot be read is left out with a sentence.
  virtual std::vector<Entry> collect(std::vector<std::string>& /*warnings*/) { return {}; }
};

// What a labeler may know of the data set, and where its files lie.
struct LabelerContext {
  std::vector<int64_t> labels;                    // (N), −1 unknown
  std::vector<int64_t> parents = {};              // of class nodes, as Dataset::parents; empty: no taxonomy
  std::string folder = {};                        // the run folder, for questions.jsonl and answers.jsonl
  int64_t samples = 0;                            // of the data set; 0: as many as labels
  std::function<std::string(int64_t)> name = {};  // what the data set calls a sample; empty: its number
};

// By oracle.labeler.
std::unique_ptr<Labeler> make_labeler(const config::Config& config, LabelerContext of);

// Whether the sample was refused by a class or a pair, and no positive relation of it is known.
bool is_refused(const graph::GraphStore& store, int64_t sample);
// One sample of each class, drawn by the seed, with its label, −1 for all others: what captcha starts from
// (oracle.templates=given) when the graph knows no labels.
std::vector<int64_t> draw_template_labels(const std::vector<int64_t>& labels, uint64_t seed);

// An answer against what is known, and the chain of earlier answers and labels that says otherwise.
struct Contradiction {
  Decision answer;
  std::vector<graph::Link> chain;
};
// What became of decisions handed to the store, in order.
struct AnswersUsed {
  int64_t inserted = 0;                     // told something new
  int64_t implied = 0;                      // known already: kept, it stands when what implied it is taken back
  int64_t unsure = 0;                       // relation unknown: nothing to insert
  std::vector<Contradiction> contradicted;  // left out of the store, kept in the ledger
};
AnswersUsed insert_answers(graph::GraphStore& store, const std::vector<Decision>& decisions);
// How many there are, and the chain behind the first; "" of none.
std::string to_sentence(const std::vector<Contradiction>& against);

}  // namespace pal::oracle
