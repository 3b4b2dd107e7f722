// ranks: a sum over all ranks by the communicator of the losses. Started alone, it is the only rank.
#include <ATen/ops/ones.h>
#include <pal/world.h>

#include <cstdio>

int main() {
  pal::dist::World world;
  at::Tensor one = at::ones({1});
  world.compute().all_reduce(one);
  std::printf("rank %d of %d, the sum of ones is %.0f\n", world.rank(), world.size(), one.item<double>());
  return one.item<double>() == world.size() ? 0 : 1;
}
