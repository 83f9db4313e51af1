// Reductions of tuples across threads, as emitted code: over the lanes of a warp, over warps, over threads
// that are not next to each other, and over the blocks of a cluster; in registers and in memory; and the
// merge of partial results.
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/cuda/emitted.h"

namespace mycc {
namespace {

constexpr double kTolerance = 1e-5;

// The reduced block is t3 in each; its axis has 197 elements.
struct TupleWorkload {
  const char* text;
  const char* together;  // step that makes the tuples
};
constexpr TupleWorkload kTupleWorkloads[] = {
    {R"(workload arg(x: f32[6,197]) -> (y: i32[6]) {
  e[i,j]: f32[6,197] = floor(x[i,j] * 8.0)
  z[i,j]: f32[6,197] = abs(e[i,j])
  y[i] = argmax[j:197](z[i,j])
})",
     "inline(t1)\ninline(t2)\n"},
    {R"(workload sums(x: f32[6,197]) -> (m: f32[6], s: f32[6]) {
  e[i,j]: f32[6,197] = abs(x[i,j])
  m[i] = max[j:197](e[i,j])
  s[i] = sum[j:197](exp(e[i,j] - m[i]))
})",
     "inline(t1)\nreduce_together(t2, t3)\n"},
    {R"(workload moments(x: f32[6,197]) -> (t: f32[6], v: f32[6]) {
  e[i,j]: f32[6,197] = x[i,j] + 3.0
  t[i] = sum[j:197](e[i,j])
  v[i] = sum[j:197]((e[i,j] - t[i] / 197.0) * (e[i,j] - t[i] / 197.0))
})",
     "inline(t1)\nreduce_together(t2, t3)\n"},
};

// THREADS terms at a time, by as many threads.
constexpr char kByThreads[] =
    "split(t3.r0, [THREADS])\nbind(t3.a0, block)\nreorder([t3.r0.1, t3.r0.0])\nbind(t3.r0.1, thread)\n";
// A thread for each of some terms of each of 3 rows.
constexpr char kScattered[] =
    "split(t3.r0, [TERMS])\nsplit(t3.a0, [3])\nbind(t3.a0.0, block)\n"
    "reorder([t3.r0.1, t3.a0.1, t3.r0.0])\nbind(t3.r0.1, thread)\nbind(t3.a0.1, thread)\n";

std::string WithNumber(const char* steps, const char* name, int number) {
  return absl::StrReplaceAll(steps, {{name, absl::StrCat(number)}});
}

// Checks the schedules of each workload: compiled for the targets, interpreted, and run on the host.
void CheckAll(const std::vector<TupleWorkload>& workloads, const std::vector<std::string>& schedules,
              const std::vector<Target>& targets) {
  std::vector<ScheduledCase> cases;
  for (const TupleWorkload& workload : workloads) {
    for (const std::string& steps : schedules) {
      const absl::StatusOr<ScheduledCase> point = CaseOf(workload.text, workload.together + steps);
      ASSERT_TRUE(point.ok()) << steps << point.status();
      const absl::Status compiled = EmitChecked(*point, targets).status();
      EXPECT_TRUE(compiled.ok()) << workload.text << steps << compiled.message();
      cases.push_back(*point);
    }
  }
  const std::vector<absl::Status> results = CheckOnHost(cases, kTolerance);
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_TRUE(results[i].ok()) << results[i].message() << PrintFunction(cases[i].function);
}

TEST(CudaTuplesTest, ThreadsMergeWhatTheReferenceFinds) {
  std::vector<std::string> schedules = {"", "rfactor(t3.r0, 7)\n", "rfactor_runs(t3.r0, 50)\n"};
  for (const int threads : {8, 32, 128}) schedules.push_back(WithNumber(kByThreads, "THREADS", threads));
  for (const int terms : {5, 10, 32}) schedules.push_back(WithNumber(kScattered, "TERMS", terms));
  CheckAll({std::begin(kTupleWorkloads), std::end(kTupleWorkloads)}, schedules, {Sm80(), Sm90a()});
}

// Each row is that of two blocks, and each thread has the result in registers.
TEST(CudaTuplesTest, BlocksOfAClusterMerge) {
  const std::vector<TupleWorkload> workloads = {
      {R"(workload arg(x: f32[6,197]) -> (z: f32[6,197]) {
  a[i,j]: f32[6,197] = abs(floor(x[i,j] * 8.0))
  b[i,j]: f32[6,197] = a[i,j] + 1.0
  p[i]: i32[6] = argmax[j:197](b[i,j])
  z[i,j] = x[i,j] * f32(p[i])
})",
       "inline(t1)\ninline(t2)\n"},
      {R"(workload sums(x: f32[6,197]) -> (z: f32[6,197]) {
  e[i,j]: f32[6,197] = abs(x[i,j])
  m[i]: f32[6] = max[j:197](e[i,j])
  s[i]: f32[6] = sum[j:197](exp(e[i,j] - m[i]))
  z[i,j] = x[i,j] - m[i] - log(s[i])
})",
       "inline(t1)\nreduce_together(t2, t3)\n"},
      {R"(workload moments(x: f32[6,197]) -> (z: f32[6,197]) {
  e[i,j]: f32[6,197] = x[i,j] + 3.0
  t[i]: f32[6] = sum[j:197](e[i,j])
  v[i]: f32[6] = sum[j:197]((e[i,j] - t[i] / 197.0) * (e[i,j] - t[i] / 197.0))
  z[i,j] = (e[i,j] - t[i] / 197.0) * rsqrt(v[i])
})",
       "inline(t1)\nreduce_together(t2, t3)\n"},
  };
  CheckAll(workloads,
           {"compute_at(t3, t4.a0)\nbind(t4.a0, block)\ncluster_reduce(t4.a0, 2)\nsplit(t3.r0, [128])\n"
            "reorder([t3.r0.1, t3.a0, t3.r0.0])\nbind(t3.r0.1, thread)\nsplit(t4.a1, [128])\n"
            "reorder([t4.a1.1, t4.a1.0])\nbind(t4.a1.1, thread)\n"},
           {Sm90a()});
}

}  // namespace
}  // namespace mycc
