// captcha: "which of these are the same as this one?", asked for the class of which least is known; and outliers:
// "which of these do not belong?".
//
// Classes and templates: candidates.h. A grid asks up to `members` points against the template of the class with the
//   fewest known members for its prior (those asked in this round count as known, so that classes take turns and a stop
//   at any time leaves them balanced).
// Guide::embeddings  the points whose nearest class center is this one come first, the nearest first; then the others.
// Guide::classifier  the points that a classifier on the known members predicts as this class come first, in the order
//   of their draws (the nearest ones add little); then the others, the most likely first. For many classes: a grid then
//   holds mostly its own class.
// With a guide, a point that does not belong to its likeliest class is asked against the next one before any other
//   point: the known members are then a representative part of the class, not only its easy samples.
// Guide::none, and a class without an embedded member: in the order of the draws.
// Outliers ask only the points predicted as the class, the most likely first, and fewer grids where there are none.
// Center::embeddings, Center::input: the template is the known member in the pool nearest (cosine) to the mean of the
//   class, by embedding or by Pool::inputs; not without deduction, where an answer holds for its own template alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/oracle/samplers/candidates.h"

namespace pal::oracle {

struct CaptchaOptions {
  int64_t members = 10;
  Templates templates = Templates::given;
  Guide guide = Guide::embeddings;
  QueryKind kind = QueryKind::captcha;  // or outliers
  Center center = Center::off;
  std::vector<double> priors = {};  // by label; empty: equal; a label beyond the list has the mean one
};

std::unique_ptr<QuerySampler> make_captcha(const CaptchaOptions& options);

}  // namespace pal::oracle
