// captcha: "which of these are the same as this one?" asked for the class of which least is known.
//
// Templates are one sample for each class. given: the classes of the labels the store was started with. discover: in
//   addition every component, and then every sample, known to differ from all templates before it (larger components
//   first, ties by id); with nothing known the first sample of the pool is the first template.
// A grid asks up to `members` samples of the pool against the template with the fewest known members (those asked in
//   this round count as known, so that grids go round). A component is asked at most once in a round: two answers about
//   it could imply each other. Guided by embeddings, the samples nearest to the class's centre come first, those that
//   lie nearer to another class's centre last; otherwise, and for a class without an embedded member, the order is drawn
//   by (seed, Purpose::oracle, round, sample).
#pragma once

#include <cstdint>
#include <memory>

#include "core/oracle/oracle.h"

namespace pal {

enum class Templates { given, discover };
enum class Guide { none, embeddings };

struct CaptchaOptions {
  int64_t members = 10;
  Templates templates = Templates::given;
  Guide guide = Guide::embeddings;
};

std::unique_ptr<QuerySampler> make_captcha(const CaptchaOptions& options);

}  // namespace pal
