// pal/checkpoint.h: a run's state on disk: write it, read it, find the newest one that is whole.
#pragma once

#include "core/record/checkpoint.h"
#include "core/record/checkpoint_folder.h"
