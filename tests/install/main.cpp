// main: VICReg on the supervised graph of four samples with two views each; labels 0 0 1 1. Uses every public header.
#include <ATen/ops/randn.h>
#include <pal/checkpoint.h>
#include <pal/comm.h>
#include <pal/data.h>
#include <pal/error.h>
#include <pal/eval.h>
#include <pal/graph.h>
#include <pal/loss.h>
#include <pal/model.h>
#include <pal/optim.h>
#include <pal/oracle.h>

#include <cstdio>

int main() {
  pal::graph::GraphStore store(4);
  store.set_labels({0, 0, 1, 1});
  const pal::loss::BatchRows rows{.samples = {0, 1, 2, 3}, .begin = 0, .end = 4, .rank_begin = {0, 4}};
  const pal::loss::Batch batch = pal::loss::with_graph(
      rows, pal::graph::build_batch_graph(store, pal::graph::GraphKind::supervised, 1.0, rows.samples, rows.views));
  const auto comm = pal::comm::make_local_comm();
  const pal::loss::LossResult loss = pal::loss::make_vicreg({})(at::randn({batch.local_rows(), 16}), batch, *comm);
  std::printf("VICReg %.3f", loss.value);
  for (const auto& [name, value] : loss.terms) std::printf(", %s %.3f", name.c_str(), value);
  std::printf(", gradient of %ld rows\n", static_cast<long>(loss.dz.size(0)));
  try {
    pal::graph::GraphStore(4).set_labels({0});
  } catch (const pal::Error& error) {
    std::printf("Error of one label for four samples: %s\n", error.what());
    return loss.value > 0 && loss.dz.size(0) == 8 ? 0 : 1;
  }
  return 1;
}
