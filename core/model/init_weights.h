// init_weights: an encoder's backbone from published weights: torchvision, timm, DINO, VICReg, solo-learn and our own files.
//
// Names: whatever stands before the backbone's own names in the file ("module.backbone.", "teacher.", …) is found by
//   looking; torchvision's ViT and a few others are renamed by a table. Heads (fc, projector, …) are left alone.
//   A ViT's positions of another grid are resampled, its LayerScale is multiplied into the layers before it. A file with more
//   layers or other parts than this backbone is refused. Nothing executes: only safetensors are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pal::model {

class Encoder;

struct InitReport {
  std::string prefix;               // what stood before the names
  int64_t taken = 0;                // tensors
  std::vector<std::string> unused;  // names of the file that no tensor of the backbone has
};

// Throws Error (data) that lists the first differences when the file does not hold this backbone; then nothing was changed.
InitReport init_backbone(Encoder& encoder, const std::string& path);

// "62 tensors under module.backbone., 2 left alone (fc.bias, fc.weight)"
std::string init_text(const InitReport& report);

// The backbone's name of a published one, as far as the table knows: "encoder.ln.weight" → "norm.weight".
std::string our_name(const std::string& published);

}  // namespace pal::model
