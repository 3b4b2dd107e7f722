#include "core/model/precision.h"

#include <ATen/autocast_mode.h>

namespace pal::model {

namespace mode = at::autocast;

Autocast::Autocast(Precision precision, c10::DeviceType device) : precision_(precision), device_(device) {
  if (precision_ == Precision::full) return;
  was_on_ = mode::is_autocast_enabled(device_);
  was_type_ = mode::get_autocast_dtype(device_);
  mode::set_autocast_enabled(device_, true);
  mode::set_autocast_dtype(device_, at::kBFloat16);
  mode::increment_nesting();
}

Autocast::~Autocast() {
  if (precision_ == Precision::full) return;
  if (mode::decrement_nesting() == 0) mode::clear_cache();  // of rounded weights, which the optimizer changes
  mode::set_autocast_enabled(device_, was_on_);
  mode::set_autocast_dtype(device_, was_type_);
}

}  // namespace pal::model
