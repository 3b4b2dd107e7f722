// warp: operations between lanes and warps: shuffles, votes, matches, barriers, divergence.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

constexpr const char* kBegin =
    ".reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .pred p, q, odd;\nmov.u32 %r0, %tid.x;\nand.b32 %r8, %r0, "
    "1;\nsetp.eq.u32 odd, %r8, 1;\n";
constexpr const char* kEnd = "\nld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd1, %r0, 4, %rd0;\nst.global.u32 [%rd1], %r1;";

// The value of %r1 in each thread.
std::vector<uint32_t> run_block(const std::string& body, uint32_t threads = 32, const Settings& settings = {}) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(threads * 4));
  LaunchShape shape;
  shape.block.x = threads;
  run_kernel(memory, kernel_text(1, kBegin + body + kEnd), shape, {reinterpret_cast<uint64_t>(data)}, settings);
  return {data, data + threads};
}

// The lane that CUDA's intrinsics read, in segments of `width`; its own if that lies outside.
uint32_t source_lane(const std::string& mode, uint32_t lane, uint32_t b, uint32_t width) {
  const uint32_t first = lane / width * width, last = first + width - 1;
  if (mode == "up") return lane - first >= b ? lane - b : lane;
  if (mode == "down") return lane + b <= last ? lane + b : lane;
  if (mode == "bfly") return (lane ^ b) <= last ? lane ^ b : lane;
  return first + b % width;
}

TEST(SimgpuWarp, EveryShuffleOfEveryWidth) {
  for (const std::string mode : {"up", "down", "bfly", "idx"}) {
    for (uint32_t width = 1; width <= 32; width *= 2) {
      for (const uint32_t b : {0u, 1u, 2u, 5u, 16u, 31u}) {
        const uint32_t clamp = (32 - width) << 8 | (mode == "up" ? 0 : 31);
        const auto result =
            run_block("mul.lo.u32 %r2, %r0, 3;\nshfl.sync." + mode + ".b32 %r1|p, %r2, " + std::to_string(b) + ", " +
                      std::to_string(clamp) + ", 0xffffffff;\n@!p add.u32 %r1, %r1, 1000;");
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const uint32_t from = source_lane(mode, lane, b, width);
          const bool outside = from == lane && b != 0 && !(mode == "idx") && !(mode == "bfly" && b == 0);
          EXPECT_EQ(result[lane], 3 * from + (outside ? 1000 : 0))
              << mode << " width " << width << " b " << b << " lane " << lane;
        }
      }
    }
  }
}

TEST(SimgpuWarp, ShufflesOfPartsOfAWarp) {
  // Each half of the warp by itself, with its own member mask.
  const auto result = run_block(
      "setp.lt.u32 p, %r0, 16;\nselp.b32 %r2, 0x0000ffff, 0xffff0000, p;\nshfl.sync.down.b32 %r1, %r0, 1, 0x100f, "
      "%r2;");
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(result[lane], lane % 16 == 15 ? lane : lane + 1);
}

TEST(SimgpuWarp, AShuffleFromAMissingLaneIsAFault) {
  EXPECT_EQ(fault_of([] { run_block("shfl.sync.down.b32 %r1, %r0, 1, 31, 0xffffffff;", 20); }),
            FaultKind::inactive_lane);
  EXPECT_EQ(fault_of([] { run_block("mov.u32 %r1, 0;\n@odd shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xaaaaaaaa;"); }),
            FaultKind::inactive_lane);
  EXPECT_EQ(fault_of([] { run_block("shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0x0000ffff;"); }),
            FaultKind::inactive_lane);  // not named itself
  EXPECT_EQ(fault_of([] { run_block("@!odd exit;\nshfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xffffffff;"); }),
            FaultKind::inactive_lane);  // reads an exited lane
}

TEST(SimgpuWarp, LanesThatWaitForOtherPathsAreAFault) {
  const std::string shuffle = "shfl.sync.bfly.b32 %r1, %r0, 2, 31, 0xffffffff;\n";
  EXPECT_EQ(fault_of([&] { run_block("@odd " + shuffle + "@!odd " + shuffle); }), FaultKind::inactive_lane);
  // Lanes that have exited are not waited for.
  EXPECT_EQ(run_block("mov.u32 %r1, 0;\n@odd " + shuffle)[5], 7u);
}

TEST(SimgpuWarp, Votes) {
  const std::string set = "setp.gt.u32 p, %r0, 20;\n";
  const auto value = [](const std::string& body, uint32_t threads = 32) { return run_block(body, threads)[3]; };
  EXPECT_EQ(value(set + "vote.sync.ballot.b32 %r1, p, 0xffffffff;"), 0xffe00000u);
  EXPECT_EQ(value(set + "vote.ballot.sync.b32 %r1, !p, 0xffffffff;"), 0x001fffffu);
  const auto holds = [&](const std::string& kind, const std::string& before) {
    return value(before + "vote.sync." + kind + ".pred q, p, 0xffffffff;\nselp.u32 %r1, 1, 0, q;");
  };
  EXPECT_EQ(holds("any", set), 1u);
  EXPECT_EQ(holds("all", set), 0u);
  EXPECT_EQ(holds("uni", set), 0u);
  EXPECT_EQ(holds("all", "setp.lt.u32 p, %r0, 99;\n"), 1u);
  EXPECT_EQ(holds("uni", "setp.lt.u32 p, %r0, 99;\n"), 1u);
  EXPECT_EQ(holds("any", "setp.gt.u32 p, %r0, 99;\n"), 0u);
  EXPECT_EQ(value("vote.sync.ballot.b32 %r1, 1, 0xffffffff;", 20),
            0x000fffffu);  // lanes that were never there do not count
  EXPECT_EQ(value("activemask.b32 %r1;"), 0xffffffffu);
  EXPECT_EQ(value("mov.u32 %r1, 0;\n@odd activemask.b32 %r1;"), 0xaaaaaaaau);
}

TEST(SimgpuWarp, Matches) {
  const auto any = run_block("rem.u32 %r2, %r0, 3;\nmatch.any.sync.b32 %r1, %r2, 0xffffffff;");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    uint32_t expected = 0;
    for (uint32_t other = 0; other < 32; ++other) expected |= uint32_t{other % 3 == lane % 3} << other;
    EXPECT_EQ(any[lane], expected);
  }
  EXPECT_EQ(run_block("cvt.u64.u32 %rd2, %r8;\nmatch.any.sync.b64 %r1, %rd2, 0xffffffff;")[1], 0xaaaaaaaau);
  EXPECT_EQ(run_block("match.all.sync.b32 %r1|p, 5, 0xffffffff;\n@!p mov.u32 %r1, 9;")[7], 0xffffffffu);
  EXPECT_EQ(run_block("match.all.sync.b32 %r1|p, %r0, 0xffffffff;\n@!p add.u32 %r1, %r1, 9;")[7], 9u);
}

TEST(SimgpuWarp, Reductions) {
  const auto reduce = [](const std::string& op) {
    return run_block("sub.s32 %r2, %r0, 10;\nredux.sync." + op + " %r1, %r2, 0xffffffff;")[9];
  };
  EXPECT_EQ(static_cast<int32_t>(reduce("add.s32")), 31 * 16 - 320);
  EXPECT_EQ(static_cast<int32_t>(reduce("min.s32")), -10);
  EXPECT_EQ(static_cast<int32_t>(reduce("max.s32")), 21);
  EXPECT_EQ(reduce("max.u32"), 0xffffffffu);
  EXPECT_EQ(reduce("and.b32"), 0u);
  EXPECT_EQ(reduce("or.b32"), 0xffffffffu);
  EXPECT_EQ(run_block("elect.sync %r1|p, 0xffffffff;\n@p add.u32 %r1, %r1, 100;")[0], 100u);
}

TEST(SimgpuWarp, BranchesReconverge) {
  // A loop of a different length for each lane, then a vote in which all take part without being asked to.
  const auto result = run_block(
      "mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nLOOP:\nsetp.ge.u32 p, %r2, %r0;\n@p bra DONE;\nadd.u32 %r1, %r1, "
      "%r2;\nadd.u32 %r2, %r2, 1;\nbra LOOP;\nDONE:\n"
      "activemask.b32 %r3;\nsetp.ne.u32 q, %r3, 0xffffffff;\n@q mov.u32 %r1, 0xdead;");
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(result[lane], lane * (lane - 1) / 2);
}

TEST(SimgpuWarp, LanesMayWaitForEachOther) {
  // Lane 0 spins until lane 1, on the other side of a branch with a higher pc, has written.
  const auto result = run_block(
      ".shared .align 4 .u32 flag;\nsetp.eq.u32 p, %r0, 0;\n@p st.volatile.shared.u32 [flag], 0;\nbar.warp.sync "
      "0xffffffff;\n@!p bra OTHERS;\n"
      "SPIN:\nld.volatile.shared.u32 %r1, [flag];\nsetp.eq.u32 q, %r1, 0;\n@q bra SPIN;\nbra JOIN;\n"
      "OTHERS:\nmov.u32 %r1, 1;\nst.volatile.shared.u32 [flag], 7;\nJOIN:");
  EXPECT_EQ(result[0], 7u);
}

TEST(SimgpuWarp, SyncWaitsForLanesOnOtherPaths) {
  // The odd lanes come later; bar.warp.sync may stand in both branches.
  const auto result = run_block(
      ".shared .align 4 .b8 s[128];\nmov.u32 %r2, s;\nmad.lo.u32 %r2, %r0, 4, %r2;\n@odd bra ODD;\nst.shared.u32 "
      "[%r2], %r0;\nbar.warp.sync 0xffffffff;\nbra JOIN;\n"
      "ODD:\nadd.u32 %r3, %r0, 100;\nst.shared.u32 [%r2], %r3;\nbar.warp.sync 0xffffffff;\nJOIN:\nxor.b32 %r4, %r0, "
      "1;\nmov.u32 %r2, s;\nmad.lo.u32 %r2, %r4, 4, %r2;\nld.shared.u32 %r1, [%r2];");
  for (uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(result[lane], lane % 2 == 0 ? lane + 101 : lane - 1);
}

constexpr const char* kReverse =  // 96 threads reverse their numbers through shared memory
    ".shared .align 4 .b8 s[384];\nmov.u32 %r2, s;\nmad.lo.u32 %r3, %r0, 4, %r2;\nst.shared.u32 [%r3], %r0;\nbar.sync "
    "0;\nsub.u32 %r4, 95, %r0;\nmad.lo.u32 %r3, %r4, 4, %r2;\nld.shared.u32 %r1, [%r3];";

TEST(SimgpuBlock, ABarrierOrdersWarps) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    Settings settings;
    settings.seed = seed;
    settings.race = RaceMode::on;
    const auto result = run_block(kReverse, 96, settings);
    for (uint32_t i = 0; i < 96; ++i) EXPECT_EQ(result[i], 95 - i);
  }
}

TEST(SimgpuBlock, BarrierReductions) {
  const std::string set = "setp.lt.u32 p, %r0, 40;\n";
  EXPECT_EQ(run_block(set + "bar.red.popc.u32 %r1, 0, p;", 96)[95], 40u);
  EXPECT_EQ(run_block(set + "bar.red.popc.u32 %r1, 0, !p;", 96)[0], 56u);
  EXPECT_EQ(run_block(set + "bar.red.or.pred q, 0, p;\nselp.u32 %r1, 1, 0, q;", 96)[95], 1u);
  EXPECT_EQ(run_block(set + "bar.red.and.pred q, 0, p;\nselp.u32 %r1, 1, 0, q;", 96)[0], 0u);
  EXPECT_EQ(run_block("setp.lt.u32 p, %r0, 99;\nbar.red.and.pred q, 0, p;\nselp.u32 %r1, 1, 0, q;", 96)[0], 1u);
}

TEST(SimgpuBlock, BarriersOfSomeWarps) {
  // Warps 0 and 1 meet at barrier 1, warp 2 does not take part; warp 0 only arrives at barrier 2, warp 1 waits there.
  const auto result = run_block(
      "mov.u32 %r1, 5;\nsetp.lt.u32 p, %r0, 64;\n@p barrier.sync 1, 64;\nsetp.lt.u32 q, %r0, 32;\n@q bar.arrive 2, "
      "64;\nnot.pred q, q;\nand.pred p, p, q;\n@p bar.sync 2, 64;",
      96);
  EXPECT_EQ(result[95], 5u);
}

TEST(SimgpuBlock, ABarrierThatSomeNeverReachIsAFault) {
  EXPECT_EQ(fault_of([] { run_block("mov.u32 %r1, 0;\n@odd bar.sync 0;", 64); }), FaultKind::barrier);
  EXPECT_EQ(fault_of([] { run_block("setp.eq.u32 p, %r0, 63;\n@p exit;\nbar.sync 0;\nmov.u32 %r1, 0;", 64); }),
            FaultKind::barrier);
  EXPECT_EQ(
      fault_of([] { run_block("mov.u32 %r1, 0;\n@odd bra B;\nbar.sync 0;\nbra JOIN;\nB:\nbar.sync 0;\nJOIN:", 64); }),
      FaultKind::barrier);
}

TEST(SimgpuBlock, AnEndlessLoopIsAFault) {
  Settings settings;
  settings.limit = 100'000;
  EXPECT_EQ(fault_of([&] { run_block("LOOP:\nbra LOOP;", 32, settings); }), FaultKind::limit);
}

TEST(SimgpuBlock, SpecialRegistersOfThreeDimensions) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(2 * 3 * 2 * 24 * 4));
  LaunchShape shape;
  shape.grid = {2, 3, 2};
  shape.block = {4, 3, 2};
  const std::string body =
      ".reg .b32 %r<20>;\n.reg .b64 %rd<3>;\nmov.u32 %r0, %tid.z;\nmov.u32 %r1, %ntid.y;\nmov.u32 %r2, "
      "%tid.y;\nmad.lo.u32 %r0, %r0, %r1, %r2;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\n"
      "mad.lo.u32 %r0, %r0, %r1, %r2;\nmov.u32 %r3, %ctaid.z;\nmov.u32 %r4, %nctaid.y;\nmov.u32 %r5, "
      "%ctaid.y;\nmad.lo.u32 %r3, %r3, %r4, %r5;\nmov.u32 %r4, %nctaid.x;\nmov.u32 %r5, %ctaid.x;\n"
      "mad.lo.u32 %r3, %r3, %r4, %r5;\nmad.lo.u32 %r6, %r3, 24, %r0;\nld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd1, "
      "%r6, 4, %rd0;\nmov.u32 %r7, %laneid;\nmov.u32 %r8, %lanemask_lt;\npopc.b32 %r8, %r8;\n"
      "sub.u32 %r9, %r7, %r8;\nadd.u32 %r6, %r6, %r9;\nst.global.u32 [%rd1], %r6;";
  run_kernel(memory, kernel_text(1, body), shape, {reinterpret_cast<uint64_t>(data)});
  for (uint32_t i = 0; i < 2 * 3 * 2 * 24; ++i) EXPECT_EQ(data[i], i);
}

TEST(SimgpuBlock, LaunchesThatNoDeviceAccepts) {
  Memory memory;
  const auto launch_with = [&](Dim3 grid, Dim3 block, size_t shared) {
    LaunchShape shape{grid, block, shared};
    return fault_of([&] { run_kernel(memory, kernel_text(0, ""), shape, {}); });
  };
  EXPECT_EQ(launch_with({1, 1, 1}, {1025, 1, 1}, 0), FaultKind::bad_launch);
  EXPECT_EQ(launch_with({1, 1, 1}, {0, 1, 1}, 0), FaultKind::bad_launch);
  EXPECT_EQ(launch_with({0, 1, 1}, {1, 1, 1}, 0), FaultKind::bad_launch);
  EXPECT_EQ(launch_with({1, 65536, 1}, {1, 1, 1}, 0), FaultKind::bad_launch);
  EXPECT_EQ(launch_with({1, 1, 1}, {1, 1, 1}, 200'000), FaultKind::bad_launch);
}

}  // namespace
}  // namespace simgpu
