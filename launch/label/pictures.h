// pictures: samples as browsers show them, by number.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/data/dataset.h"
#include "launch/label/page.h"

namespace pal::launch {

class Pictures {
 public:
  // `folder`: thumbnails of samples that have no pictures (features): N.png, N.jpg or N.jpeg; "": none.
  Pictures(std::shared_ptr<const data::Dataset> data, std::string folder);

  bool any() const;
  // Empty: there is none. Throws Error (data) when the stored picture is damaged. Thread: any.
  std::optional<PageImage> of(int64_t sample, ImageSize size) const;

 private:
  std::optional<PageImage> from_folder(int64_t sample) const;
  const std::shared_ptr<const data::Dataset> data_;
  const std::string folder_;
};

}  // namespace pal::launch
