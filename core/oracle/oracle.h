// oracle: a QuerySampler chooses questions, a Labeler answers them; any sampler works with any labeler. Samplers know
// neither files nor time: the query round (core/oracle/round/round.h) carries questions and answers, the ledger keeps
// them. Questions, answers and decisions: core/oracle/ledger/question.h.
//
// Order: a choice depends on (store, pool, seed, round) only, ties by sample id: the same for any sharding of the pool
//   and for any W. Randomness is counter-based: (seed, Purpose::oracle, round, sample).
// Collective: choose() by all ranks that hold rows of the pool (core/oracle/samplers/pool_rows.h); all of them get the
//             same queries.
// To add a sampler: core/oracle/samplers/samplers.h. To add a labeler: one file, one line in make_labeler, one test.
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

namespace pal::oracle {

struct OracleSpec;

// The samples a round may choose from, and their embeddings. The rows are in one process, or on several ranks, each
// with the rows of consecutive samples.
struct Pool {
  std::vector<int64_t> samples;  // distinct, any order; the same on every rank
  at::Tensor embeddings;         // (rows here, D), of samples[first …]; undefined when the sampler does not need them
  at::Tensor inputs = {};        // (rows here, values) the samples themselves (pixels); likewise
  int64_t first = 0;
  comm::Comm* comm = nullptr;  // of the ranks that hold the rows; null: this process holds all
};
enum class PoolNeeds { samples, embeddings, inputs };  // each with the ones before it
// Samples that are known not to belong to some class, and whose own class is unknown: drawn like all others, or before
// them, up to half of the pool.
enum class RefusedOrder { drawn, first };

// One round of questions.
struct Round {
  uint64_t seed = 0;
  int64_t round = 0;
  int64_t questions = 0;            // at most
  std::vector<Query> pending = {};  // asked before and not yet in the store: not to be asked again
  // Pairs that were asked and have no usable answer: unsure, broken, or contradicting the graph. They are not asked
  // again (choose_questions drops them); other pairs of these samples may be.
  std::vector<std::pair<int64_t, int64_t>> closed = {};
  std::vector<Decision> coarse = {};  // newest decisions about coarse questions, in order; the store knows their `no`s
};

class QuerySampler {
 public:
  virtual ~QuerySampler() = default;
  virtual std::string name() const = 0;
  // What the ranks compute for the pool before choose().
  virtual PoolNeeds needs() const = 0;
  // first: the sampler asks about a refused sample until its class is known. Otherwise only samples that are easy to
  // classify become known, and a model trained on these is wrong about the others.
  virtual RefusedOrder refused_order() const { return RefusedOrder::drawn; }
  // Queries without id; empty when this pool has nothing left to ask. Never a pair whose relation is known, inferred or
  // pending. A mixture of samplers sets Query::sampler.
  virtual std::vector<Query> choose(const graph::GraphStore& store, const Pool& pool, const Round& round) const = 0;
};

// Whether answers come at once, or later, from people.
enum class Answering { at_once, later };

// Answers questions. With Answering::later, publish() publishes the questions and collect() returns the answers that
// have arrived; it never waits. Other programs may submit answers to the questions of any labeler
// (core/oracle/ledger/inbox.h).
// Thread: one at a time.
class Labeler {
 public:
  virtual ~Labeler() = default;
  virtual std::string name() const = 0;
  virtual Answering answering() const { return Answering::at_once; }
  // at_once: an answer for every member, in order, by the vote-th annotator of this query (from 0); empty when there
  // are not that many annotators. A function of (query, vote): a resumed run gets the same answers.
  virtual std::vector<Answer> answer(const Query&, int64_t /*vote*/ = 0) const { return {}; }
  // later: publishes exactly these questions, in place of those before.
  virtual void publish(const std::vector<Query>& /*open*/) {}
  // later: answers that arrived since the last call; adds a sentence to `warnings` for each one that cannot be read.
  virtual std::vector<Entry> collect(std::vector<std::string>& /*warnings*/) { return {}; }
};

// What a labeler may know of the data set, and the folder of its files.
struct LabelerContext {
  std::vector<int64_t> labels;                    // (N), −1 unknown
  std::vector<int64_t> parents = {};              // of class nodes, as Dataset::parents; empty: no taxonomy
  std::string folder = {};                        // the run folder, for questions.jsonl and answers.jsonl
  int64_t samples = 0;                            // of the data set; 0: as many as labels
  std::function<std::string(int64_t)> name = {};  // name of a sample in the data set; empty: its number
};

// By oracle.labeler.
std::unique_ptr<Labeler> make_labeler(const OracleSpec& spec, LabelerContext of);

// Whether the sample is known to differ from a class or a sample, and no positive relation of it is known.
bool is_refused(const graph::GraphStore& store, int64_t sample);
// One sample of each class, drawn by the seed, with its label, −1 for all others: where samplers start with
// oracle.templates=given when the graph knows no labels.
std::vector<int64_t> draw_template_labels(const std::vector<int64_t>& labels, uint64_t seed);

// A decision that contradicts the graph, and the chain of earlier answers and labels that it contradicts.
struct Contradiction {
  Decision answer;
  std::vector<graph::Link> chain;
};
// What became of decisions that were inserted, in order.
struct AnswersUsed {
  int64_t inserted = 0;  // added a relation
  int64_t implied = 0;   // inferred before: kept, for when the answers behind the inference are withdrawn
  int64_t unsure = 0;    // relation unknown: nothing to insert
  std::vector<Contradiction> contradicted;  // left out of the store, kept in the ledger
};
AnswersUsed insert_answers(graph::GraphStore& store, const std::vector<Decision>& decisions);
// Their number, and the chain behind the first; "" when there are none.
std::string to_sentence(const std::vector<Contradiction>& against);

}  // namespace pal::oracle
