// taxonomy: the tree above the classes: from a file of pairs, or from WordNet for classes named by wnid (n01440764).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pal::data {

struct Taxonomy {
  std::vector<int64_t> parents;    // (classes + inner nodes): the parent of each; −1 root
  std::vector<std::string> names;  // of the inner nodes
};

// `where`: a CSV file of child,parent names; "wordnet": Debian's data.noun (package wordnet-base); "wordnet:FILE".
// Inner nodes are those above the classes, in the order in which a walk from each class upwards meets them first.
// Of several hypernyms the first one counts: WordNet is no tree. Throws Error (data) for a circle or a class that is not
// in WordNet.
Taxonomy read_taxonomy(const std::string& where, const std::vector<std::string>& classes);

}  // namespace pal::data
