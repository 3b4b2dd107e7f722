// init_weights: loads published weights into the backbone: torchvision, timm, DINO, VICReg, solo-learn and our files.
//
// The prefix of the backbone's names in the file ("module.backbone.", "teacher.", …) is detected. A table renames the
// parameters of torchvision's ViT and a few others. Heads (fc, projector, …) are ignored. Position embeddings of
// another grid are resampled; LayerScale is multiplied into the layer before it. A file with more layers or other parts
// than this backbone is refused. Only safetensors are read, so no code of the file runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pal::model {

class Encoder;

struct InitReport {
  std::string prefix;               // of the names in the file
  int64_t taken = 0;                // tensors loaded
  std::vector<std::string> unused;  // names in the file without a tensor in the backbone
};

// Throws Error (data) with the first differences if the file does not hold this backbone; the encoder is then
// unchanged.
InitReport init_backbone(Encoder& encoder, const std::string& path);

// "62 tensors under module.backbone., 2 left alone (fc.bias, fc.weight)"
std::string init_text(const InitReport& report);

// Our name of a published parameter, by the table: "encoder.ln.weight" → "norm.weight".
std::string our_name(const std::string& published);

}  // namespace pal::model
