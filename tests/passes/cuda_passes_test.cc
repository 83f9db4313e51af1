// The lowering passes for GPUs: a golden of their joint result, an unchanged meaning by the interpreter, and
// the refusals of lowering.
#include "absl/strings/str_cat.h"
#include "codegen/expr/print.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lower.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/golden.h"
#include "tests/passes/lowered_function.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<LoweredFunction> LoweredWorkload(const Workload& canonical, const std::string& steps) {
  const absl::StatusOr<Trace> trace = ParseTrace(absl::StrCat("v1\n", steps));
  if (!trace.ok()) return trace.status();
  const absl::StatusOr<Schedule> schedule = Replay(canonical, TestGpu(), *trace);
  if (!schedule.ok()) return schedule.status();
  return Lower(schedule->function(), TestGpu());
}

// Registers have no addresses: no index of a thread's array depends on a loop that is not unrolled.
void ExpectArraysInRegisters(const Stmt& body) {
  VisitEach<For>(body, [&](const For& loop) {
    if (loop.loop_kind != LoopKind::kSerial) return;
    const auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
      if (buffer->scope != Scope::kLocal && buffer->scope != Scope::kAccumulator) return;
      for (const Expr& index : indices) {
        EXPECT_FALSE(UsesVar(index, loop.var.get())) << buffer->name << "[" << PrintExpr(index) << "] in\n"
                                                     << PrintStmt(body);
      }
    };
    VisitStmts(loop.body, [&](const Stmt& stmt) {
      ForEachLoad(stmt, [&](const ExprNode& load) { check(load.buffer, load.args); });
      if (const Store* store = DynAs<Store>(stmt)) check(store->buffer, store->indices);
      return true;
    });
  });
}

void Check(const std::string& name, const std::string& workload, const std::string& steps) {
  const Workload canonical = CanonicalWorkload(workload);
  const absl::StatusOr<LoweredFunction> lowered = LoweredWorkload(canonical, steps);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_TRUE(MatchesGolden("passes/" + name, PrintLowered(*lowered)));
  ExpectArraysInRegisters(lowered->kernel.body);
  const absl::Status status = CheckFunction(canonical, WholeFunction(*lowered), 1e-5);
  EXPECT_TRUE(status.ok()) << status.message() << "\n" << PrintLowered(*lowered);
}

// All that a block does stays one launch where it is the only block, and values between its stages stay in
// registers.
TEST(CudaPassesTest, ALoneBlockIsOneLaunch) {
  Check("cuda_lone_block", R"(workload w(x: f32[1,50]) -> (y: f32[1,50]) {
  m[i]: f32[1] = max[k:50](x[i,k])
  y[i,j] = x[i,j] - m[i]
})",
        "split(t2.a0, [1])\nreorder([t2.a0.0, t2.a0.1])\nbind(t2.a0.0, block)\ncompute_at(t1, t2.a0.0)\n"
        "split(t1.r0, [2, 32])\nreorder([t1.a0, t1.r0.2, t1.r0.0, t1.r0.1])\nbind(t1.a0, thread)\n"
        "bind(t1.r0.2, thread)\nsplit(t2.a1, [2, 32])\nreorder([t2.a0.1, t2.a1.2, t2.a1.0, t2.a1.1])\n"
        "bind(t2.a0.1, thread)\nbind(t2.a1.2, thread)\n");
}

// Copies that have nothing to do with each other; the third reads the first.
TEST(CudaPassesTest, ElementwiseNestsAreLaunchedTogether) {
  Check("cuda_join_launches",
        R"(workload w(x: f32[70], v: f32[300]) -> (y: f32[70], u: f32[300], z: f32[70]) {
  y[i] = x[i] * 2.0
  u[i] = v[i] + 1.0
  z[i] = max(y[i], 0.0)
})",
        "split(t2.a0, [64])\nbind(t2.a0.0, block)\nbind(t2.a0.1, thread)\n"
        "split(t3.a0, [64])\nbind(t3.a0.0, block)\nbind(t3.a0.1, thread)\n"
        "split(t4.a0, [64])\nbind(t4.a0.0, block)\nbind(t4.a0.1, thread)\n");
}

// Several loops over blocks, those of an axis each.
TEST(CudaPassesTest, NestsOfSeveralLoopsAreLaunchedTogether) {
  Check("cuda_join_grids",
        R"(workload w(x: f32[6,256], v: f32[5,256]) -> (y: f32[6,256], u: f32[5,256]) {
  y[i,j] = x[i,j] * 2.0
  u[i,j] = v[i,j] + 1.0
})",
        "fuse([t2.a0, t2.a1])\nsplit(t2.a0+a1, [64])\nbind(t2.a0+a1.0, block)\nbind(t2.a0+a1.1, thread)\n"
        "fuse([t3.a0, t3.a1])\nsplit(t3.a0+a1, [64])\nbind(t3.a0+a1.0, block)\nbind(t3.a0+a1.1, thread)\n");
}

TEST(CudaPassesTest, NestsWithoutASchedule) {
  Check("cuda_bind_nests",
        R"(workload w(x: f32[30,40], w: const f32[40,20], v: f32[9,700]) -> (y: f32[30,20], s: f32[9]) {
  y[i,j] = sum[k:40](x[i,k] * w[k,j])
  s[i] = max[k:700](v[i,k])
})",
        "");
}

TEST(CudaPassesTest, ThreadsCarryAReduction) {
  Check("cuda_thread_reduction",
        R"(workload r(x: f32[10,500]) -> (y: f32[10]) { y[i] = sum[j:500](x[i,j]) })",
        "split(t1.a0, [4, 2])\nsplit(t1.r0, [32, 4])\n"
        "reorder([t1.a0.0, t1.a0.1, t1.r0.1, t1.r0.0, t1.a0.2, t1.r0.2])\n"
        "bind(t1.a0.0, block)\nbind(t1.a0.1, thread)\nbind(t1.r0.1, thread)\nbind(t1.r0.2, vector)\n");
}

// A sum of halves keeps the precision of f32 until it is read.
TEST(CudaPassesTest, SumsOfHalvesAreWide) {
  Check("cuda_wide_registers", "workload r(x: f16[96,20]) -> (y: f16[96]) { y[i] = sum[j:20](x[i,j]) }",
        "split(t1.a0, [32, 2])\nreorder([t1.a0.0, t1.a0.1, t1.r0, t1.a0.2])\ncache_write(t1, t1.a0.1)\n"
        "bind(t1.a0.0, block)\nbind(t1.a0.1, thread)\n");
}

// t1.a0.0 has a single iteration, so no index keeps what it is split into.
TEST(CudaPassesTest, ThreadsWithoutWorkCarryNoReduction) {
  const char kMinima[] = "workload m(x: f32[11,13]) -> (y: f32[13]) { y[j] = min[i:11](x[i,j]) }";
  Check("cuda_threads_without_work", kMinima,
        "split(t1.a0, [16])\nsplit(t1.a0.0, [6])\nbind(t1.a0.0.1, thread)\n");
  Check("cuda_threads_without_work_reduction", kMinima,
        "split(t1.a0, [16])\nsplit(t1.a0.0, [6])\nsplit(t1.r0, [4])\n"
        "reorder([t1.a0.0.1, t1.r0.1, t1.a0.1, t1.r0.0])\nbind(t1.a0.0.1, thread)\nbind(t1.r0.1, thread)\n");
}

TEST(CudaPassesTest, WholeVectors) {
  Check("cuda_whole_vectors", R"(workload e(x: f32[3,250], z: f32[3,248]) -> (y: f32[3,250], w: f32[3,248]) {
  y[i,j] = x[i,j] * 2.0
  w[i,j] = z[i,j] * 2.0
})",
        "split(t2.a1, [32, 4])\nbind(t2.a0, block)\nbind(t2.a1.1, thread)\nbind(t2.a1.2, vector)\n"
        "split(t3.a1, [32, 4])\nbind(t3.a0, block)\nbind(t3.a1.1, thread)\nbind(t3.a1.2, vector)\n");
}

// Vectors run across rows of one element.
TEST(CudaPassesTest, WholeVectorsOfAColumn) {
  Check("cuda_whole_vectors_of_a_column",
        "workload e(x: f32[251,1]) -> (y: f32[251,1]) { y[i,j] = x[i,j] * 2.0 }",
        "fuse([t1.a0, t1.a1])\nsplit(t1.a0+a1, [32, 4])\nbind(t1.a0+a1.0, block)\nbind(t1.a0+a1.1, thread)\n"
        "bind(t1.a0+a1.2, vector)\n");
}

// Rows of odd length begin at any element: no two of a vector's are moved at once, so the loop stays one.
TEST(CudaPassesTest, VectorsOfSingleElements) {
  Check("cuda_single_elements", "workload e(x: f32[3,251]) -> (y: f32[3,251]) { y[i,j] = x[i,j] * 2.0 }",
        "split(t1.a1, [32, 4])\nbind(t1.a0, block)\nbind(t1.a1.1, thread)\nbind(t1.a1.2, vector)\n");
}

// The first term of a step comes before the copies that run ahead, and these stand under no condition: beyond
// the last step they copy zeros.
TEST(CudaPassesTest, CopiesRunAheadBesideArithmetic) {
  const std::string steps =
      "split(t2.a0, [4])\nsplit(t2.a1, [8])\nsplit(t2.r0, [2])\n"
      "reorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
      "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\n"
      "stage_shared(t2, t0, t2.r0.0, shared)\nstage_shared(t2, t1, t2.r0.0, shared)\n"
      "cache_write(t2, t2.a1.0)\npad_domain(t2)\npipeline(t2.r0.0, threads, 3)\nbind(t2.r0.1, unroll)\n"
      "bind(t2.a0.1, thread)\nbind(t2.a1.1, thread)\nbind(t2.i.a0.1, thread)\nbind(t2.i.a1.1, thread)\n"
      "bind(t2.w.a0.1, thread)\nbind(t2.w.a1.1, thread)\n";
  Check("cuda_threads_pipeline",
        "workload g(a: f32[5,9], b: f32[9,7]) -> (c: f32[5,7]) { c[i,j] = sum[k:9](a[i,k] * b[k,j]) }",
        steps);
  // cp.async moves at least 4 bytes. Smaller elements move through registers, which are stored after the
  // work.
  Check("cuda_copies_apart",
        "workload g(a: f16[5,9], b: f16[9,7]) -> (c: f32[5,7]) {"
        " c[i,j] = sum[k:9](f32(a[i,k]) * f32(b[k,j])) }",
        steps);
}

// A thread with 128 sums loads the operands of a term while it multiplies those of the term before. The copy
// of a, which is turned over, goes through registers: it is stored a step after it was loaded.
TEST(CudaPassesTest, OperandsAreLoadedATermAhead) {
  std::string steps =
      "split(t2.a0, [32])\nsplit(t2.a1, [16])\nsplit(t2.r0, [4])\n"
      "reorder([t2.a0.0, t2.a1.0, t2.r0.0, t2.a0.1, t2.a1.1, t2.r0.1])\n"
      "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\n"
      "stage_shared(t2, t0, t2.r0.0, shared)\npack(t0.s, [1, 0])\nlayout(t0.s, 4, 0)\n"
      "bind(t0.s.a0.1, thread)\nbind(t0.s.r0.1, vector)\n"
      "stage_shared(t2, t1, t2.r0.0, shared)\n"
      "split(t2.a0.1, [16])\nsplit(t2.a1.1, [8])\n"
      "reorder([t2.a0.1.0, t2.a1.1.0, t2.r0.1, t2.a0.1.1, t2.a1.1.1])\n"
      "cache_write(t2, t2.a1.0)\npad_domain(t2)\npipeline(t2.r0.0, threads, 2)\nbind(t2.r0.1, unroll)\n";
  for (const char* nest : {"", ".i", ".w"}) {
    absl::StrAppend(&steps, "bind(t2", nest, ".a0.1.0, thread)\nbind(t2", nest, ".a1.1.0, thread)\n",
                    "bind(t2", nest, ".a0.1.1, unroll)\nbind(t2", nest, ".a1.1.1, unroll)\n");
  }
  Check("cuda_terms_ahead",
        "workload g(a: f32[35,12], b: f32[12,18]) -> (c: f32[35,18]) { c[i,j] = sum[k:12](a[i,k] * b[k,j]) }",
        steps);
}

// Threads along one dimension write t1 into their registers, and threads along the other read it.
TEST(CudaPassesTest, ThreadsThatDisagreeAreRefused) {
  const Workload canonical = CanonicalWorkload(R"(workload w(x: f32[8,32]) -> (y: f32[8,32]) {
  e[i,j]: f32[8,32] = exp(x[i,j])
  y[i,j] = e[i,31-j]
})");
  const auto lowered = LoweredWorkload(
      canonical, "bind(t2.a0, block)\ncompute_at(t1, t2.a0)\nbind(t1.a1, thread)\nbind(t2.a1, thread)\n");
  EXPECT_THAT(lowered.status().message(), HasSubstr("set_scope(t1, shared) shares it"));
}

}  // namespace
}  // namespace mycc
