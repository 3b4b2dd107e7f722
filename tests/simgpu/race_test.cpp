// race: races that must be found, and correct kernels that must pass.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

void run(const std::string& body, uint32_t threads, RaceMode mode = RaceMode::on) {
  Memory memory;
  Settings settings;
  settings.race = mode;
  LaunchShape shape;
  shape.block.x = threads;
  run_kernel(memory,
             kernel_text(0,
                         ".reg .b32 %r<9>;\n.reg .pred p, q;\n.shared .align 4 .b8 s[512];\nmov.u32 %r0, "
                         "%tid.x;\nmov.u32 %r1, s;\nmad.lo.u32 %r2, %r0, 4, %r1;\n" +
                             body),
             shape, {}, settings);
}
FaultKind fault(const std::string& body, uint32_t threads) {
  return fault_of([&] { run(body, threads); });
}

// %r3: the address of the neighbor's cell.
const std::string kNeighbor = "xor.b32 %r3, %r0, 1;\nmad.lo.u32 %r3, %r3, 4, %r1;\n";
const std::string kFarNeighbor = "xor.b32 %r3, %r0, 32;\nmad.lo.u32 %r3, %r3, 4, %r1;\n";

TEST(SimgpuRace, ReadsAfterWritesOfAnotherWarp) {
  EXPECT_EQ(
      fault(kFarNeighbor + "st.shared.u32 [%r2], %r0;\nsetp.ge.u32 p, %r0, 32;\n@p ld.shared.u32 %r4, [%r3];", 64),
      FaultKind::race);
  run(kFarNeighbor + "st.shared.u32 [%r2], %r0;\nbar.sync 0;\nld.shared.u32 %r4, [%r3];", 64);
}

TEST(SimgpuRace, WritesAfterReadsOfAnotherWarp) {
  const std::string body = kFarNeighbor + "st.shared.u32 [%r2], %r0;\nbar.sync 0;\nld.shared.u32 %r4, [%r3];\n";
  EXPECT_EQ(fault(body + "add.u32 %r4, %r4, 1;\nst.shared.u32 [%r2], %r4;", 64), FaultKind::race);
  run(body + "bar.sync 0;\nadd.u32 %r4, %r4, 1;\nst.shared.u32 [%r2], %r4;", 64);
}

TEST(SimgpuRace, LanesOfAWarpNeedASyncwarp) {
  EXPECT_EQ(fault(kNeighbor + "st.shared.u32 [%r2], %r0;\nld.shared.u32 %r4, [%r3];", 32), FaultKind::race);
  run(kNeighbor + "st.shared.u32 [%r2], %r0;\nbar.warp.sync 0xffffffff;\nld.shared.u32 %r4, [%r3];", 32);
  // A shuffle orders nothing.
  EXPECT_EQ(
      fault(kNeighbor +
                "st.shared.u32 [%r2], %r0;\nshfl.sync.idx.b32 %r5, %r0, 0, 31, 0xffffffff;\nld.shared.u32 %r4, [%r3];",
            32),
      FaultKind::race);
}

TEST(SimgpuRace, ASyncwarpOfOtherLanesDoesNotHelp) {
  // Pairs sync among themselves; then lanes two apart exchange.
  const std::string pairs = "shr.u32 %r5, %r0, 1;\nshl.b32 %r5, %r5, 1;\nshl.b32 %r6, 3, %r5;\n";
  run(pairs + kNeighbor + "st.shared.u32 [%r2], %r0;\nbar.warp.sync %r6;\nld.shared.u32 %r4, [%r3];", 32);
  EXPECT_EQ(fault(pairs + "xor.b32 %r3, %r0, 2;\nmad.lo.u32 %r3, %r3, 4, %r1;\nst.shared.u32 [%r2], "
                          "%r0;\nbar.warp.sync %r6;\nld.shared.u32 %r4, [%r3];",
                  32),
            FaultKind::race);
}

TEST(SimgpuRace, TwoWritersOfOneCell) {
  EXPECT_EQ(fault("st.shared.u32 [s], %r0;", 64), FaultKind::race);
  EXPECT_EQ(fault("st.shared.u32 [s], %r0;", 2), FaultKind::race);
  run("st.shared.u32 [s], 7;", 64);  // all write the same
}

TEST(SimgpuRace, AtomicsDoNotRaceWithEachOther) {
  const std::string start = "setp.eq.u32 p, %r0, 0;\n@p st.shared.u32 [s], 0;\n";
  run(start + "bar.sync 0;\natom.shared.add.u32 %r3, [s], 1;", 64);
  EXPECT_EQ(fault(start + "atom.shared.add.u32 %r3, [s], 1;", 64), FaultKind::race);
  EXPECT_EQ(fault(start + "bar.sync 0;\natom.shared.add.u32 %r3, [s], 1;\nld.shared.u32 %r4, [s];", 64),
            FaultKind::race);
  run(start + "bar.sync 0;\natom.shared.add.u32 %r3, [s], 1;\nbar.sync 0;\nld.shared.u32 %r4, [s];", 64);
}

TEST(SimgpuRace, ReadersDoNotRaceWithEachOther) {
  run("setp.eq.u32 p, %r0, 0;\n@p st.shared.u32 [s], 5;\nbar.sync 0;\nld.shared.u32 %r3, [s];", 96);
}

TEST(SimgpuRace, ReadersOfSeveralWarpsAreAllRemembered) {
  // Warp 0 reads; then thread 64 reads and writes, alone in its warp.
  const std::string start = "setp.eq.u32 p, %r0, 0;\n@p st.shared.u32 [s], 5;\nbar.sync 0;\nsetp.eq.u32 q, %r0, 64;\n";
  const std::string ends = "@q ld.shared.u32 %r3, [s];\n@q st.shared.u32 [s], 6;";
  EXPECT_EQ(fault(start + "setp.lt.u32 p, %r0, 32;\n@p ld.shared.u32 %r3, [s];\n" + ends, 96), FaultKind::race);
  run(start + ends, 96);
}

TEST(SimgpuRace, OnlyWhenAskedFor) { run("st.shared.u32 [s], %r0;", 64, RaceMode::off); }

TEST(SimgpuRace, NamesTheThreadsAndThePlace) {
  try {
    run(kFarNeighbor + "st.shared.u32 [%r2], %r0;\nsetp.ge.u32 p, %r0, 32;\n@p ld.shared.u32 %r4, [%r3];", 64);
    FAIL() << "no race was found";
  } catch (const Fault& fault) {
    EXPECT_NE(fault.sentence().find("thread 32 reads byte 0"), std::string::npos) << fault.what();
    EXPECT_NE(fault.sentence().find("thread 0 wrote"), std::string::npos) << fault.what();
    EXPECT_NE(fault.sentence().find("st.shared.u32 [%r2], %r0;"), std::string::npos) << fault.what();
    EXPECT_EQ(fault.place().thread[0], 32);
  }
}

}  // namespace
}  // namespace simgpu
