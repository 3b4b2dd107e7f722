// supervised: the baselines without a graph: z holds one column per class, and each row has a label.
//
// Math:  mse            Σ_i ‖z_i − onehot(y_i)‖² / (n D)       n labeled rows of the global batch
//        cross_entropy  −Σ_i log softmax(z_i)_{y_i} / n
//        loss.reduction=sum drops the divisors. Rows without a label (−1) have no term; without labeled rows the loss
//        is 0.
// The last width of model.projector is the number of classes or more; a label beyond it throws Error (usage).
// Terms: one, the loss itself.
#pragma once

#include "core/loss/criterion.h"

namespace pal::loss {

enum class Supervision { mse, cross_entropy };

Criterion make_supervised(Supervision kind, Reduction reduction);

}  // namespace pal::loss
