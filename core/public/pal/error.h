// pal/error.h: pal::Error, the exception that every function of PAL throws: a sentence, what to do, and an exit code.
#pragma once

#include "kernels/base/error.h"
