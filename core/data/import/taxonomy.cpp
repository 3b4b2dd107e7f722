#include <algorithm>
#include <filesystem>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "core/data/import/import_internal.h"
#include "core/io/csv.h"
#include "core/io/regular_file.h"
#include "kernels/base/error.h"

namespace pal::data {
namespace {

constexpr const char* kWordNet = "/usr/share/wordnet/data.noun";

// Walks from each class to its root. parent_of(name) → the parent's name, "" for a root; shown(name) → as it is stored.
template <class ParentOf, class Shown>
Taxonomy climb(const std::vector<std::string>& classes, const ParentOf& parent_of, const Shown& shown) {
  Taxonomy tree;
  std::unordered_map<std::string, int64_t> number;
  std::vector<std::string> nodes = classes;
  for (size_t c = 0; c < classes.size(); ++c) number.emplace(classes[c], static_cast<int64_t>(c));
  for (size_t node = 0; node < nodes.size(); ++node) {  // nodes grows: breadth first, level by level above the classes
    const std::string parent = parent_of(nodes[node]);
    if (parent.empty()) {
      tree.parents.push_back(-1);
      continue;
    }
    const auto [found, is_new] = number.emplace(parent, static_cast<int64_t>(nodes.size()));
    PAL_DATA_CHECK(found->second >= static_cast<int64_t>(classes.size()),
                   "taxonomy: a class is the parent of another class", parent,
                   "classes are leaves: give the parent another name");
    if (is_new) {
      nodes.push_back(parent);
      tree.names.push_back(shown(parent));
    }
    tree.parents.push_back(found->second);
  }
  return tree;
}

Taxonomy from_pairs(const std::string& path, const std::vector<std::string>& classes) {
  std::unordered_map<std::string, std::string> parent_of;
  for (const io::NamedLabel& pair : io::read_manifest(path).rows) {
    if (pair.name == "child" && pair.label == "parent") continue;
    const auto [found, is_new] = parent_of.emplace(pair.name, pair.label);
    PAL_DATA_CHECK(is_new || found->second == pair.label, path + " gives two parents for", pair.name, "keep one");
  }
  const bool any =
      std::any_of(classes.begin(), classes.end(), [&](const std::string& name) { return parent_of.count(name) > 0; });
  PAL_DATA_CHECK(any, path + " names none of the classes; the first class is", classes.empty() ? "" : classes[0],
                 "each line is child,parent");
  for (const auto& [child, unused] : parent_of) {  // finds cycles that no class leads to
    std::string slow = child, fast = child;
    const auto up = [&](const std::string& name) {
      const auto found = parent_of.find(name);
      return found == parent_of.end() ? std::string() : found->second;
    };
    while (!fast.empty() && !(fast = up(up(fast))).empty()) {
      slow = up(slow);
      PAL_DATA_CHECK(slow != fast, path + " has a cycle at", slow, "make it a tree");
    }
  }
  return climb(
      classes,
      [&](const std::string& name) {
        const auto found = parent_of.find(name);
        return found == parent_of.end() ? std::string() : found->second;
      },
      [](const std::string& name) { return name; });
}

// data.noun: the number of a synset is the byte offset of its line:
// offset lex_filenum ss_type w_cnt(hex) (word lex_id)… p_cnt (pointer offset pos source/target)… | gloss
class WordNet {
 public:
  explicit WordNet(const std::string& path) : path_(path) {
    PAL_DATA_CHECK(std::filesystem::exists(path), "WordNet is not installed", path,
                   "install the Debian package wordnet-base, or give wordnet:FILE");
    in_.str(io::read_regular_file(path, 1 << 30));
  }

  struct Synset {
    std::string word, parent;  // parent: a wnid, or ""
  };
  Synset at(const std::string& wnid) {
    std::string line;
    const bool named =
        wnid.size() == 9 && wnid[0] == 'n' && wnid.find_first_not_of("0123456789", 1) == std::string::npos;
    if (named) {
      in_.clear();
      in_.seekg(std::stol(wnid.substr(1)));
      std::getline(in_, line);
    }
    PAL_DATA_CHECK(named && line.compare(0, 8, wnid, 1, 8) == 0, "this class is not a noun of " + path_, wnid,
                   "name the classes by wnid, such as n01440764");
    std::istringstream words(line);
    std::string skip, word;
    int count = 0, pointers = 0;
    Synset synset;
    words >> skip >> skip >> skip >> std::hex >> count >> std::dec;
    for (int w = 0; w < count; ++w) {
      words >> word >> skip;
      if (w == 0) synset.word = word;
    }
    words >> pointers;
    for (int p = 0; p < pointers; ++p) {
      std::string kind, offset, part;
      words >> kind >> offset >> part >> skip;
      if ((kind == "@" || kind == "@i") && part == "n") {  // hypernym; instance hypernym
        synset.parent = "n" + offset;
        break;
      }
    }
    PAL_DATA_CHECK(!words.fail(), path_ + " is damaged at", wnid, "install wordnet-base again");
    return synset;
  }

 private:
  std::string path_;
  std::istringstream in_;
};

}  // namespace

Taxonomy read_taxonomy(const std::string& where, const std::vector<std::string>& classes) {
  PAL_CHECK(!classes.empty(), "a taxonomy needs classes, but this data has none", where, "leave --parents out");
  if (where != "wordnet" && where.rfind("wordnet:", 0) != 0) return from_pairs(where, classes);
  WordNet wordnet(where == "wordnet" ? kWordNet : where.substr(8));
  // In ImageNet a few classes are parents of others. A class is a leaf here, so its own synset becomes its parent.
  return climb(
      classes, [&](const std::string& wnid) { return wordnet.at(wnid).parent; },
      [&](const std::string& wnid) { return wnid + " " + wordnet.at(wnid).word; });
}

}  // namespace pal::data
