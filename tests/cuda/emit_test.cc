// Goldens of emitted CUDA C++, each compiled by NVRTC.
#include "codegen/cuda/emit.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "codegen/ir/pipeline_stmts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"
#include "tests/golden/golden.h"

namespace mycc {
namespace {

std::string Steps(const std::vector<CudaStep>& steps) {
  std::string text;
  for (const CudaStep& step : steps) {
    absl::StrAppend(&text, "// ", step.kernel, ": ", step.grid[0], " blocks of ", step.threads, " threads");
    if (step.cluster > 1) absl::StrAppend(&text, " in clusters of ", step.cluster);
    if (step.shared_bytes > 0) absl::StrAppend(&text, ", ", step.shared_bytes, " bytes shared");
    for (const CudaOperand& operand : step.pointers)
      absl::StrAppend(&text, ", ", operand.argument, "+", operand.offset);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

void Check(const std::string& name, const std::string& workload, const std::string& steps,
           const std::vector<Target>& targets = {Sm80(), Sm90a()}) {
  const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(workload, steps);
  ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message();
  const absl::StatusOr<CudaProgram> program = EmitChecked(*gpu_case, targets);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE(MatchesGolden("cuda/" + name, program->source + Steps(program->call) + Steps(program->pack)));
  const CudaProgram renamed = WithSymbol(*program, "library_w");
  EXPECT_THAT(renamed.source, ::testing::Not(::testing::HasSubstr(" k_")));
  EXPECT_EQ(WithSymbol(renamed, "k").source, program->source);
  const absl::Status status = CheckOnHost({*gpu_case}, 1e-5)[0];
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EmitCudaTest, Elementwise) {
  Check("elementwise", R"(workload w(x: f32[64,512], b: f32[512]) -> (y: f32[64,512]) {
  y[i,j] = max(x[i,j] + b[j], 0.0) * 0.5
})",
        "fuse([t2.a0, t2.a1])\nsplit(t2.a0+a1, [256, 4])\nbind(t2.a0+a1.0, block)\n"
        "bind(t2.a0+a1.1, thread)\nbind(t2.a0+a1.2, vector)\n");
}

TEST(EmitCudaTest, NarrowFloatsComeInSixteenBytes) {
  Check("elementwise_bf16", R"(workload w(x: bf16[64,512], y: bf16[64,512]) -> (z: bf16[64,512]) {
  z[i,j] = x[i,j] * y[i,j]
})",
        "split(t2.a1, [32, 8])\nbind(t2.a0, block)\nbind(t2.a1.0, unroll)\nbind(t2.a1.1, thread)\n"
        "bind(t2.a1.2, vector)\n");
}

TEST(EmitCudaTest, FloatsOfEightBitsComeInSixteenBytes) {
  Check("elementwise_f8e4m3", R"(workload w(x: f8e4m3[64,512], y: f8e5m2[64,512]) -> (z: f8e4m3[64,512]) {
  z[i,j] = f8e4m3(f32(x[i,j]) * f32(y[i,j]))
})",
        "split(t2.a1, [16])\nbind(t2.a0, block)\nbind(t2.a1.0, thread)\nbind(t2.a1.1, vector)\n");
}

TEST(EmitCudaTest, NaiveNests) {
  Check(
      "naive",
      R"(workload w(x: f32[30,40], w: const f32[40,20], v: f32[9,700]) -> (y: f32[30,20], s: f32[9], p: i32[30]) {
  y[i,j] = sum[k:40](x[i,k] * w[k,j])
  s[i] = max[k:700](v[i,k])
  p[i] = argmax[k:40](x[i,k])
})",
      "");
}

TEST(EmitCudaTest, TilesInSharedMemory) {
  Check("tiles", R"(workload gemm(a: f32[70,40], b: f32[40,64]) -> (c: f32[70,64]) {
  c[i,j] = sum[k:40](a[i,k] * b[k,j])
})",
        "split(t2.a0, [8, 4])\nsplit(t2.a1, [8, 4])\nsplit(t2.r0, [16])\n"
        "reorder([t2.a0.0, t2.a1.0, t2.a0.1, t2.a1.1, t2.r0.0, t2.r0.1, t2.a0.2, t2.a1.2])\n"
        "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\ncache_write(t2, t2.a1.0)\n"
        "reorder([t2.r0.0, t2.a0.1, t2.a1.1])\nbind(t2.a0.1, thread)\nbind(t2.a1.1, thread)\n"
        "bind(t2.i.a0.1, thread)\nbind(t2.i.a1.1, thread)\nbind(t2.w.a0.1, thread)\n"
        "bind(t2.w.a1.1, thread)\nbind(t2.w.a1.2, vector)\nbind(t2.r0.1, unroll)\n"
        "cache_read(t0, t2, t2.r0.0, shared)\nlayout(t0.r, 4, 0)\nfuse([t0.r.a0, t0.r.a1])\n"
        "split(t0.r.a0+r.a1, [64, 4])\nbind(t0.r.a0+r.a1.1, thread)\nbind(t0.r.a0+r.a1.2, vector)\n"
        "cache_read(t1, t2, t2.r0.0, shared)\nfuse([t1.r.a0, t1.r.a1])\n"
        "split(t1.r.a0+r.a1, [64, 4])\nbind(t1.r.a0+r.a1.1, thread)\nbind(t1.r.a0+r.a1.2, vector)\n");
}

// A product whose copies run ahead: vectors along the depth of `a` are turned over in registers, and rows of
// `b` come element by element. Padded, only copies and the last store ask where the edges are.
std::string CopiesAhead(bool padded) {
  const std::string tiles =
      "split(t2.a0, [16])\nsplit(t2.a1, [16])\nsplit(t2.r0, [8])\n"
      "reorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
      "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\n";
  const std::string turned =
      "stage_shared(t2, t0, t2.r0.0, shared)\npack(t0.s, [1, 0])\nlayout(t0.s, 4, 0)\nsplit(t0.s.r0.1, [4])\n"
      "fuse([t0.s.a0.1, t0.s.r0.1.0])\nbind(t0.s.a0.1+s.r0.1.0, thread)\nbind(t0.s.r0.1.1, vector)\n";
  const std::string single =
      "stage_shared(t2, t1, t2.r0.0, shared)\npack(t1.s, [1, 0])\nreorder([t1.s.r0.1, t1.s.a1.1])\n"
      "fuse([t1.s.r0.1, t1.s.a1.1])\nsplit(t1.s.r0.1+s.a1.1, [32])\n"
      "reorder([t1.s.r0.1+s.a1.1.1, t1.s.r0.1+s.a1.1.0])\n"
      "bind(t1.s.r0.1+s.a1.1.1, thread)\nbind(t1.s.r0.1+s.a1.1.0, unroll)\n";
  std::string work = absl::StrCat(
      "split(t2.a0.1, [4])\nsplit(t2.a1.1, [2])\n"
      "reorder([t2.a0.1.0, t2.a1.1.0, t2.r0.1, t2.a0.1.1, t2.a1.1.1])\ncache_write(t2, t2.a1.0)\n",
      padded ? "pad_domain(t2)\n" : "", "pipeline(t2.r0.0, threads, 3)\nbind(t2.r0.1, unroll)\n");
  for (const char* stage : {"t2", "t2.i", "t2.w"}) {
    absl::StrAppend(&work, "bind(", stage, ".a0.1.0, thread)\nbind(", stage, ".a1.1.0, thread)\n", "bind(",
                    stage, ".a0.1.1, unroll)\nbind(", stage, ".a1.1.1, unroll)\n");
  }
  return absl::StrCat(tiles, turned, single, work);
}

TEST(EmitCudaTest, CopiesOfOddSizesRunAhead) {
  Check("odd_product",
        "workload g(a: f32[35,44], b: f32[44,37]) -> (c: f32[35,37]) { c[i,j] = sum[k:44](a[i,k] * b[k,j]) }",
        CopiesAhead(/*padded=*/true));
}

// A copy asks for a whole vector only where its elements agree.
TEST(EmitCudaTest, ConditionsWithinACopiedVector) {
  std::vector<ScheduledCase> cases;
  for (const char* condition :
       {"k <= 4*i", "4*i < k", "k <= 36", "0 < k", "k < 36", "4*i <= k", "2*k < 31", "k < 4", "k != 6"}) {
    const absl::StatusOr<ScheduledCase> gpu_case =
        CaseOf(absl::StrCat("workload g(a: f32[32,64], b: f32[64,32]) -> (c: f32[32,32]) {"
                            " c[i,j] = sum[k:64](select(",
                            condition, ", a[i,k], 0.0) * b[k,j]) }"),
               CopiesAhead(/*padded=*/false));
    ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message();
    cases.push_back(*gpu_case);
  }
  for (const absl::Status& status : CheckOnHost(cases, 1e-5)) EXPECT_TRUE(status.ok()) << status.message();
}

// 8 threads copy 17 vectors each through registers, which hold 9 of them: the second 9 are one too many.
TEST(EmitCudaTest, CopiesInGroupsEndWithTheTile) {
  const std::string steps = R"(split(t2.a0, [8])
split(t2.a1, [24])
split(t2.r0, [136])
reorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])
bind(t2.a0.0, block)
bind(t2.a1.0, block)
stage_shared(t2, t0, t2.r0.0, shared)
pack(t0.s, [1, 0])
split(t0.s.r0.1, [8])
fuse([t0.s.a0.1, t0.s.r0.1.0])
split(t0.s.a0.1+s.r0.1.0, [8])
reorder([t0.s.a0.1+s.r0.1.0.1, t0.s.a0.1+s.r0.1.0.0])
bind(t0.s.a0.1+s.r0.1.0.1, thread)
bind(t0.s.a0.1+s.r0.1.0.0, unroll)
bind(t0.s.r0.1.1, vector)
stage_shared(t2, t1, t2.r0.0, shared)
fuse([t1.s.a1.1, t1.s.r0.1])
split(t1.s.a1.1+s.r0.1, [8])
reorder([t1.s.a1.1+s.r0.1.1, t1.s.a1.1+s.r0.1.0])
bind(t1.s.a1.1+s.r0.1.1, thread)
split(t2.a0.1, [4])
split(t2.a1.1, [6])
reorder([t2.a0.1.0, t2.a1.1.0, t2.r0.1, t2.a0.1.1, t2.a1.1.1])
cache_write(t2, t2.a1.0)
pipeline(t2.r0.0, threads, 2)
)";
  std::string bound = steps;
  for (const char* nest : {"t2", "t2.i", "t2.w"}) {
    for (const char* tile : {"a0.1", "a1.1"})
      absl::StrAppend(&bound, "bind(", nest, ".", tile, ".0, thread)\nbind(", nest, ".", tile,
                      ".1, unroll)\n");
  }
  const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(
      "workload g(a: f64[40,272], b: f64[272,44]) -> (c: f64[40,44]) {"
      " c[i,j] = sum[k:272](a[i,k] * b[k,j]) }",
      bound);
  ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message();
  for (const absl::Status& status : CheckOnHost({*gpu_case}, 1e-9))
    EXPECT_TRUE(status.ok()) << status.message();
}

// Stages of a softmax in one launch, `inner` being the splits of a row: steps, threads, lanes.
std::string SoftmaxSteps(int rows, const std::string& inner, const std::string& of_blocks) {
  const std::string along =
      absl::StrCat("split(A, ", inner, ")\nreorder([ROW, A.2, A.0, A.1, A.3])\nbind(ROW, thread)\n",
                   "bind(A.2, thread)\nbind(A.1, unroll)\nbind(A.3, vector)\n");
  const auto stage = [&](const std::string& row, const std::string& loop) {
    return absl::StrReplaceAll(along, {{"ROW", row}, {"A", loop}});
  };
  return absl::StrCat("split(t4.a0, [", rows, "])\nbind(t4.a0.0, block)\n", of_blocks,
                      "compute_at(t3, t4.a0.0)\ncompute_at(t2, t4.a0.0)\ncompute_at(t1, t4.a0.0)\n"
                      "cache_read(t0, all, t4.a0.0, local)\n",
                      stage("t0.r.a0", "t0.r.a1"), stage("t1.a0", "t1.r0"), stage("t2.a0", "t2.a1"),
                      stage("t3.a0", "t3.r0"), stage("t4.a0.1", "t4.a1"));
}

TEST(EmitCudaTest, RowsInRegisters) {
  Check("softmax", R"(workload softmax(x: f32[50,250]) -> (y: f32[50,250]) {
  m[i]: f32[50] = max[j:250](x[i,j])
  e[i,j]: f32[50,250] = exp(x[i,j] - m[i])
  s[i]: f32[50] = sum[j:250](e[i,j])
  y[i,j] = e[i,j] / s[i]
})",
        SoftmaxSteps(4, "[2, 32, 4]", ""));
}

// A row in the registers of a cluster, which ends in the middle of a step.
TEST(EmitCudaTest, RowsInRegistersOfReducingClusters) {
  Check("softmax_joined", R"(workload softmax(x: f32[3,900]) -> (y: f32[3,900]) {
  m[i]: f32[3] = max[j:900](x[i,j])
  e[i,j]: f32[3,900] = exp(x[i,j] - m[i])
  s[i]: f32[3] = sum[j:900](e[i,j])
  y[i,j] = e[i,j] / s[i]
})",
        SoftmaxSteps(1, "[2, 256, 2]", "cluster_reduce(t4.a0.0, 4)\n"), {Sm90a()});
}

// Groups of threads that are some of the blocks, parts of one, single warps; and many rounds of sending.
TEST(EmitCudaTest, ClustersReduceWhateverTheirShare) {
  const std::string softmax = R"(workload softmax(x: f32[10,250]) -> (y: f32[10,250]) {
  m[i]: f32[10] = max[j:250](x[i,j])
  e[i,j]: f32[10,250] = exp(x[i,j] - m[i])
  s[i]: f32[10] = sum[j:250](e[i,j])
  y[i,j] = e[i,j] / s[i]
})";
  const std::string rounds = "split(A, [64])\nreorder([A.1, A.0])\nbind(A.1, thread)\nbind(A.0, unroll)\n";
  const std::string in_a_loop = absl::StrCat(
      "split(t4.a0, [5])\nbind(t4.a0.0, block)\ncluster_reduce(t4.a0.0, 2)\ncompute_at(t3, t4.a0.1)\n"
      "compute_at(t2, t4.a0.1)\ncompute_at(t1, t4.a0.1)\n",
      absl::StrReplaceAll(rounds, {{"A", "t1.r0"}}), absl::StrReplaceAll(rounds, {{"A", "t2.a1"}}),
      absl::StrReplaceAll(rounds, {{"A", "t3.r0"}}), absl::StrReplaceAll(rounds, {{"A", "t4.a1"}}));
  std::vector<ScheduledCase> cases;
  for (const std::string& steps :
       {SoftmaxSteps(2, "[1, 128, 2]", "cluster_reduce(t4.a0.0, 4)\n"),
        SoftmaxSteps(4, "[4, 32, 2]", "cluster_reduce(t4.a0.0, 2)\n"),
        SoftmaxSteps(1, "[1, 256, 1]", "cluster_reduce(t4.a0.0, 8)\n"), in_a_loop}) {
    const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(softmax, steps);
    ASSERT_TRUE(gpu_case.ok()) << gpu_case.status().message();
    EXPECT_TRUE(EmitChecked(*gpu_case, {Sm90a()}).ok());
    cases.push_back(*gpu_case);
  }
  for (const absl::Status& status : CheckOnHost(cases, 1e-5)) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(EmitCudaTest, RefusesWhatAReducingClusterCannotShare) {
  const auto refusal = [](const std::string& workload, const std::string& steps) {
    const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(workload, steps);
    EXPECT_TRUE(gpu_case.ok()) << gpu_case.status().message();
    const absl::Status status = EmitChecked(*gpu_case, {Sm90a()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    return std::string(status.message());
  };
  const std::string centred = R"(workload w(x: f32[6,250]) -> (y: f32[6,250]) {
  m[i]: f32[6] = max[j:250](x[i,j])
  y[i,j] = x[i,j] - m[i]
})";
  const auto row = [](int threads) {
    return absl::StrCat("split(t1.r0, [", threads, "])\nreorder([t1.r0.1, t1.r0.0])\nbind(t1.r0.1, thread)\n",
                        "split(t2.a1, [", threads, "])\nbind(t2.a1.1, thread)\n");
  };
  const std::string join = "bind(t2.a0, block)\ncluster_reduce(t2.a0, 2)\ncompute_at(t1, t2.a0)\n";
  EXPECT_THAT(
      refusal(centred, join + row(96)),
      testing::HasSubstr("2 thread blocks of cluster_reduce on t2.a0 cannot share 96 threads; expected a "
                         "multiple of 64"));
  EXPECT_THAT(
      refusal(centred, join + "set_scope(t1, shared)\n" + row(64)),
      testing::HasSubstr("in shared memory belongs to one block, and cannot be used by 2 thread blocks"));
  // Three rows for two blocks.
  EXPECT_THAT(refusal(centred,
                      "split(t2.a0, [3])\nbind(t2.a0.0, block)\ncluster_reduce(t2.a0.0, 2)\n"
                      "compute_at(t1, t2.a0.0)\nbind(t1.a0, thread)\nbind(t2.a0.1, thread)\n" +
                          row(64)),
              testing::HasSubstr("expected whole blocks or an equal part of one"));
  EXPECT_THAT(
      refusal(
          "workload r(x: f32[6,250]) -> (y: f32[6]) { y[i] = sum[j:250](x[i,j]) }",
          "bind(t1.a0, block)\ncluster_reduce(t1.a0, 2)\nsplit(t1.r0, [64])\nreorder([t1.r0.1, t1.r0.0])\n"
          "bind(t1.r0.1, thread)\n"),
      testing::HasSubstr("would need a barrier across blocks"));
}

std::string SourceOf(const std::string& workload, const std::string& steps) {
  const absl::StatusOr<ScheduledCase> gpu_case = CaseOf(workload, steps);
  EXPECT_TRUE(gpu_case.ok()) << gpu_case.status().message();
  const absl::StatusOr<CudaProgram> program = EmitChecked(*gpu_case);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return program.ok() ? program->source : "";
}

TEST(EmitCudaTest, BothValuesAreComputedUnlessTheyReadMemory) {
  const char workload[] =
      "workload w(x: f32[64,256]) -> (y: f32[64,256]) {\n"
      "  y[i,j] = select(j <= i, tanh(x[i,j]) * 2.0, 0.0)\n}\n";
  EXPECT_THAT(
      SourceOf(workload, "split(t1.a1, [4])\nbind(t1.a0, thread)\ncache_read(t0, t1, t1.a1.0, local)\n"),
      testing::HasSubstr("= choose("));
  EXPECT_THAT(SourceOf(workload, "bind(t1.a0, thread)\n"), testing::Not(testing::HasSubstr("choose(")));
  // One number for a block is at hand.
  EXPECT_THAT(SourceOf("workload w(x: f32[64,256], a: f32[64]) -> (y: f32[64,256]) {\n"
                       "  y[i,j] = select(j <= i, x[i,j] * a[i], 0.0)\n}\n",
                       "split(t2.a1, [4])\nbind(t2.a0, block)\ncache_read(t0, t2, t2.a1.0, local)\n"),
              testing::HasSubstr("= choose("));
  // The condition keeps the index inside the array.
  EXPECT_THAT(
      SourceOf("workload w(x: f32[3]) -> (y: f32[64]) {\n  y[i] = select(i < 3, x[i] * 2.0, 0.0)\n}\n",
               "split(t1.a0, [4])\nbind(t1.a0.0, thread)\ncache_read(t0, t1, t1.a0.0, local)\n"),
      testing::Not(testing::HasSubstr("choose(")));
}

// A tensor whose elements are each read once, for a much smaller result, leaves the caches first.
TEST(EmitCudaTest, WhatIsReadOnceLeavesTheCachesFirst) {
  const std::string rows = "split(t1.r0, [4])\nbind(t1.a0, thread)\nbind(t1.r0.1, vector)\n";
  EXPECT_THAT(
      SourceOf("workload w(x: f32[64,256]) -> (s: f32[64]) {\n  s[i] = sum[k:256](x[i,k])\n}\n", rows),
      testing::HasSubstr("= load_once<4>("));
  // Written as much as read.
  EXPECT_THAT(SourceOf("workload w(x: f32[64,256]) -> (y: f32[64,256]) {\n  y[i,j] = x[i,j] + 1.0\n}\n",
                       "split(t1.a1, [4])\nbind(t1.a0, thread)\nbind(t1.a1.1, vector)\n"),
              testing::HasSubstr("= load_vec<4>("));
}

// No pass makes such a copy.
TEST(EmitCudaTest, RefusesABulkCopyOfRegisters) {
  const Buffer registers = MakeBuffer("r", DType::kF32, {4, 32}, Scope::kLocal),
               shared = MakeBuffer("s", DType::kF32, {4, 32}, Scope::kShared);
  const Var i = MakeVar("i", 4), j = MakeVar("j", 32);
  const std::vector<Expr> at = {VarRef(i), VarRef(j)};
  const Stmt nest = MakeNest({{i}, {j}}, std::make_shared<Store>(shared, at, Load(registers, at)));
  Roles::Role role{"copy", std::make_shared<Copy>(nest, CopyEngine::kBulk, IntConst(0))};
  role.threads = 32;
  role.by_one = true;
  LaunchShape shape;
  shape.threads = 32;
  shape.shared_bytes = 1024;
  const Stmt roles = std::make_shared<Roles>(std::vector<Roles::Role>{role}, std::vector<int>{1});
  LoweredFunction function;
  function.kernel.name = "k";
  function.kernel.body = std::make_shared<Launch>(shape, InAllocs({shared, registers}, roles));
  function.pack.body = MakeSeq({});
  EXPECT_THAT(EmitCuda(function, *ParseTarget("h200"), "k").status().message(),
              testing::HasSubstr("the copy engine does not reach r"));
}

}  // namespace
}  // namespace mycc
