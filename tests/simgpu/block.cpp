// block: the order of warps, barriers, and the place of a fault.
#include "tests/simgpu/block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/simgpu/lanes.h"

namespace simgpu {
namespace {

constexpr int64_t kWarpTurn = 20'000;  // long: a warp's registers stay in the cache
constexpr int64_t kGroupTurn = 4'000;  // longer than most branches, so that groups meet again where they should
constexpr size_t kRegisterAlignment = 64;
constexpr size_t kDynamicAlignment = 128;  // of extern shared memory, whatever alignment it requests

size_t align_up(size_t value, size_t align) { return (value + align - 1) / align * align; }

}  // namespace

Block::Block(Memory& memory, const Kernel& kernel, const LaunchShape& shape, const void* arguments,
             const Settings& settings)
    : memory_(memory),
      kernel_(kernel),
      shape_(shape),
      settings_(settings),
      threads_(static_cast<int>(shape.block.x * shape.block.y * shape.block.z)),
      dynamic_offset_(align_up(kernel.static_shared_bytes, kDynamicAlignment)),
      parameters_(kernel.parameter_bytes),
      shared_(dynamic_offset_ + shape.dynamic_shared_bytes),
      random_(settings.seed) {
  if (!parameters_.empty()) std::memcpy(parameters_.data(), arguments, parameters_.size());
  const int warps = (threads_ + kLanes - 1) / kLanes;
  local_.resize(static_cast<size_t>(warps) * kLanes * kernel.local_bytes);
  const size_t bytes = program().register_bytes;
  registers_ = std::make_unique<std::byte[]>(warps * bytes + kRegisterAlignment);
  first_register_ =
      reinterpret_cast<std::byte*>(align_up(reinterpret_cast<uintptr_t>(registers_.get()), kRegisterAlignment));
  predicates_.resize(static_cast<size_t>(warps) * program().predicates);
  for (int w = 0; w < warps; ++w) {
    warps_.push_back(std::make_unique<Warp>(*this, w, first_register_ + w * bytes,
                                            predicates_.data() + static_cast<size_t>(w) * program().predicates));
  }
  if (settings.race == RaceMode::on) race_ = std::make_unique<RaceDetector>(shared_.size(), warps);
}

void Block::run(Dim3 index) {
  index_ = index;
  shared_.forget();
  if (!local_.empty()) std::memset(local_.data(), kFresh, local_.size());
  preset_registers(index);
  barriers_ = {};
  if (race_ != nullptr) race_->block_barrier();
  for (const auto& warp : warps_) {
    const int lanes = std::min(kLanes, threads_ - warp->index() * kLanes);
    warp->restart(lanes == kLanes ? kAllLanes : (1u << lanes) - 1);
  }
  for (;;) {
    if (Warp* warp = next_warp()) {
      const int64_t turn = warp_turn();
      instructions_ += static_cast<uint64_t>(turn - warp->run(turn));
      if (instructions_ > settings_.limit) {
        const Group* group = warp->finished() ? nullptr : &warp->groups().front();
        const Instruction& in = program().code[group == nullptr ? 0 : group->pc];
        throw Fault(
            FaultKind::limit,
            "the launch took more than " + std::to_string(settings_.limit) + " warp-instructions (SIMGPU_LIMIT)",
            place(in, warp->thread(group == nullptr ? 0 : std::countr_zero(group->mask))));
      }
      release_barriers();
    } else if (std::all_of(warps_.begin(), warps_.end(), [](const auto& w) { return w->finished(); })) {
      return;
    } else if (!release_barriers()) {
      stuck();
    }
  }
}

// Without a seed one after another; with one, any that can run.
Warp* Block::next_warp() {
  const size_t n = warps_.size();
  if (settings_.seed != 0) next_ = random_() % n;
  for (size_t i = 0; i < n; ++i) {
    Warp& warp = *warps_[(next_ + i) % n];
    if (!warp.can_run()) continue;
    next_ = (next_ + i + 1) % n;
    return &warp;
  }
  return nullptr;
}

int64_t Block::warp_turn() {
  if (settings_.seed == 0) return kWarpTurn;
  // Mostly some hundred instructions, now and then one or a few.
  return 1 + static_cast<int64_t>(random_() % (random_() % 4 == 0 ? 8 : 800));
}

int64_t Block::group_turn() {
  if (settings_.seed == 0) return kGroupTurn;
  return random_() % 16 == 0 ? 1 + static_cast<int64_t>(random_() % 16) : kGroupTurn;
}

void Block::arrive(Warp& warp, const Instruction& in, uint32_t mask) {
  const int lane = std::countr_zero(mask);
  const uint32_t id = warp.slots<uint32_t>(in.r[1])[lane];
  if (id >= barriers_.size())
    warp.fail(FaultKind::barrier, "there are 16 barriers, this is number " + std::to_string(id), in, lane);
  const bool whole = in.value == 0;
  const int expected = whole ? threads_ : static_cast<int>(warp.slots<uint32_t>(in.r[2])[lane]);
  Barrier& barrier = barriers_[id];
  if (barrier.arrived > 0 && barrier.expected != expected) {
    warp.fail(FaultKind::barrier, "barrier " + std::to_string(id) + " is used with different thread counts at once", in,
              lane);
  }
  barrier.expected = expected;
  barrier.arrived += std::popcount(mask);
  if (barrier.arrived > expected)
    warp.fail(FaultKind::barrier, "more threads than barrier " + std::to_string(id) + " expects", in, lane);
  const auto pc = static_cast<uint32_t>(&in - program().code.data());
  const bool waits = static_cast<BarrierKind>(in.modifier) != BarrierKind::arrive;
  warp.split(mask, waits ? pc : pc + 1, waits ? Group::State::barrier : Group::State::ready);
}

bool Block::release_barriers() {
  bool any = false;
  for (size_t id = 0; id < barriers_.size(); ++id) {
    if (barriers_[id].arrived == 0 || barriers_[id].arrived < barriers_[id].expected) continue;
    release(static_cast<int>(id));
    any = true;
  }
  return any;
}

// All threads have arrived: writes the result of a reduction and resumes the warps.
void Block::release(int id) {
  struct Waiting {
    Warp* warp;
    Group* group;
  };
  std::vector<Waiting> waiting;
  for (const auto& warp : warps_) {
    for (Group& g : warp->groups()) {
      if (g.state != Group::State::barrier) continue;
      const Instruction& in = program().code[g.pc];
      if (warp->slots<uint32_t>(in.r[1])[std::countr_zero(g.mask)] == static_cast<uint32_t>(id))
        waiting.push_back({warp.get(), &g});
    }
  }
  const uint32_t pc = waiting.empty() ? 0 : waiting.front().group->pc;
  uint32_t count = 0;
  for (const Waiting& w : waiting) {
    const Instruction& in = program().code[w.group->pc];
    if (w.group->pc != pc && in.value == 0) {
      w.warp->fail(FaultKind::barrier,
                   "threads of one block meet at two different __syncthreads: this one and PTX line " +
                       std::to_string(program().code[pc].line),
                   in, std::countr_zero(w.group->mask));
    }
    if (static_cast<BarrierKind>(in.modifier) >= BarrierKind::red_and)
      count += std::popcount(w.warp->predicate(in.r[3]) & w.group->mask);
  }
  for (const Waiting& w : waiting) {
    const Instruction& in = program().code[w.group->pc];
    const auto kind = static_cast<BarrierKind>(in.modifier);
    const int expected = barriers_[id].expected;
    if (kind == BarrierKind::red_popc) {
      for_active(w.group->mask, [&](int lane) { w.warp->slots<uint32_t>(in.r[0])[lane] = count; });
    } else if (kind == BarrierKind::red_and || kind == BarrierKind::red_or) {
      const bool holds = kind == BarrierKind::red_or ? count > 0 : count == static_cast<uint32_t>(expected);
      set_predicate(w.warp->predicate(in.r[0]), holds ? kAllLanes : 0, w.group->mask);
    }
    w.group->state = Group::State::ready;
    ++w.group->pc;
  }
  barriers_[id] = {};
  if (race_ != nullptr) race_->block_barrier();
}

// Reports that no warp can run.
void Block::stuck() {
  int at_barrier = 0, live = 0;
  const Group *barrier_group = nullptr, *any_group = nullptr;
  const Warp *barrier_warp = nullptr, *any_warp = nullptr;
  for (const auto& warp : warps_) {
    live += std::popcount(warp->live());
    for (const Group& g : warp->groups()) {
      any_group = &g;
      any_warp = warp.get();
      if (g.state != Group::State::barrier) continue;
      at_barrier += std::popcount(g.mask);
      barrier_group = &g;
      barrier_warp = warp.get();
    }
  }
  if (barrier_group != nullptr) {
    throw Fault(FaultKind::barrier,
                std::to_string(at_barrier) + " of the block's " + std::to_string(threads_) +
                    " threads wait at a barrier, " + std::to_string(threads_ - live) + " have exited and " +
                    std::to_string(live - at_barrier) + " wait elsewhere",
                place(program().code[barrier_group->pc], barrier_warp->thread(std::countr_zero(barrier_group->mask))));
  }
  throw Fault(FaultKind::inactive_lane, "lanes wait at a .sync for lanes that never arrive",
              place(program().code[any_group->pc], any_warp->thread(std::countr_zero(any_group->mask))));
}

bool Block::known(uintptr_t begin, uintptr_t end, Access access) const {
  for (const Known& k : known_[static_cast<size_t>(access)]) {
    if (begin >= k.begin && end <= k.end) return true;
  }
  return false;
}

void Block::learn(uintptr_t address, Access access) {
  const Allocation* allocation = memory_.find(reinterpret_cast<const void*>(address));
  const auto which = static_cast<size_t>(access);
  known_[which][next_known_[which]++ % known_[which].size()] = {allocation->begin,
                                                                allocation->begin + allocation->bytes};
}

std::array<uint32_t, 3> Block::thread_index(int thread) const {
  const auto t = static_cast<uint32_t>(thread);
  const Dim3& b = shape_.block;
  return {t % b.x, t / b.x % b.y, t / (b.x * b.y)};
}

FaultPlace Block::place(const Instruction& in, int thread) const {
  FaultPlace place;
  place.kernel = kernel_.name;
  const uint32_t block[3] = {index_.x, index_.y, index_.z};
  const auto at = thread_index(thread);
  for (int axis = 0; axis < 3; ++axis) {
    place.block[axis] = block[axis];
    place.thread[axis] = at[axis];
  }
  place.ptx_line = in.line;
  place.instruction = quote(program(), in.line);
  place.source = source_of(program(), in);
  return place;
}

uint64_t Block::preset_value(const Preset& preset, Dim3 index, int thread) const {
  const uint32_t grid[3] = {shape_.grid.x, shape_.grid.y, shape_.grid.z},
                 block[3] = {shape_.block.x, shape_.block.y, shape_.block.z}, at[3] = {index.x, index.y, index.z};
  const uint32_t lane = static_cast<uint32_t>(thread) % kLanes, below = (1u << lane) - 1;
  switch (preset.kind) {
    case Preset::Kind::constant:
      return preset.value;
    case Preset::Kind::tid:
      return thread_index(thread)[preset.axis];
    case Preset::Kind::ntid:
      return block[preset.axis];
    case Preset::Kind::ctaid:
      return at[preset.axis];
    case Preset::Kind::nctaid:
      return grid[preset.axis];
    case Preset::Kind::lane:
      return lane;
    case Preset::Kind::warp:
      return static_cast<uint32_t>(thread) / kLanes;
    case Preset::Kind::warps:
      return warps_.size();
    case Preset::Kind::lanemask: {
      const uint32_t self = 1u << lane;
      const uint32_t masks[] = {self, below | self, below, ~below, ~(below | self)};
      return masks[preset.axis];
    }
    case Preset::Kind::dynamic_shared:
      return dynamic_offset_ + preset.value;
    case Preset::Kind::dynamic_shared_bytes:
      return shape_.dynamic_shared_bytes;
    case Preset::Kind::total_shared_bytes:
      return shared_.size();
  }
  return 0;
}

// All but the block's index are the same for every block.
void Block::preset_registers(Dim3 index) {
  for (const Preset& preset : program().presets) {
    if (constants_done_ && preset.kind != Preset::Kind::ctaid) continue;
    for (const auto& warp : warps_) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const uint64_t value = preset_value(preset, index, warp->thread(lane));
        if (preset.wide) {
          warp->slots<uint64_t>(preset.offset)[lane] = value;
        } else {
          warp->slots<uint32_t>(preset.offset)[lane] = static_cast<uint32_t>(value);
        }
      }
    }
  }
  constants_done_ = true;
}

}  // namespace simgpu
