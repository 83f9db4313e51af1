// Tensor-core schedules: what they mean (the interpreter runs the lowered pipelines, roles and all), what is
// refused, and that their code compiles without spills.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/product_functions.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/golden/golden.h"
#include "tests/passes/lowered_function.h"
#include "tests/passes/tensor_core_traces.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using testing::HasSubstr;

constexpr char kGemm[] = R"(workload g(a: f16[200,144], b: f16[104,144], d: f16[104]) -> (c: f16[200,104]) {
  s[i,j]: f32[200,104] = sum[k:144](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(max(s[i,j] + f32(d[j]), 0.0))
})";

// A 128 x 32 x 64 tile for two warpgroups, its results through shared memory.
std::string Ring(const std::string& deal) {
  return WarpSpecializedTrace({128, 32, 64}, /*warpgroups=*/2, /*slots=*/3, deal);
}
std::string WarpSpecialized() { return Ring("persist(t3.a0.0+a1.0, 3)\n"); }

void CheckMeaning(const std::string& workload, const std::string& steps, const Target& target,
                  double tolerance = 2e-3) {
  const Workload canonical = CanonicalWorkload(workload);
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(canonical, steps, target);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  if (std::getenv("MYCC_SHOW") != nullptr) std::printf("%s\n", PrintLowered(*lowered).c_str());
  const absl::Status status = CheckLowered(canonical, *lowered, tolerance);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << PrintLowered(*lowered);
}

// The code compiles, keeps everything in registers, and its tensor cores do not wait for each other.
void CheckCode(const std::string& workload, const std::string& steps, const Target& target) {
  const Workload canonical = CanonicalWorkload(workload);
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(canonical, steps, target);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const absl::StatusOr<CudaProgram> program = EmitCuda(*lowered, target, "k");
  ASSERT_TRUE(program.ok()) << program.status().message();
  if (std::getenv("MYCC_SHOW") != nullptr) std::printf("%s\n", program->source.c_str());
  const absl::StatusOr<CudaImage> image = CompileCuda(program->source, target);
  ASSERT_TRUE(image.ok()) << image.status().message() << "\n" << program->source;
  EXPECT_FALSE(image->serialized_wgmma) << image->log;
  for (const CudaKernelResources& kernel : image->kernels) {
    EXPECT_EQ(kernel.spill_bytes, 0) << kernel.kernel;
    EXPECT_EQ(kernel.stack_bytes, 0) << kernel.kernel;
  }
}

TEST(TensorCoreTest, WarpSpecializedRing) {
  CheckMeaning(kGemm, WarpSpecialized(), Sm90a());
  CheckCode(kGemm, WarpSpecialized(), Sm90a());
}

// Tiles of rows in pairs; the last pair has one tile: no tile of the result is stored by one thread.
TEST(TensorCoreTest, TheCopyEngineStoresTilesOfAPartialGroup) {
  const std::string workload = absl::StrReplaceAll(kGemm, {{"200", "328"}});
  const std::string steps = absl::StrReplaceAll(
      WarpSpecialized(),
      {{"reorder([t3.a0.0, t3.a1.0,", "split(t3.a0.0, [2])\nreorder([t3.a0.0.0, t3.a1.0, t3.a0.0.1,"},
       {"fuse([t3.a0.0, t3.a1.0])", "fuse([t3.a0.0.0, t3.a1.0, t3.a0.0.1])"},
       {"t3.a0.0+a1.0", "t3.a0.0.0+a1.0+a0.0.1"}});
  CheckMeaning(workload, steps, Sm90a());
  CheckCode(workload, steps, Sm90a());
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(CanonicalWorkload(workload), steps, Sm90a());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const absl::StatusOr<CudaProgram> program = EmitCuda(*lowered, Sm90a(), "k");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_THAT(program->source, HasSubstr("bulk_store_2d(map"));
}

TEST(TensorCoreTest, GroupsTakeTurns) {
  const std::string steps = absl::StrReplaceAll(
      WarpSpecialized(),
      {{"persist(t3.a0.0+a1.0, 3)\n", "persist(t3.a0.0+a1.0, 2)\npingpong(t3.a0.0+a1.0, 2)\n"},
       {"[128]", "[64]"},
       {"wgmma.f16, 2, 1", "wgmma.f16, 1, 1"}});
  CheckMeaning(kGemm, steps, Sm90a());
  CheckCode(kGemm, steps, Sm90a());
}

// Pairs of blocks that differ in their rows: both need the same tile of t1.
std::string InPairs() { return InClustersOfTwo(Ring("persist(t3.a0.0+a1.0, 2)\n")); }

TEST(TensorCoreTest, ClustersShareTiles) {
  CheckMeaning(kGemm, InPairs(), Sm90a());
  CheckCode(kGemm, InPairs(), Sm90a());
}

// The tiles that are left over shared out by steps: of 8 tiles of 3 steps.
std::string Streamed(int blocks, int groups, int members) {
  return Ring(absl::StrCat("stream_k(t3.a0.0+a1.0, ", blocks, ", ", groups, ", ", members, ")\n"));
}

TEST(TensorCoreTest, BlocksShareTilesOutBySteps) {
  // Blocks, groups, members: all in one group, shares of more and of less than a tile, blocks in no group,
  // and no whole rounds.
  for (const auto& [blocks, groups, members] : {std::array{3, 1, 3},
                                                {3, 2, 1},
                                                {3, 1, 2},
                                                {5, 1, 5},
                                                {5, 1, 4},
                                                {7, 1, 3},
                                                {6, 2, 3},
                                                {12, 4, 3},
                                                {10, 1, 10}}) {
    SCOPED_TRACE(absl::StrCat(blocks, " ", groups, " ", members));
    CheckMeaning(kGemm, Streamed(blocks, groups, members), Sm90a());
  }
  CheckCode(kGemm, Streamed(3, 1, 3), Sm90a());
  CheckCode(kGemm, Streamed(12, 4, 3), Sm90a());
}

// The lowered function with statements of its roles changed.
Function WithRolesChanged(const LoweredFunction& lowered, const std::function<Stmt(const Stmt&)>& change) {
  Function changed = WholeFunction(lowered);
  changed.body = RewriteStmts(changed.body, change);
  return changed;
}

TEST(TensorCoreTest, SumsOfAnotherBlockThatNobodyAwaitsAreARace) {
  const Workload canonical = CanonicalWorkload(kGemm);
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(canonical, Streamed(5, 1, 5), Sm90a());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const Function hasty = WithRolesChanged(*lowered, [](const Stmt& stmt) -> Stmt {
    return stmt->kind == StmtKind::kAwait ? std::make_shared<Seq>(std::vector<Stmt>{}) : nullptr;
  });
  EXPECT_THAT(CheckFunction(canonical, hasty, 2e-3).message(), HasSubstr("t3.acc.parts"));
  const Function silent = WithRolesChanged(*lowered, [](const Stmt& stmt) -> Stmt {
    return stmt->kind == StmtKind::kSignal ? std::make_shared<Seq>(std::vector<Stmt>{}) : nullptr;
  });
  EXPECT_THAT(CheckFunction(canonical, silent, 2e-3).message(), HasSubstr("between thread blocks"));
  const Function of_another = WithRolesChanged(*lowered, [](const Stmt& stmt) -> Stmt {
    const Signal* signal = DynAs<Signal>(stmt);
    if (signal == nullptr) return nullptr;
    return std::make_shared<Signal>(signal->flags, Mod(signal->index + 1, 5));
  });
  EXPECT_THAT(CheckFunction(canonical, of_another, 2e-3).message(), HasSubstr("t3.acc.parts"));
  const Function forgetful = WithRolesChanged(*lowered, [](const Stmt& stmt) -> Stmt {
    const Signal* signal = DynAs<Signal>(stmt);
    if (signal == nullptr) return nullptr;
    return std::make_shared<If>(MakeBinary(Op::kLt, signal->index, IntConst(3)), stmt);
  });
  EXPECT_THAT(CheckFunction(canonical, forgetful, 2e-3).message(), HasSubstr("deadlock"));
}

TEST(TensorCoreTest, WhatCannotBeSharedOutBySteps) {
  const Workload canonical = CanonicalWorkload(kGemm);
  const auto error = [&](const std::string& steps) {
    return std::string(LowerForGpu(canonical, steps, Sm90a()).status().message());
  };
  const std::string turns = absl::StrReplaceAll(
      Streamed(3, 1, 3),
      {{"stream_k(t3.a0.0+a1.0, 3, 1, 3)\n", "stream_k(t3.a0.0+a1.0, 3, 1, 3)\npingpong(t3.a0.0+a1.0, 2)\n"},
       {"wgmma.f16, 2, 1", "wgmma.f16, 1, 1"}});
  EXPECT_THAT(error(turns), HasSubstr("no pingpong"));
  EXPECT_THAT(error(Streamed(4, 2, 2)), HasSubstr("the last 0 of 8 tiles of 3 steps"));
  EXPECT_THAT(error(Streamed(5, 2, 2)), HasSubstr("2 groups of 2 of 5 blocks share the last 3"));
  EXPECT_THAT(error(Streamed(24, 2, 13)), HasSubstr("24 blocks with 2 groups of 13"));
}

// A block that lets only itself know that a slot is free, and the other block overwrites what it still reads.
TEST(TensorCoreTest, ASlotThatABlockOfTheClusterStillReadsIsARace) {
  const Workload canonical = CanonicalWorkload(kGemm);
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(canonical, InPairs(), Sm90a());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  Function broken = WholeFunction(*lowered);
  broken.body = RewriteStmts(broken.body, [](const Stmt& stmt) -> Stmt {
    const Roles* roles = DynAs<Roles>(stmt);
    if (roles == nullptr) return nullptr;
    std::vector<Roles::Role> changed = roles->roles;
    changed[0].body = RewriteStmts(changed[0].body, [](const Stmt& s) -> Stmt {
      const Arrive* arrive = DynAs<Arrive>(s);
      if (arrive == nullptr) return nullptr;
      const Stmt own = std::make_shared<Arrive>(arrive->barrier, nullptr, arrive->arrivals);
      return MakeSeq({own, own});
    });
    return std::make_shared<Roles>(std::move(changed), roles->barrier_counts);
  });
  EXPECT_THAT(CheckFunction(canonical, broken, 2e-3).message(), HasSubstr("t1.s"));
}

std::string Multistage() { return MultistageTrace({64, 32, 32}); }

TEST(TensorCoreTest, ThreadsCopyAhead) {
  for (const Target& target : {Sm80(), Sm90a()}) {
    CheckMeaning(kGemm, Multistage(), target);
    CheckCode(kGemm, Multistage(), target);
  }
}

constexpr char kGemmI8[] = R"(workload g(a: i8[200,160], b: i8[104,160], d: f32[104]) -> (c: f16[200,104]) {
  s[i,j]: i32[200,104] = sum[k:160](i32(a[i,k]) * i32(b[j,k]))
  c[i,j] = f16(f32(s[i,j]) * d[j])
})";

// The steps with an instruction for elements of another size: rows in shared memory stay 64 bytes.
std::string MultistageOf(const std::string& instruction, int depth) {
  return absl::StrReplaceAll(Multistage(),
                             {{"r0, [32]", absl::StrCat("r0, [", depth, "]")}, {"mma.f16", instruction}});
}

TEST(TensorCoreTest, IntegersOfEightBits) {
  for (const Target& target : {Sm80(), Sm90a()}) {
    CheckMeaning(kGemmI8, MultistageOf("mma.i8", 64), target);
    CheckCode(kGemmI8, MultistageOf("mma.i8", 64), target);
  }
}

constexpr char kGemmF8[] =
    R"(workload g(a: f8e4m3[200,352], b: f8e4m3[104,352], d: f32[104]) -> (c: f16[200,104]) {
  s[i,j]: f32[200,104] = sum[k:352](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(s[i,j] * d[j])
})";

std::string OfE5M2(const std::string& text) {
  return absl::StrReplaceAll(text, {{"f8e4m3", "f8e5m2"}, {"mma.e4m3", "mma.e5m2"}});
}

// Partial sums of a depth of 128 are added up: here of one turn, there of two in each.
TEST(TensorCoreTest, FloatsOfEightBits) {
  const std::string steps = MultistageOf("mma.e4m3", 64);
  for (const Target& target : {Sm89(), Sm90a()}) {
    CheckMeaning(kGemmF8, steps, target);
    CheckCode(kGemmF8, steps, target);
    CheckCode(OfE5M2(kGemmF8), OfE5M2(steps), target);
  }
  for (const int depth : {128, 256}) {
    const std::string ring = absl::StrReplaceAll(
        WarpSpecialized(), {{"r0, [64]", absl::StrCat("r0, [", depth, "]")}, {"wgmma.f16", "wgmma.e4m3"}});
    CheckMeaning(kGemmF8, ring, Sm90a());
    CheckCode(kGemmF8, ring, Sm90a());
    CheckCode(OfE5M2(kGemmF8), OfE5M2(ring), Sm90a());
  }
}

// Behind a loop of products that run on, no instruction comes before the wait, and the wait names the sums.
TEST(TensorCoreTest, SumsAreReadBehindTheWait) {
  const absl::StatusOr<ScheduledCase> product = CaseOf(kGemm, WarpSpecialized());
  ASSERT_TRUE(product.ok()) << product.status();
  const absl::StatusOr<CudaProgram> program = EmitChecked(*product, {Sm90a()});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(
      program->source,
      testing::ContainsRegex("\n *wgmma_wait<0>.*;\n *keep_behind.*;\n *complete_16_floats.t3_acc.;\n"));
}

// Two row tiles in one statement, one of two, and a left operand in registers. Operands are known by number.
TEST(TensorCoreTest, StatementsOfWgmma) {
  const Instruction& row = *InstructionNamed("wgmma.f16");
  const FragmentLayout layout{128, 8, WarpGrid{1, 1}, row.sums.fragment};
  std::string text;
  for (const auto& [tiles, of_registers] : {std::pair(2, false), {1, false}, {1, true}, {2, true}})
    text += WarpgroupProduct(row, layout, tiles, /*steps=*/2, of_registers).text;
  text += CompleteSums(row.accumulator, layout.registers()).text;
  EXPECT_TRUE(MatchesGolden("cuda/wgmma_statements", text));
}

// More than 128 columns are multiplied in two halves: the registers of a half of the sums, and rows of b
// further on.
TEST(TensorCoreTest, PartialSumsAreOfAtMost128Columns) {
  const std::string wide = absl::StrReplaceAll(kGemmF8, {{"104", "512"}});
  const std::string steps =
      absl::StrReplaceAll(WarpSpecialized(), {{"r0, [64]", "r0, [128]"},
                                              {"a1, [32]", "a1, [256]"},
                                              {"persist(t3.a0.0+a1.0, 3)\n", ""},
                                              {"wgmma.f16", "wgmma.e4m3"},
                                              {"layout(t3.w.s, 0, 64)", "layout(t3.w.s, 0, 128)"}});
  CheckCode(wide, steps, Sm90a());
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(CanonicalWorkload(wide), steps, Sm90a());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const std::string source = EmitCuda(*lowered, Sm90a(), "k")->source;
  EXPECT_THAT(source, HasSubstr("float part[64];"));
  EXPECT_THAT(source, HasSubstr("wgmma_m64n128k128_e4m3<0, 0, 0, 0, 2, 2, 4, 4, 6, 6>(part, a, b);"));
  EXPECT_THAT(source, HasSubstr("add_part<0, 32, 64>(t3_acc, part);"));
  EXPECT_THAT(source,
              HasSubstr("wgmma_m64n128k128_e4m3<0, 0, 0, 1024, 2, 1026, 4, 1028, 6, 1030>(part, a, b);"));
  EXPECT_THAT(source, HasSubstr("add_part<32, 32, 64>(t3_acc, part);"));
}

TEST(TensorCoreTest, IntegersByWarpgroups) {
  const std::string ring =
      absl::StrReplaceAll(WarpSpecialized(), {{"r0, [64]", "r0, [128]"}, {"wgmma.f16", "wgmma.i8"}});
  CheckMeaning(kGemmI8, ring, Sm90a());
  CheckCode(kGemmI8, ring, Sm90a());
}

constexpr char kGemmTf32[] =
    R"(workload g(a: f32[200,144], b: f32[104,144], d: f32[104]) -> (c: f32[200,104]) {
  s[i,j]: f32[200,104] = sum[k:144](tf32(a[i,k]) * tf32(b[j,k]))
  c[i,j] = max(s[i,j] + d[j], 0.0)
})";

TEST(TensorCoreTest, RoundedFloats) {
  for (const Target& target : {Sm80(), Sm90a()}) {
    CheckMeaning(kGemmTf32, MultistageOf("mma.tf32", 16), target, 1e-5);
    CheckCode(kGemmTf32, MultistageOf("mma.tf32", 16), target);
  }
}

constexpr char kGemmAcross[] =
    R"(workload g(a: f32[160,200], b: f32[160,104], d: f32[104]) -> (c: f32[200,104]) {
  s[i,j]: f32[200,104] = sum[k:160](tf32(a[k,i]) * tf32(b[k,j]))
  c[i,j] = max(s[i,j] + d[j], 0.0)
})";

// The emitted code, with fragments as the PTX ISA lays them out, computes the reference: of every type, and
// of operands whose rows run along the depth or across it.
TEST(TensorCoreTest, FragmentsAreWhatInstructionsTake) {
  const std::string bf16 = absl::StrReplaceAll(kGemm, {{"f16", "bf16"}});
  const auto across = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"a: f16[200,144]", "a: f16[144,200]"},
                                      {"b: f16[104,144]", "b: f16[144,104]"},
                                      {"a[i,k]", "a[k,i]"},
                                      {"b[j,k]", "b[k,j]"}});
  };
  const auto steps_across = [](const std::string& steps) {
    return absl::StrReplaceAll(steps, {{"t3.a0.1, t3.a1.1, t3.r0.1]", "t3.r0.1, t3.a0.1, t3.a1.1]"},
                                       {"tensorize_tile(t3.a0.1", "tensorize_tile(t3.r0.1"},
                                       {"layout(t0.s, 0, 64)", "layout(t0.s, 8, 0)"},
                                       {"layout(t1.s, 0, 64)", "layout(t1.s, 8, 0)"}});
  };
  const std::pair<std::string, std::string> cases[] = {
      {kGemm, Multistage()},
      {bf16, MultistageOf("mma.bf16", 32)},
      {across(kGemm), steps_across(Multistage())},
      {bf16, MultistageOf("mma.bf16.k8", 32)},
      {across(kGemm), steps_across(MultistageOf("mma.f16.k8", 32))},
      {kGemmI8, MultistageOf("mma.i8", 64)},
      {kGemmTf32, MultistageOf("mma.tf32", 16)},
      {kGemmAcross, steps_across(MultistageOf("mma.tf32", 16))},
      {kGemmF8, MultistageOf("mma.e4m3", 64)},
      {OfE5M2(kGemmF8), OfE5M2(MultistageOf("mma.e4m3", 64))},
  };
  std::vector<ScheduledCase> scheduled;
  for (const auto& [workload, steps] : cases) {
    const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(workload, steps);
    ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message() << "\n" << steps;
    scheduled.push_back(*gpu_case);
  }
  for (const absl::Status& status : CheckOnHost(scheduled, 1e-2))
    EXPECT_TRUE(status.ok()) << status.message();
  // Rounded to tf32, products are exact: only sums differ.
  for (const absl::Status& status : CheckOnHost({scheduled[6], scheduled[7]}, 1e-5))
    EXPECT_TRUE(status.ok()) << status.message();
}

// Another instruction is another row of the table and nothing else: mma.m16n8k8, whose depth divides tiles
// that mma.m16n8k16 cannot take. Fragments, the addresses of ldmatrix and the device function follow from the
// row.
TEST(TensorCoreTest, AnInstructionIsARow) {
  const auto steps = [](const char* instruction) {
    return absl::StrReplaceAll(
        MultistageOf(instruction, 24),
        {{"layout(t0.s, 0, 64)", "layout(t0.s, 8, 0)"}, {"layout(t1.s, 0, 64)", "layout(t1.s, 8, 0)"}});
  };
  EXPECT_THAT(LowerForGpu(CanonicalWorkload(kGemm), steps("mma.f16"), Sm80()).status().message(),
              HasSubstr("depth in 16s"));
  CheckMeaning(kGemm, steps("mma.f16.k8"), Sm80());
  CheckCode(kGemm, steps("mma.f16.k8"), Sm80());
  const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(kGemm, steps("mma.f16.k8"));
  ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message();
  for (const absl::Status& status : CheckOnHost({*gpu_case}, 1e-2))
    EXPECT_TRUE(status.ok()) << status.message();
  const absl::StatusOr<LoweredFunction> lowered =
      LowerForGpu(CanonicalWorkload(kGemm), steps("mma.f16.k8"), Sm80());
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const std::string source = EmitCuda(*lowered, Sm80(), "k")->source;
  EXPECT_THAT(source, HasSubstr("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"));
  EXPECT_THAT(source, HasSubstr("ldmatrix_x2(a[t], "));
}

// Why the schedule cannot be emitted; empty where it can.
std::string RefusalOf(const std::string& workload, const std::string& steps, const Target& target) {
  const absl::StatusOr<LoweredFunction> lowered = LowerForGpu(CanonicalWorkload(workload), steps, target);
  if (!lowered.ok()) return std::string(lowered.status().message());
  return std::string(EmitCuda(*lowered, target, "k").status().message());
}

TEST(TensorCoreTest, RefusesWhatFragmentsCannotLoad) {
  // b's rows run along the columns.
  const std::string across =
      absl::StrReplaceAll(kGemmI8, {{"b: i8[104,160]", "b: i8[160,104]"}, {"b[j,k]", "b[k,j]"}});
  const std::string steps = absl::StrReplaceAll(
      MultistageOf("mma.i8", 64), {{"t3.a0.1, t3.a1.1, t3.r0.1]", "t3.a0.1, t3.r0.1, t3.a1.1]"}});
  EXPECT_EQ(RefusalOf(across, steps, Sm80()), "mma.i8: an operand is not contiguous along the depth");
  EXPECT_THAT(RefusalOf(kGemm, MultistageOf("mma.i8", 64), Sm80()),
              HasSubstr("mma.i8 multiplies i8 into i32; t3 multiplies f16 by f16 into f32"));
  const std::string unrounded = absl::StrReplaceAll(kGemmTf32, {{"tf32(b[j,k])", "b[j,k]"}});
  EXPECT_THAT(RefusalOf(unrounded, MultistageOf("mma.tf32", 16), Sm80()),
              HasSubstr("t3 is not a sum of products of two loads that tf32() rounds"));
  EXPECT_THAT(RefusalOf(kGemmI8, MultistageOf("mma.i8", 16), Sm80()), HasSubstr("depth in 32s"));
  EXPECT_THAT(RefusalOf(kGemmF8, MultistageOf("mma.e4m3", 64), Sm80()),
              HasSubstr("the target has no mma.e4m3"));
  EXPECT_EQ(RefusalOf(kGemmF8, absl::StrReplaceAll(MultistageOf("mma.e4m3", 256), {{", 0, 64", ", 16, 0"}}),
                      Sm89()),
            "mma.e4m3: 256 of depth at a time; expected at most 128");
}

TEST(TensorCoreTest, RefusesWhatWarpgroupsCannotRead) {
  const std::string across = absl::StrReplaceAll(
      kGemmI8, {{"b: i8[104,160]", "b: i8[160,112]"}, {"104", "112"}, {"b[j,k]", "b[k,j]"}});
  const std::string ring =
      absl::StrReplaceAll(WarpSpecialized(), {{"r0, [64]", "r0, [128]"},
                                              {"wgmma.f16", "wgmma.i8"},
                                              {"t3.a0.1, t3.a1.1, t3.r0.1]", "t3.a0.1, t3.r0.1, t3.a1.1]"},
                                              {"layout(t1.s, 0, 128)", "layout(t1.s, 0, 32)"}});
  EXPECT_EQ(RefusalOf(across, ring, Sm90a()), "wgmma.i8: an operand is not contiguous along the depth");
  EXPECT_THAT(RefusalOf(kGemmF8, ring, Sm90a()),
              HasSubstr("wgmma.i8 multiplies i8 into i32; t3 multiplies f8e4m3"));
  const std::string of_floats =
      absl::StrReplaceAll(WarpSpecialized(), {{"r0, [64]", "r0, [32]"}, {"wgmma.f16", "wgmma.tf32"}});
  EXPECT_THAT(RefusalOf(kGemmTf32, of_floats, Sm90a()),
              HasSubstr("t3 is not a sum of products of two loads"));
  const std::string unrounded =
      absl::StrReplaceAll(kGemmTf32, {{"tf32(a[i,k])", "a[i,k]"}, {"tf32(b[j,k])", "b[j,k]"}});
  EXPECT_THAT(RefusalOf(unrounded, of_floats, Sm90a()),
              HasSubstr("wgmma.tf32 cuts off what it should round; expected t0.s to be a copy of numbers"));
}

}  // namespace
}  // namespace mycc
