// memory: loads and stores in every space, refused accesses, atomics.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

LaunchShape threads(uint32_t n, size_t dynamic_shared = 0) {
  LaunchShape shape;
  shape.block.x = n;
  shape.dynamic_shared_bytes = dynamic_shared;
  return shape;
}
uint64_t address(const void* p) { return reinterpret_cast<uint64_t>(p); }

constexpr const char* kBegin =
    ".reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .b16 %h<9>;\n.reg .pred p;\nld.param.u64 %rd0, [p0];\nmov.u32 %r0, "
    "%tid.x;\n";

TEST(SimgpuMemory, NarrowLoadsFillTheRegisterByTheirSign) {
  Memory memory;
  auto* data = static_cast<int64_t*>(memory.allocate(64));
  data[0] = static_cast<int64_t>(0xfffffffffffffff6);  // -10
  run_kernel(memory,
             kernel_text(1, std::string(kBegin) + "ld.global.s8 %rd1, [%rd0];\nst.global.u64 [%rd0+8], "
                                                  "%rd1;\nld.global.u8 %rd1, [%rd0];\nst.global.u64 [%rd0+16], %rd1;\n"
                                                  "ld.global.s32 %rd1, [%rd0];\nst.global.u64 [%rd0+24], "
                                                  "%rd1;\nld.global.s16 %r1, [%rd0];\nst.global.u32 [%rd0+32], %r1;\n"
                                                  "ld.global.u64 %rd1, [%rd0];\nst.global.u16 [%rd0+40], %rd1;"),
             threads(1), {address(data)});
  EXPECT_EQ(data[1], -10);
  EXPECT_EQ(data[2], 0xf6);
  EXPECT_EQ(data[3], -10);
  EXPECT_EQ(static_cast<int32_t>(data[4]), -10);
  EXPECT_EQ(static_cast<uint16_t>(data[5]), 0xfff6);
}

TEST(SimgpuMemory, VectorsAndHints) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(64 * 16));
  for (uint32_t i = 0; i < 128; ++i) data[i] = i * i;
  run_kernel(
      memory,
      kernel_text(1, std::string(kBegin) +
                         "mad.wide.u32 %rd1, %r0, 16, %rd0;\nld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%r1, %r2, "
                         "%r3, %r4}, [%rd1];\n"
                         "st.global.cs.v2.u32 [%rd1+512], {%r4, %r3};\nst.global.wt.v2.b32 [%rd1+520], {%r2, %r1};"),
      threads(32), {address(data)});
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(data[128 + i], data[i / 4 * 4 + 3 - i % 4]);
}

TEST(SimgpuMemory, LocalSharedParameterAndGenericAddresses) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(64 * 4));
  run_kernel(memory,
             kernel_text(1, std::string(kBegin) +
                                ".local .align 8 .b8 mine[16];\n.shared .align 4 .b8 ours[256];\n.reg .b64 at;\n"
                                "mov.u64 at, mine;\nst.local.u32 [mine+4], %r0;\ncvta.local.u64 at, at;\nld.u32 %r1, "
                                "[at+4];\n"  // generic local
                                "mov.u32 %r2, ours;\nshl.b32 %r3, %r0, 2;\nadd.u32 %r2, %r2, %r3;\nst.shared.u32 "
                                "[%r2], %r1;\nbar.sync 0;\n"
                                "mov.u64 at, ours;\ncvta.shared.u64 at, at;\nxor.b32 %r4, %r0, 63;\nmad.wide.u32 at, "
                                "%r4, 4, at;\nld.u32 %r5, [at];\n"  // generic shared
                                "mov.b64 at, p0;\nld.param.u64 %rd3, [at];\nmad.wide.u32 %rd1, %r0, 4, %rd3;\nst.u32 "
                                "[%rd1], %r5;"),  // generic global
             threads(64), {address(data)});
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(data[i], 63 - i);
}

TEST(SimgpuMemory, DynamicSharedMemoryLiesBehindTheStatic) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(4));
  const std::string body =
      std::string(kBegin) +
      ".shared .align 4 .b8 fixed[12];\nmov.u32 %r1, fixed;\nst.shared.u32 [%r1+8], 7;\n"
      "mov.u32 %r2, tail;\nst.shared.u32 [%r2+60], 8;\nld.shared.u32 %r3, [%r1+8];\nst.global.u32 [%rd0], %r3;";
  std::string text = kernel_text(1, body);
  text.insert(text.find(".visible"), ".extern .shared .align 16 .b8 tail[];\n");
  run_kernel(memory, text, threads(1, 64), {address(data)});
  EXPECT_EQ(*data, 7u);
  EXPECT_EQ(fault_of([&] { run_kernel(memory, text, threads(1, 60), {address(data)}); }), FaultKind::illegal_address);
}

FaultKind fault_of_access(const std::string& instruction, const void* p, Memory& memory) {
  return fault_of(
      [&] { run_kernel(memory, kernel_text(1, std::string(kBegin) + instruction), threads(1), {address(p)}); });
}

TEST(SimgpuMemory, RefusesAccessOutsideOfAllocations) {
  Memory memory;
  auto* data = static_cast<std::byte*>(memory.allocate(10));
  EXPECT_EQ(fault_of_access("ld.global.u8 %r1, [%rd0+10];", data, memory), FaultKind::illegal_address);
  EXPECT_EQ(fault_of_access("ld.global.u32 %r1, [%rd0+8];", data, memory), FaultKind::illegal_address);  // half inside
  EXPECT_EQ(fault_of_access("st.global.u8 [%rd0+-1], %r0;", data, memory), FaultKind::illegal_address);
  EXPECT_EQ(fault_of_access("ld.u32 %r1, [%rd0];", nullptr, memory), FaultKind::illegal_address);
  EXPECT_EQ(fault_of_access("atom.global.add.u32 %r1, [%rd0+12], 1;", data, memory), FaultKind::illegal_address);
  EXPECT_EQ(fault_of_access(".local .b8 mine[4];\nld.local.u32 %r1, [mine+4];", data, memory),
            FaultKind::illegal_address);
  ASSERT_TRUE(memory.free(data));
  EXPECT_EQ(fault_of_access("ld.global.u8 %r1, [%rd0];", data, memory), FaultKind::illegal_address);
  EXPECT_FALSE(memory.free(data));
}

TEST(SimgpuMemory, OneLaneOutsideIsFoundAndNamed) {
  Memory memory;
  void* data = memory.allocate(31 * 4);
  memory.allocate(1000);  // what lies next does not help
  try {
    run_kernel(memory,
               kernel_text(1, std::string(kBegin) + "mad.wide.u32 %rd1, %r0, 4, %rd0;\n\nst.global.u32 [%rd1], %r0;"),
               threads(32), {address(data)});
    FAIL() << "no fault";
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind(), FaultKind::illegal_address);
    EXPECT_EQ(fault.place().thread[0], 31);
    EXPECT_EQ(fault.place().block[0], 0);
    EXPECT_EQ(fault.place().kernel, "k");
    EXPECT_EQ(fault.place().instruction, "st.global.u32 [%rd1], %r0;");
    EXPECT_EQ(fault.place().ptx_line, 14);
  }
}

TEST(SimgpuMemory, RefusesMisalignedAccess) {
  Memory memory;
  void* data = memory.allocate(64);
  EXPECT_EQ(fault_of_access("ld.global.u32 %r1, [%rd0+2];", data, memory), FaultKind::misaligned_address);
  EXPECT_EQ(fault_of_access("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", data, memory),
            FaultKind::misaligned_address);
  EXPECT_EQ(fault_of_access(".shared .align 16 .b8 s[64];\nst.shared.v2.u32 [s+4], {%r0, %r0};", data, memory),
            FaultKind::misaligned_address);
}

TEST(SimgpuMemory, RefusesReadsOfUninitializedSharedMemory) {
  Memory memory;
  void* data = memory.allocate(64);
  EXPECT_EQ(
      fault_of_access(".shared .align 4 .b8 s[64];\nst.shared.u8 [s], %r0;\nld.shared.u32 %r1, [s];", data, memory),
      FaultKind::uninitialized);
  EXPECT_EQ(fault_of_access(".shared .align 4 .b8 s[64];\natom.shared.add.u32 %r1, [s], 1;", data, memory),
            FaultKind::uninitialized);
}

TEST(SimgpuMemory, SharedMemoryIsNewForEveryBlock) {
  Memory memory;
  void* data = memory.allocate(64);
  const std::string body = std::string(kBegin) +
                           ".shared .align 4 .b8 s[4];\nmov.u32 %r1, %ctaid.x;\nsetp.eq.u32 p, %r1, 0;\n@p "
                           "st.shared.u32 [s], %r1;\nld.shared.u32 %r2, [s];";
  LaunchShape shape = threads(1);
  run_kernel(memory, kernel_text(1, body), shape, {address(data)});
  shape.grid.x = 2;
  EXPECT_EQ(fault_of([&] { run_kernel(memory, kernel_text(1, body), shape, {address(data)}); }),
            FaultKind::uninitialized);
}

TEST(SimgpuMemory, FreshAndFreedBytesAreMarked) {
  Memory memory;
  auto* data = static_cast<uint8_t*>(memory.allocate(16));
  EXPECT_EQ(data[15], kFresh);
  EXPECT_TRUE(memory.free(data));
  EXPECT_EQ(data[0], kFreed);
  EXPECT_EQ(memory.live_bytes(), 0u);
}

TEST(SimgpuMemory, ConstantsCannotBeWritten) {
  Memory memory;
  auto* out = static_cast<uint32_t*>(memory.allocate(4));
  std::string text = kernel_text(1, std::string(kBegin) + "ld.const.u32 %r1, [table+4];\nst.global.u32 [%rd0], %r1;");
  const std::string declaration = ".const .align 4 .u32 table[2] = {5, 6};\n";
  text.insert(text.find(".visible"), declaration);
  run_kernel(memory, text, threads(1), {address(out)});
  EXPECT_EQ(*out, 6u);
  std::string writes = kernel_text(1, std::string(kBegin) + "mov.u64 %rd1, table;\nst.global.u32 [%rd1], %r0;");
  writes.insert(writes.find(".visible"), declaration);
  EXPECT_EQ(fault_of([&] { run_kernel(memory, writes, threads(1), {address(out)}); }), FaultKind::illegal_address);
}

TEST(SimgpuMemory, AsynchronousCopies) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(2 * 64 * 4));
  for (uint32_t i = 0; i < 64; ++i) data[i] = 3 * i;
  run_kernel(
      memory,
      kernel_text(
          1, std::string(kBegin) +
                 ".shared .align 16 .b8 s[256];\nmov.u32 %r1, s;\nmad.lo.u32 %r1, %r0, 16, %r1;\nmad.wide.u32 %rd1, "
                 "%r0, 16, %rd0;\n"
                 "setp.lt.u32 p, %r0, 15;\nselp.u32 %r6, 16, 0, p;\ncp.async.cg.shared.global.L2::128B [%r1], [%rd1], "
                 "16, %r6;\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\n"
                 "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];\nst.global.v4.u32 [%rd1+256], {%r2, %r3, %r4, %r5};"),
      threads(16), {address(data)});
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(data[64 + i], i < 60 ? 3 * i : 0);  // the last lane copies nothing: zeros
}

// 64 threads on one cell; integers have one sum, whatever the order.
template <class T>
T after_atomic(const std::string& instruction, T start, size_t threads_per_block = 64) {
  Memory memory;
  auto* data = static_cast<T*>(memory.allocate(sizeof(T)));
  *data = start;
  run_kernel(memory, kernel_text(1, std::string(kBegin) + "cvt.u64.u32 %rd1, %r0;\n" + instruction),
             threads(static_cast<uint32_t>(threads_per_block)), {address(data)});
  return *data;
}

TEST(SimgpuAtomic, EveryOperation) {
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.add.u32 %r1, [%rd0], %r0;", 5), 5u + 63 * 32);
  EXPECT_EQ(after_atomic<int32_t>("red.global.add.s32 [%rd0], -3;", 5), 5 - 3 * 64);
  EXPECT_EQ(after_atomic<uint64_t>("atom.add.u64 %rd2, [%rd0], %rd1;", 1ull << 40), (1ull << 40) + 63 * 32);
  EXPECT_EQ(after_atomic<int32_t>("sub.s32 %r1, 10, %r0;\natom.global.min.s32 %r2, [%rd0], %r1;", 0), -53);
  EXPECT_EQ(after_atomic<uint32_t>("sub.s32 %r1, 10, %r0;\natom.global.min.u32 %r2, [%rd0], %r1;", 7), 0u);
  EXPECT_EQ(after_atomic<uint32_t>("sub.s32 %r1, 10, %r0;\natom.global.max.u32 %r2, [%rd0], %r1;", 7), 0xffffffffu);
  EXPECT_EQ(after_atomic<int64_t>("neg.s64 %rd1, %rd1;\natom.global.min.s64 %rd2, [%rd0], %rd1;", 0), -63);
  EXPECT_EQ(after_atomic<uint64_t>("red.global.max.u64 [%rd0], %rd1;", 3), 63u);
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.and.b32 %r1, [%rd0], %r0;", 0xffu, 1), 0u);
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.or.b32 %r1, [%rd0], %r0;", 0x100u), 0x13fu);
  EXPECT_EQ(after_atomic<uint64_t>("atom.global.xor.b64 %rd2, [%rd0], %rd1;", 9),
            9u);  // each bit an even number of times
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.exch.b32 %r1, [%rd0], 77;", 1), 77u);
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.cas.b32 %r1, [%rd0], 1, 2;", 1), 2u);
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.cas.b32 %r1, [%rd0], 1, 2;", 3), 3u);
  EXPECT_EQ(after_atomic<uint64_t>("atom.cas.b64 %rd2, [%rd0], 1, 2;", 1), 2u);
  EXPECT_EQ(after_atomic<uint16_t>("atom.global.cas.b16 %h2, [%rd0], 1, 2;", 1), 2u);
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.inc.u32 %r1, [%rd0], 9;", 0), 4u);  // 64 steps modulo 10
  EXPECT_EQ(after_atomic<uint32_t>("atom.global.dec.u32 %r1, [%rd0], 9;", 0), 6u);
  EXPECT_EQ(after_atomic<float>("atom.global.add.f32 %r1, [%rd0], 0f3f000000;", 1.0f), 33.0f);
  EXPECT_EQ(after_atomic<double>("atom.global.add.f64 %rd2, [%rd0], 0d3fe0000000000000;", 1.0), 33.0);
  EXPECT_EQ(after_atomic<uint32_t>("mov.u32 %r1, 0x3f803f80;\natom.global.add.noftz.bf16x2 %r2, [%rd0], %r1;", 0),
            0x42804280u);  // 64 ones
  EXPECT_EQ(after_atomic<uint32_t>("atom.relaxed.gpu.global.add.u32 %r1, [%rd0], 1;", 0), 64u);
}

TEST(SimgpuAtomic, ReturnsTheOldValue) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(65 * 4));
  data[0] = 0;
  run_kernel(
      memory,
      kernel_text(
          1, std::string(kBegin) +
                 "atom.global.add.u32 %r1, [%rd0], 1;\nmad.wide.u32 %rd1, %r0, 4, %rd0;\nst.global.u32 [%rd1+4], %r1;"),
      threads(64), {address(data)});
  std::vector<uint32_t> seen(data + 1, data + 65);
  std::sort(seen.begin(), seen.end());
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(seen[i], i);
}

}  // namespace
}  // namespace simgpu
