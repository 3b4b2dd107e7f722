// The parser and the decoder: scopes, labels, variables, calls, printf, and what they refuse by name.
#include "tests/simgpu/op_test.h"

namespace simgpu {
namespace {

std::string refusal(const std::string& instruction) {
  try {
    Memory memory;
    const Module module(
        kernel_text(1, ".reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .b16 %h<9>;\n.reg .pred p;\n" + instruction), memory);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.kind(), FaultKind::bad_ptx);
    EXPECT_EQ(fault.place().ptx_line, 10) << fault.what();
    return fault.sentence();
  }
  return "taken";
}

TEST(SimgpuModule, RefusesOpcodesAndModifiersByName) {
  EXPECT_EQ(refusal("add.u32 %r0, %r1, %r2;"), "taken");
  EXPECT_EQ(refusal("frobnicate.u32 %r0, %r1;"), "unknown opcode frobnicate.u32");
  EXPECT_EQ(refusal("add.sparkling.u32 %r0, %r1, %r2;"), "unknown modifier .sparkling of add");
  EXPECT_EQ(refusal("add.ftz.f64 %rd0, %rd1, %rd2;"), "unknown modifier .ftz of add");  // there is none of f64
  EXPECT_EQ(refusal("add.rn.ftz.sat.f32 %r0, %r1, %r2;"), "taken");
  EXPECT_EQ(refusal("ld.global.sideways.u32 %r0, [%rd0];"), "unknown modifier .sideways of ld");
  EXPECT_EQ(refusal("shfl.up.b32 %r0, %r1, 1, 0;"), "only the .sync form is known: shfl.up.b32");
  EXPECT_EQ(refusal("atom.global.add.exotic.u32 %r0, [%rd0], 1;"), "unknown modifier .exotic of atom");
  EXPECT_EQ(refusal("bra.sometimes NOWHERE;"), "unknown modifier .sometimes of bra");
  EXPECT_EQ(refusal("cvt.s32.f32 %r0, %r1;"), "a conversion without the rounding it needs");
  EXPECT_EQ(refusal("cvt.rn.rz.f32.f64 %r0, %rd1;"), "unknown modifier .rz of cvt");
  EXPECT_NE(refusal("setp.above.s32 p, %r0, %r1;"), "taken");
  EXPECT_NE(refusal("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 %r0, %r1;"), "taken");
}

TEST(SimgpuModule, RefusesUnknownNames) {
  EXPECT_EQ(refusal("add.u32 %r0, %r1, %r9;"), "unknown name %r9");  // %r<9> ends at %r8
  EXPECT_EQ(refusal("mov.u32 %r0, %tid.w;"), "unknown name %tid.w");
  EXPECT_EQ(refusal("add.u64 %rd0, %rd1, %r1;"), "a 32-bit register where 64 bits are expected: %r1");
  EXPECT_EQ(refusal("add.u32 %r0, %r1, p;"), "a predicate where a value is expected: p");
  EXPECT_EQ(refusal("add.u32 %r0, %r1;"), "unknown form of add.u32");
  EXPECT_EQ(refusal("bfi.b32 %r0, %r1, %r2;"), "too few operands");
}

std::vector<uint32_t> run(const std::string& text, uint32_t threads, const Settings& settings = {}) {
  Memory memory;
  auto* data = static_cast<uint32_t*>(memory.allocate(threads * 4));
  LaunchShape shape;
  shape.block.x = threads;
  run_kernel(memory, text, shape, {reinterpret_cast<uint64_t>(data)}, settings);
  return {data, data + threads};
}
const std::string kBegin = ".reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n.reg .pred p;\nmov.u32 %r0, %tid.x;\n";
const std::string kEnd = "\nld.param.u64 %rd0, [p0];\nmad.wide.u32 %rd1, %r0, 4, %rd0;\nst.global.u32 [%rd1], %r1;";

TEST(SimgpuModule, ScopesHideNamesAndLabels) {
  const std::string inner =
      "{ .reg .u32 r0; .reg .pred p; setp.gt.u32 p, %r0, 1; mov.u32 r0, 10; @p bra OUT; add.u32 r0, r0, 5; OUT: "
      "add.u32 %r1, %r1, r0; }\n";
  const auto result = run(kernel_text(1, kBegin + "mov.u32 %r1, 0;\nsetp.eq.u32 p, %r0, 0;\n" + inner + inner +
                                             "@p add.u32 %r1, %r1, 100;" + kEnd),
                          4);
  EXPECT_EQ(result, (std::vector<uint32_t>{130, 30, 20, 20}));
}

TEST(SimgpuModule, VariablesAndTheirInitialValues) {
  Memory memory;
  std::string text = kernel_text(1, kBegin + "ld.global.u64 %rd2, [pointer];\nld.u32 %r1, [%rd2+4];" + kEnd);
  text.insert(text.find(".visible"),
              ".global .align 4 .b8 numbers[12] = {1, 0, 0, 0, 7, 1};\n.global .align 8 .u64 pointer = "
              "generic(numbers);\n.global .align 8 .f64 real = 0d3ff8000000000000;\n.global .align 4 .u32 zero;\n");
  const Module module(text, memory);
  ASSERT_NE(module.variable("numbers"), nullptr);
  EXPECT_EQ(module.variable("numbers")->bytes, 12u);
  EXPECT_EQ(static_cast<uint32_t*>(module.variable("numbers")->address)[1], 0x107u);
  EXPECT_EQ(static_cast<uint32_t*>(module.variable("numbers")->address)[2], 0u);
  EXPECT_EQ(*static_cast<double*>(module.variable("real")->address), 1.5);
  EXPECT_EQ(*static_cast<uint32_t*>(module.variable("zero")->address), 0u);
  EXPECT_EQ(module.variable("absent"), nullptr);
  EXPECT_EQ(module.target(), 90);
  EXPECT_EQ(module.ptx_version(), 90);
  EXPECT_EQ(run(text, 1)[0], 0x107u);
}

TEST(SimgpuModule, ReadsParametersAndMemoryOfKernels) {
  Memory memory;
  const Module module(
      ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry two(.param .u32 a, .param .u64 b, .param .align "
      "8 .b8 c[20])\n.maxntid 128, 2, 1\n.minnctapersm 2\n"
      "{ .shared .align 16 .b8 s[100]; .local .align 8 .b8 l[24]; .reg .b32 %r<2>; mov.u32 %r0, s; ret; }",
      memory);
  const Kernel* kernel = module.find("two");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(module.find("three"), nullptr);
  ASSERT_EQ(kernel->parameters.size(), 3u);
  EXPECT_EQ(kernel->parameters[1].offset, 8u);
  EXPECT_EQ(kernel->parameters[2].offset, 16u);
  EXPECT_EQ(kernel->parameters[2].bytes, 20u);
  EXPECT_EQ(kernel->parameter_bytes, 36u);
  EXPECT_EQ(kernel->static_shared_bytes, 100u);
  EXPECT_EQ(kernel->local_bytes, 24u);
  EXPECT_EQ(kernel->max_threads, 256);
  LaunchShape shape;
  shape.block.x = 257;
  EXPECT_EQ(fault_of([&] { launch(memory, *kernel, shape, std::vector<char>(36).data(), {}); }), FaultKind::bad_launch);
}

// (x) -> x * x + 1, and for 0 at once 100.
const std::string kFunction =
    ".func (.param .b32 out) f(.param .b32 in)\n{ .reg .b32 %r<4>; .reg .pred %p<2>; ld.param.u32 %r1, [in]; "
    "setp.ne.u32 %p1, %r1, 0; @%p1 bra L; st.param.b32 [out], 100; ret;\n"
    "L: mad.lo.u32 %r2, %r1, %r1, 1; st.param.b32 [out+0], %r2; ret; }\n";
std::string with_function(const std::string& function, const std::string& body) {
  std::string text = kernel_text(1, kBegin + body + kEnd);
  return text.insert(text.find(".visible"), function);
}
const std::string kCall =
    "{ .param .b32 param0; st.param.b32 [param0+0], %r0; .param .b32 retval0; call.uni (retval0), f, (param0); "
    "ld.param.b32 %r1, [retval0+0]; }\n";

TEST(SimgpuModule, CallsAreInlined) {
  EXPECT_EQ(run(with_function(kFunction, kCall), 4), (std::vector<uint32_t>{100, 2, 5, 10}));
  // Twice, the second time only by some lanes.
  const auto twice = run(with_function(kFunction, kCall + "mov.u32 %r2, %r1;\nsetp.gt.u32 p, %r0, 1;\n@!p bra SKIP;\n" +
                                                      kCall + "add.u32 %r1, %r1, 1000;\nSKIP:"),
                         4);
  EXPECT_EQ(twice, (std::vector<uint32_t>{100, 2, 1005, 1010}));
}

TEST(SimgpuModule, RefusesCallsItCannotInline) {
  Memory memory;
  const auto sentence = [&](const std::string& text) -> std::string {
    try {
      const Module module(text, memory);
      return "taken";
    } catch (const Fault& fault) {
      return fault.sentence();
    }
  };
  EXPECT_EQ(sentence(with_function(".func f() { call f; ret; }\n", "call f;\nmov.u32 %r1, 0;")),
            "a recursive call of f");
  EXPECT_EQ(sentence(with_function("", "call g;\nmov.u32 %r1, 0;")), "call of an unknown function g");
}

TEST(SimgpuModule, PrintsAndAsserts) {
  const std::string declarations =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.extern .func __assertfail(.param .b64 a, "
      ".param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n"
      ".global .align 1 .b8 text[16] = {37, 100, 32, 37, 46, 50, 102, 32, 37, 115, 10};\n.global .align 1 .b8 word[4] "
      "= {104, 105};\n";  // "%d %.2f %s\n", "hi"
  const std::string print =
      ".local .align 8 .b8 depot[24];\nst.local.u32 [depot], 42;\nst.local.f64 [depot+8], 0d3ff8000000000000;\nmov.u64 "
      "%rd2, word;\ncvta.global.u64 %rd2, %rd2;\nst.local.u64 [depot+16], %rd2;\n"
      "mov.u64 %rd3, text;\ncvta.global.u64 %rd3, %rd3;\nmov.u64 %rd4, depot;\ncvta.local.u64 %rd4, %rd4;\n"
      "{ .param .b64 param0; st.param.b64 [param0], %rd3; .param .b64 param1; st.param.b64 [param1], %rd4; .param .b32 "
      "retval0; call.uni (retval0), vprintf, (param0, param1); ld.param.b32 %r1, [retval0]; }\n";
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(with_function(declarations, print), 1)[0], 11u);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "42 1.50 hi\n");
  const std::string fails =
      "mov.u64 %rd3, word;\n{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 "
      "[a], %rd3; st.param.b64 [b], %rd3; st.param.b32 [c], 12; st.param.b64 [d], %rd3; "
      "st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }\nmov.u32 %r1, 0;";
  EXPECT_EQ(fault_of([&] { run(with_function(declarations, fails), 1); }), FaultKind::assertion);
  EXPECT_EQ(fault_of([&] { run(with_function("", "mov.u32 %r1, 0;\ntrap;"), 1); }), FaultKind::trap);
}

TEST(SimgpuModule, FaultsNameTheSourceLine) {
  std::string text = kernel_text(1,
                                 ".loc 1 17 3\n.reg .b32 %r<2>;\nmov.u32 %r0, 1;\n.loc 2 5 1, function_name $L_name, "
                                 "inlined_at 1 40 3\ntrap;") +
                     ".file 1 \"kernels/some.cu\"\n.file 2 \"kernels/base.cuh\"\n";
  try {
    run(text, 1);
    FAIL() << "no fault";
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.place().source, "kernels/base.cuh:5 (inlined at kernels/some.cu:40)");
    EXPECT_NE(std::string(fault.what()).find("trap"), std::string::npos);
  }
}

TEST(SimgpuModule, GuardsHoldBackSingleLanes) {
  for (const std::string op : {"add.u32 %r1, %r1, 5;", "atom.shared.add.u32 %r2, [s], 1;",
                               "cvt.rni.u32.f32 %r1, 0f40400000;", "div.u32 %r1, 20, 4;", "ld.shared.u32 %r1, [s];"}) {
    const auto result = run(
        kernel_text(
            1, kBegin +
                   ".shared .align 4 .u32 s;\nst.shared.u32 [s], 5;\nmov.u32 %r1, 3;\nsetp.gt.u32 p, %r0, 40;\n@p " +
                   op + kEnd),
        64);
    for (uint32_t i = 0; i <= 40; ++i) EXPECT_EQ(result[i], 3u) << op;
  }
}

}  // namespace
}  // namespace simgpu
