// cluster: descriptions of machines for the scale model: presets, and small YAML files that change one of them.
//
// One table of keys (cluster.cpp) makes the parser, the help and the dump. An unknown key is an error that names the
// nearest one. `preset:` is the preset that a file changes. The pieces of links are lists, three numbers each.
#pragma once

#include <string>
#include <vector>

#include "dist/scale/scale_model.h"

namespace pal::dist {

struct ClusterKey {
  std::string name;
  double& (*at)(Cluster&);
  double unit;  // what 1 in a file means
  enum class Least { zero, above_zero } least;
  std::string help;
};
const std::vector<ClusterKey>& cluster_keys();
double cluster_value(Cluster cluster, const ClusterKey& key);  // in the file's unit

const std::vector<Cluster>& cluster_presets();
// A preset's name, or a YAML file. Throws Error (usage).
Cluster read_cluster(const std::string& name_or_file);
// YAML that reads back as the same.
std::string cluster_text(const Cluster& cluster);

}  // namespace pal::dist
