#include "core/model/init_weights.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/io/safetensors.h"
#include "core/model/backbones.h"
#include "core/model/encoder.h"
#include "core/model/state.h"
#include "kernels/base/error.h"

namespace pal::model {
namespace {

constexpr const char* kBackbone = "backbone.";
constexpr size_t kDifferences = 5;

struct Rename {
  const char *theirs, *ours;
};
// Substrings of names and their replacements. The first group is torchvision's ViT; timm, DINO, VICReg and solo-learn
// use our names behind a prefix.
constexpr Rename kRenames[] = {
    {"class_token", "cls_token"},
    {"conv_proj.", "patch_embed.proj."},
    {"encoder.pos_embedding", "pos_embed"},
    {"encoder.layers.encoder_layer_", "blocks."},
    {"encoder.ln.", "norm."},
    {".ln_1.", ".norm1."},
    {".ln_2.", ".norm2."},
    {".self_attention.in_proj_weight", ".attn.qkv.weight"},
    {".self_attention.in_proj_bias", ".attn.qkv.bias"},
    {".self_attention.out_proj.", ".attn.proj."},
    {".mlp.0.", ".mlp.fc1."},
    {".mlp.3.", ".mlp.fc2."},
    {".mlp.linear_1.", ".mlp.fc1."},
    {".mlp.linear_2.", ".mlp.fc2."},
    {".shortcut.", ".downsample."},  // CIFAR ResNets
};

std::string shape_text(const at::Tensor& t) { return fmt::format("({})", fmt::join(t.sizes(), ", ")); }

// Parts that our ViTs do not have and that change the features: a file with one of them holds another model.
constexpr const char* kUnknownParts[] = {"dist_token", "register_tokens", "reg_token", "norm_pre."};

// Older files lack this counter.
bool may_be_missing(const std::string& name) { return name.ends_with("num_batches_tracked"); }

using Tensors = std::map<std::string, at::Tensor>;

// The prefix under which most of `wanted` is found. Ties prefer a teacher (DINO), then the shortest prefix.
std::string best_prefix(const Tensors& file, const std::vector<std::string>& wanted, size_t* found) {
  std::set<std::string> candidates;
  for (const auto& item : file) {
    for (const std::string& name : wanted) {
      if (item.first.ends_with(name)) candidates.insert(item.first.substr(0, item.first.size() - name.size()));
    }
  }
  std::string best;
  *found = 0;
  const auto rank = [](const std::string& prefix) {
    return std::pair(prefix.find("teacher") == std::string::npos, prefix.size());
  };
  for (const std::string& prefix : candidates) {
    const auto hits = static_cast<size_t>(std::count_if(
        wanted.begin(), wanted.end(), [&](const std::string& name) { return file.contains(prefix + name); }));
    if (hits > *found || (hits == *found && rank(prefix) < rank(best))) best = prefix, *found = hits;
  }
  return best;
}

std::string first_part(const std::string& name) { return name.substr(0, name.find('.')); }

// Names in the file, without the prefix, of body tensors that our backbone does not have: further layers or other
// parts. Tensors of heads are not listed.
std::vector<std::string> beyond_ours(const Tensors& file, const std::string& prefix, const std::set<std::string>& used,
                                     const std::vector<std::string>& ours) {
  std::set<std::string> parts;
  for (const std::string& name : ours) parts.insert(first_part(name));
  std::vector<std::string> found;
  for (const auto& item : file) {
    if (used.contains(item.first) || !item.first.starts_with(prefix)) continue;
    const std::string name = item.first.substr(prefix.size());
    const bool unknown = std::any_of(std::begin(kUnknownParts), std::end(kUnknownParts),
                                     [&](const char* part) { return name.starts_with(part); });
    if (unknown || (name.find('.') != std::string::npos && parts.contains(first_part(name))))
      found.push_back(name + " is not in this backbone");
  }
  return found;
}

// Multiplies LayerScale (DINOv2, timm) into the last layer of its branch, proj or fc2, which computes the same
// function.
void fold_layer_scale(Tensors& file) {
  struct Branch {
    const char *scale, *last;
  };
  for (const Branch& branch : {Branch{".ls1.gamma", ".attn.proj."}, Branch{".ls2.gamma", ".mlp.fc2."}}) {
    for (auto item = file.begin(); item != file.end();) {
      const std::string tail = branch.scale;
      if (!item->first.ends_with(tail)) {
        ++item;
        continue;
      }
      const std::string last = item->first.substr(0, item->first.size() - tail.size()) + branch.last;
      const at::Tensor scale = item->second.to(at::kFloat);
      const auto weight = file.find(last + "weight"), bias = file.find(last + "bias");
      if (weight == file.end() || bias == file.end() || weight->second.dim() != 2 || scale.dim() != 1 ||
          scale.size(0) != weight->second.size(0) || bias->second.sizes() != scale.sizes()) {
        ++item;  // reported later as a mismatch
        continue;
      }
      weight->second = weight->second.to(at::kFloat) * scale.unsqueeze(1);
      bias->second = bias->second.to(at::kFloat) * scale;
      item = file.erase(item);
    }
  }
}

std::string first_names(const Tensors& tensors) {
  std::vector<std::string> names;
  for (const auto& item : tensors) {
    if (names.size() < kDifferences) names.push_back(item.first);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string our_name(const std::string& published) {
  std::string name = published;
  for (const Rename& rename : kRenames) {
    const std::string theirs = rename.theirs;
    if (const size_t at = name.find(theirs); at != std::string::npos) name.replace(at, theirs.size(), rename.ours);
  }
  return name;
}

InitReport init_backbone(Encoder& encoder, const std::string& path) {
  const at::NoGradGuard no_grad;
  for (const char* pickle : {".pth", ".pt", ".bin", ".ckpt", ".tar"}) {
    PAL_DATA_CHECK(
        !path.ends_with(pickle), "weights in a pickle, which can execute code, are not read", path,
        "convert them in Python: safetensors.torch.save_file(torch.load(F, weights_only=True), 'F.safetensors')");
  }
  Tensors file;
  for (auto& [name, tensor] : io::read_safetensors(path).tensors) {
    PAL_DATA_CHECK(file.emplace(our_name(name), tensor).second, path + " has two tensors that would be called",
                   our_name(name), "give weights of one model");
  }
  fold_layer_scale(file);
  Tensors own;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model_state(encoder)) {
    if (!name.starts_with(kBackbone)) continue;
    names.push_back(name.substr(std::string(kBackbone).size()));
    own.emplace(names.back(), tensor);
  }
  InitReport report;
  size_t found = 0;
  report.prefix = best_prefix(file, names, &found);
  PAL_DATA_CHECK(found > 0, path + " holds nothing of this backbone; its first names are", first_names(file),
                 "choose the model.backbone they belong to; ours begins with " + first_names(own));

  std::vector<std::string> wrong;
  std::set<std::string> used;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;  // (destination, source)
  for (const std::string& name : names) {
    at::Tensor to = own.at(name);
    const auto entry = file.find(report.prefix + name);
    if (entry == file.end()) {
      if (!may_be_missing(name)) wrong.push_back(name + " is missing");
      continue;
    }
    used.insert(entry->first);
    at::Tensor from = entry->second;
    const bool positions = name == "pos_embed" && from.dim() == 3 && from.size(2) == to.size(2);
    if (positions && from.sizes() != to.sizes()) {
      const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(to.size(1) - 1))));
      from = resample_positions(from.to(at::kFloat), side, side);
    }
    if (from.sizes() != to.sizes())
      wrong.push_back(fmt::format("{} has shape {}, not {}", name, shape_text(from), shape_text(to)));
    copies.emplace_back(to, from);
  }
  for (std::string& name : beyond_ours(file, report.prefix, used, names)) wrong.push_back(std::move(name));
  if (!wrong.empty()) {
    const size_t shown = std::min(wrong.size(), kDifferences);
    const std::string more = wrong.size() > shown ? fmt::format(" and {} more", wrong.size() - shown) : "";
    throw Error(Exit::data,
                fmt::format("{} does not fit model.backbone: {}{}; choose the backbone, model.stem, model.patch or "
                            "model.widths it was made with",
                            path, fmt::join(wrong.begin(), wrong.begin() + static_cast<ptrdiff_t>(shown), ", "), more));
  }
  for (auto& [to, from] : copies) to.copy_(from);
  report.taken = static_cast<int64_t>(copies.size());
  for (const auto& item : file) {
    if (!used.contains(item.first)) report.unused.push_back(item.first);
  }
  return report;
}

std::string init_text(const InitReport& report) {
  const std::vector<std::string>& rest = report.unused;
  return fmt::format("{} tensors", report.taken) +
         (report.prefix.empty() ? "" : fmt::format(" under {}", report.prefix)) +
         (rest.empty()
              ? ""
              : fmt::format(", {} left alone ({}{})", rest.size(),
                            fmt::join(rest.begin(),
                                      rest.begin() + static_cast<ptrdiff_t>(std::min<size_t>(rest.size(), 3)), ", "),
                            rest.size() > 3 ? ", …" : ""));
}

}  // namespace pal::model
