// pal/model.h: encoders (backbone, projector, predictor), built from a ModelSpec, and their tensors by name.
#pragma once

#include "core/model/encoder.h"
#include "core/model/spec.h"
#include "core/model/state.h"
