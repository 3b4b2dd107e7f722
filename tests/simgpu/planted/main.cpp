// main: planted CASE clean|bug. Exit 0: right numbers; 3: a CUDA error, named on stdout; 4: wrong numbers.
#include <cstring>

#include "tests/simgpu/planted/planted.h"

namespace planted {
namespace {

#define CASE(name) \
  { #name, name }
constexpr struct {
  const char* name;
  Case run;
} kCases[] = {
    CASE(missing_syncthreads), CASE(missing_syncwarp),    CASE(shared_out_of_bounds), CASE(uninitialized_shared),
    CASE(partial_barrier),     CASE(divergent_barrier),   CASE(global_out_of_bounds), CASE(use_after_free),
    CASE(misaligned_vector),   CASE(host_pointer),        CASE(shuffle_inactive),     CASE(shuffle_mask),
    CASE(endless_spin),        CASE(failed_check),        CASE(too_many_threads),     CASE(too_much_shared),
    CASE(written_constant),    CASE(missing_stream_sync), CASE(missing_event),        CASE(reused_pinned_source),
};
#undef CASE

int run(const char* name, Version version) {
  for (const auto& c : kCases) {
    if (std::strcmp(c.name, name) != 0) continue;
    if (c.run(version) == Outcome::right) return 0;
    std::printf("wrong numbers\n");
    return 4;
  }
  std::fprintf(stderr, "no case %s\n", name);
  return 2;
}

}  // namespace
}  // namespace planted

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return planted::run(argv[1], std::strcmp(argv[2], "bug") == 0 ? planted::Version::bug : planted::Version::clean);
}
