#include "tests/simgpu/nccl/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "tests/simgpu/runtime/counters.h"
#include "tests/simgpu/runtime/stand_in.h"

namespace simnccl {
namespace {

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

// For tests that act meanwhile: SIMNCCL_DELAY_MS lengthens every launch, SIMNCCL_START_MS the start.
std::chrono::milliseconds delay(const char* name) {
  const char* text = std::getenv(name);
  return std::chrono::milliseconds(text == nullptr ? 0 : std::atoi(text));
}

uint64_t fingerprint(const void* data, size_t bytes) {  // FNV-1a
  uint64_t hash = 14695981039346656037ull;
  const auto* at = static_cast<const unsigned char*>(simgpu::host_address(data));
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 1099511628211ull;
  return hash;
}

// Communicators are never freed: a handle used too late must be recognized.
struct Registry {
  std::mutex mutex;
  std::map<ncclComm_t, std::unique_ptr<Communicator>> all;
};
Registry& registry() {
  static Registry* const r = new Registry;
  return *r;
}

// Communicators and streams by the order in which they were first used, for the counters.
size_t number_of(const void* object) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const seen = new std::vector<const void*>;
  const std::lock_guard lock(*mutex);
  const auto found = std::find(seen->begin(), seen->end(), object);
  if (found == seen->end()) return seen->push_back(object), seen->size() - 1;
  return static_cast<size_t>(found - seen->begin());
}

// NCCL reads it once. Without it, launches of two communicators that run at once may wait for each other for ever.
bool ordered_launches() {
  const char* value = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

bool other_in_flight(const Communicator* self) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  return std::any_of(r.all.begin(), r.all.end(),
                     [&](const auto& entry) { return entry.second.get() != self && entry.second->in_flight(); });
}

int next_context(int world_rank) {
  static std::atomic<int> made{0};
  return world_rank * 4096 + made++ % 4096;
}

}  // namespace

void complain(const std::string& sentence) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "simnccl: rank %d: %s\n", rank, sentence.c_str());
}

ncclComm_t add(std::unique_ptr<Communicator> communicator) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto handle = reinterpret_cast<ncclComm_t>(communicator.get());
  r.all[handle] = std::move(communicator);
  return handle;
}

Communicator* find(ncclComm_t handle, const char* called_by) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.all.find(handle);
  if (found == r.all.end()) {
    complain(std::string(called_by) + " with a pointer that is not a communicator");
    return nullptr;
  }
  const Life life = found->second->life();
  if (life != Life::aborted && life != Life::destroyed) return found->second.get();
  complain(std::string(called_by) + " with a communicator that was " +
           (life == Life::aborted ? "aborted" : "destroyed"));
  return nullptr;
}

ncclResult_t Communicator::fail(ncclResult_t result, const std::string& sentence) {
  complain(sentence);
  const std::lock_guard lock(mutex_);
  if (result_ == ncclSuccess) {
    result_ = result;
    sentence_ = sentence;
  }
  return result;
}

std::string Communicator::last_error() const {
  const std::lock_guard lock(mutex_);
  return sentence_;
}

ncclResult_t Communicator::in_background(std::thread work) {
  if (mode_ == Mode::non_blocking) {
    work.detach();
    return ncclInProgress;
  }
  work.join();
  const std::lock_guard lock(mutex_);
  return result_;
}

// All ranks exchange the id that they were given.
ncclResult_t Communicator::meet(const ncclUniqueId& id) {
  ++busy_;
  return in_background(std::thread([this, id] {
    try {
      Wire wire = wire_.fresh();
      const auto until = std::chrono::steady_clock::now() + delay("SIMNCCL_START_MS");
      while (std::chrono::steady_clock::now() < until && !aborted_) nap();
      std::vector<ncclUniqueId> ids(static_cast<size_t>(size()));
      for (int r = 0; r < size(); ++r) {
        wire.send(r, Stage::meet, &id, sizeof(id));
        wire.receive(r, Stage::meet, &ids[static_cast<size_t>(r)], sizeof(id));
      }
      wire.finish(aborted_);
      for (int r = 0; r < size(); ++r) {
        if (std::memcmp(&ids[static_cast<size_t>(r)], &id, sizeof(id)) != 0) {
          fail(ncclInvalidArgument, "rank " + std::to_string(r) + " was given another unique id");
          break;
        }
      }
    } catch (const Aborted&) {
    }
    --busy_;
  }));
}

ncclResult_t Communicator::launch(const std::vector<Operation>& operations, cudaStream_t stream) {
  {
    const std::lock_guard lock(mutex_);
    if (result_ != ncclSuccess) return result_;
  }
  if (life_ != Life::live) return fail(ncclInvalidUsage, "a launch after ncclCommFinalize");
  if (state() == ncclInProgress)
    return fail(ncclInvalidUsage,
                "a launch while the communicator is still in progress: ask ncclCommGetAsyncError first");
  for (const Operation& o : operations) {
    if (type_bytes(o.type) == 0)
      return fail(ncclInvalidArgument, describe(o) + ": a type that the stand-in does not know");
    if (o.peer < 0 || o.peer >= size()) return fail(ncclInvalidArgument, describe(o) + ": no such rank");
    const std::pair<const void*, size_t> buffers[] = {{o.from, from_bytes(o, rank(), size())},
                                                      {o.to, to_bytes(o, rank(), size())}};
    for (const auto& [address, bytes] : buffers) {
      if (bytes == 0) continue;
      cudaPointerAttributes attributes{};
      cudaPointerGetAttributes(&attributes, address);
      if (attributes.type != cudaMemoryTypeDevice)
        return fail(ncclInvalidArgument, describe(o) + ": a buffer that is not device memory");
      cudaPointerGetAttributes(&attributes, static_cast<const char*>(address) + bytes - 1);
      if (attributes.type != cudaMemoryTypeDevice)
        return fail(ncclInvalidArgument, describe(o) + ": a buffer that is too short");
    }
  }
  if (other_in_flight(this) && !ordered_launches()) {
    return fail(ncclInvalidUsage,
                "two communicators of this process have work in flight: order their launches, or set "
                "NCCL_LAUNCH_ORDER_IMPLICIT=1 before NCCL starts");
  }
  for (const Operation& o : operations) {
    const std::string what = kind_name(o.kind) + (", communicator " + std::to_string(number_of(this))) + ", stream " +
                             std::to_string(number_of(stream));
    simgpu_count(static_cast<int>(simgpu::Count::collective), what.c_str(), o.count * type_bytes(o.type));
  }
  auto launch = std::make_unique<Launch>(Launch{this, launched_++, operations, stream});
  if (mode_ == Mode::blocking) return begin(std::move(launch));
  const std::lock_guard lock(mutex_);
  deferred_.push_back({std::move(launch), 0});
  return ncclInProgress;
}

ncclResult_t Communicator::begin(std::unique_ptr<Launch> launch) {
  const cudaError_t error = cudaLaunchHostFunc(launch->stream, &Communicator::run, launch.get());
  if (error != cudaSuccess)
    return fail(ncclUnhandledCudaError, std::string("cudaLaunchHostFunc: ") + cudaGetErrorString(error));
  launch.release();  // run() owns it now
  return ncclSuccess;
}

ncclResult_t Communicator::state() {
  std::vector<std::unique_ptr<Launch>> due;
  {
    const std::lock_guard lock(mutex_);
    if (result_ != ncclSuccess) return result_;
    if (busy_ > 0) return ncclInProgress;
    while (!deferred_.empty() && deferred_.front().polls > 0) {
      due.push_back(std::move(deferred_.front().launch));
      deferred_.erase(deferred_.begin());
    }
    for (Deferred& d : deferred_) ++d.polls;
    if (!deferred_.empty()) return ncclInProgress;
  }
  for (auto& launch : due) {
    if (const ncclResult_t result = begin(std::move(launch)); result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

void Communicator::run(void* data) {
  const std::unique_ptr<Launch> launch(static_cast<Launch*>(data));
  Communicator& self = *launch->owner;
  try {
    while (self.done_ != launch->number) {
      if (self.aborted_) return;
      nap();
    }
    if (self.aborted_) return;
    self.exchange(*launch);
    ++self.done_;
  } catch (const Aborted&) {
  }
}

void Communicator::exchange(Launch& launch) {
  std::vector<uint64_t> before;
  const auto look = [&] {
    std::vector<uint64_t> marks;
    for (const Operation& o : launch.operations) {
      marks.push_back(fingerprint(o.from, from_bytes(o, rank(), size())));
      marks.push_back(fingerprint(o.to, to_bytes(o, rank(), size())));
    }
    return marks;
  };
  before = look();
  compare(launch);
  const auto until = std::chrono::steady_clock::now() + delay("SIMNCCL_DELAY_MS");
  while (std::chrono::steady_clock::now() < until && !aborted_) nap();
  if (look() != before) {
    fail(ncclInvalidUsage, "launch " + std::to_string(launch.number) + ": a buffer of " +
                               describe(launch.operations[0]) + " was touched before the collective was done");
  } else {
    move(launch);
  }
  const auto broken = [this] {
    const std::lock_guard lock(mutex_);
    return result_ != ncclSuccess;
  };
  while (broken()) {  // it hangs, until the communicator is aborted
    if (aborted_) throw Aborted();
    nap();
  }
}

void Communicator::compare(const Launch& launch) {
  constexpr size_t kMost = 1024;
  const bool all = std::any_of(launch.operations.begin(), launch.operations.end(), collective);
  std::set<int> others{rank()};  // of sends and receives only those that they name
  for (const Operation& o : launch.operations) others.insert(o.peer);
  for (int r = 0; all && r < size(); ++r) others.insert(r);
  const Stage stage = all ? Stage::header : Stage::peer_header;
  std::vector<std::vector<Operation>> asked(static_cast<size_t>(size()));
  for (int r : others) {
    asked[static_cast<size_t>(r)].resize(kMost);
    wire_.send(r, stage, launch.operations.data(), launch.operations.size() * sizeof(Operation));
    wire_.receive(r, stage, asked[static_cast<size_t>(r)].data(), kMost * sizeof(Operation));
  }
  const std::vector<size_t> bytes = wire_.finish(aborted_);
  size_t k = 0;
  for (int r : others) asked[static_cast<size_t>(r)].resize(bytes[k++] / sizeof(Operation));
  if (!all) {  // what goes to third ranks is theirs to compare
    for (int r : others) {
      std::erase_if(asked[static_cast<size_t>(r)], [&](const Operation& o) { return r != rank() && o.peer != rank(); });
    }
  }
  const std::string text = difference(asked);
  if (text.empty()) return;
  fail(ncclInvalidUsage, "launch " + std::to_string(launch.number) + ": ranks differ: " + text);
  while (!aborted_) nap();
  throw Aborted();
}

void Communicator::move(Launch& launch) {
  const auto ranks = static_cast<size_t>(size());
  for (Operation& o : launch.operations) {  // compared as the program named them; from here on the data is touched
    o.from = simgpu::host_address(o.from);
    o.to = simgpu::host_address(o.to);
  }
  for (const Operation& o : launch.operations) {
    if (!collective(o)) continue;
    const size_t give = from_bytes(o, rank(), size()), part = o.count * type_bytes(o.type);
    std::vector<std::vector<char>> parts(ranks, std::vector<char>(part));
    for (int r = 0; r < size(); ++r) {
      // Of a reduce_scatter rank r gets its own slice, of the others everything.
      const char* const from =
          static_cast<const char*>(o.from) + (o.kind == Kind::reduce_scatter ? part * static_cast<size_t>(r) : 0);
      if (give > 0) wire_.send(r, Stage::data, from, part);
      if (o.kind != Kind::broadcast || r == o.peer)
        wire_.receive(r, Stage::data, parts[static_cast<size_t>(r)].data(), part);
    }
    wire_.finish(aborted_);
    if (to_bytes(o, rank(), size()) == 0) continue;
    std::vector<const void*> pointers;
    for (const auto& p : parts) pointers.push_back(p.data());
    if (o.kind == Kind::broadcast) {
      std::memcpy(o.to, pointers[static_cast<size_t>(o.peer)], part);
    } else if (o.kind == Kind::all_gather) {
      for (size_t r = 0; r < ranks; ++r) std::memcpy(static_cast<char*>(o.to) + r * part, pointers[r], part);
    } else if (!combine(o.to, pointers, o.count, o.type, o.op)) {
      fail(ncclInvalidArgument, describe(o) + ": an operation that the stand-in does not know");
    }
  }
  std::vector<std::pair<void*, std::vector<char>>> taken;  // as on a device, nothing is written before all was read
  for (const Operation& o : launch.operations) {
    const size_t bytes = o.count * type_bytes(o.type);
    if (o.kind == Kind::send) wire_.send(o.peer, Stage::peer, o.from, bytes);
    if (o.kind != Kind::receive) continue;
    taken.emplace_back(o.to, std::vector<char>(bytes));
    wire_.receive(o.peer, Stage::peer, taken.back().second.data(), bytes);
  }
  wire_.finish(aborted_);
  for (const auto& [to, bytes] : taken) std::memcpy(to, bytes.data(), bytes.size());
}

ncclResult_t Communicator::split(int color, int key, Mode mode, ncclComm_t* out) {
  *out = nullptr;
  ++busy_;
  return in_background(std::thread([=, this] {
    try {
      settle_split(color, key, mode, out);
    } catch (const Aborted&) {
    }
    --busy_;
  }));
}

void Communicator::settle_split(int color, int key, Mode mode, ncclComm_t* out) {
  struct Wish {
    int color, key, context;
  };
  const Wish mine{color, key, next_context(wire_.world_rank(rank()))};
  std::vector<Wish> wishes(static_cast<size_t>(size()));
  Wire wire = wire_.fresh();
  for (int r = 0; r < size(); ++r) {
    wire.send(r, Stage::meet, &mine, sizeof(mine));
    wire.receive(r, Stage::meet, &wishes[static_cast<size_t>(r)], sizeof(mine));
  }
  wire.finish(aborted_);
  if (color == NCCL_SPLIT_NOCOLOR) return;
  std::vector<int> chosen;
  for (int r = 0; r < size(); ++r) {
    if (wishes[static_cast<size_t>(r)].color == color) chosen.push_back(r);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](int a, int b) {
    return wishes[static_cast<size_t>(a)].key < wishes[static_cast<size_t>(b)].key;
  });
  std::vector<int> members;
  for (int r : chosen) members.push_back(wire_.world_rank(r));
  const int me = static_cast<int>(std::find(chosen.begin(), chosen.end(), rank()) - chosen.begin());
  *out =
      add(std::make_unique<Communicator>(Wire(members, me, wishes[static_cast<size_t>(chosen.front())].context), mode));
}

ncclResult_t Communicator::finalize() {
  if (state() == ncclInProgress)
    return fail(ncclInvalidUsage, "ncclCommFinalize while the communicator is still in progress");
  life_ = Life::finalized;
  ++busy_;
  return in_background(std::thread([this] {
    while (done_ != launched_ && !aborted_) nap();
    --busy_;
  }));
}

void Communicator::end(Life life) {
  life_ = life;
  if (life == Life::aborted) aborted_ = true;
}

}  // namespace simnccl
