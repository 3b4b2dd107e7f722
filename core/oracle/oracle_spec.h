// oracle_spec: who chooses the questions of a run, who answers them and when that ends: the settings oracle.*.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/choices.h"
#include "core/oracle/ledger/consensus.h"
#include "core/oracle/stop_rules.h"

namespace pal::oracle {

enum class LabelerKind {
  labels,
  pairs,
  exchange
};                                        // the data set's labels, pairs of a file, people and programs by files
enum class WhileWaiting { train, exit };  // while people answer: continue training, or end with exit code 75
// none: no classes; every component is a point. automatic: given where the run knows a label, else discover.
enum class Templates { none, given, discover, automatic };
enum class Guide { none, embeddings, classifier };  // which class a sample is asked against first
enum class Center { off, embeddings, input };       // captcha: whether templates move to the middle of their class
enum class Uncertainty { entropy, margin, boundary };

inline constexpr config::NamedChoice<Guide> kGuides[] = {
    {"none", Guide::none}, {"embeddings", Guide::embeddings}, {"classifier", Guide::classifier}};

// The defaults are those of core/config/keys.cpp.
struct OracleSpec {
  std::string sampler = "none";  // a name of the table of samplers; none: nothing is asked
  std::vector<std::string> mix;  // sampler=mix: its parts, as the config has them
  LabelerKind labeler = LabelerKind::labels;
  std::string pairs;  // labeler=pairs: the file
  int64_t votes = 1;  // answers wanted for each question
  ConsensusKind consensus = ConsensusKind::majority;
  int64_t repeats = 0;                  // further answers in a contradiction
  int64_t annotators = 1;               // simulated
  double noise = 0;                     // share of flipped answers
  std::vector<double> annotator_noise;  // of each annotator; empty: noise for all
  double cost_pair = 0, cost_grid = 0, cost_coarse = 0;
  WhileWaiting wait = WhileWaiting::train;
  int64_t every = 1;  // steps between rounds
  int64_t questions_per_round = 0;
  int64_t pool = 0;  // samples that a round may choose from
  StopLimits limits;
  uint64_t seed = 0;

  // Of single samplers.
  int64_t members = 1;  // samples asked against one template at a time
  Templates templates = Templates::automatic;
  Guide class_guess = Guide::classifier;
  Center center = Center::off;  // captcha
  std::vector<double> priors;   // captcha: share of each class; empty: equal
  int64_t outliers = 1;
  Uncertainty measure = Uncertainty::margin;
  int64_t heads = 2;              // ensemble
  int64_t clusters = 0;           // pruning; 0: as many as classes
  double pruning_near_until = 0;  // pruning
  int64_t support = 0;            // nnclr
  int64_t neighbors = 1;          // nnclr
  double coarse_accuracy = 0;     // coarse

  bool asks() const { return sampler != "none"; }
};

}  // namespace pal::oracle
