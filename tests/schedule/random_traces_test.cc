// Random traces: every step is either refused with a clean status, or leaves a schedule that verifies and
// means what the workload means.
#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "codegen/ir/verify.h"
#include "codegen/schedule/tree.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr const char* kWorkloads[] = {
    R"(workload g(a: f32[7,6], b: const f32[6,10], bias: f32[10]) -> (y: f32[7,10]) {
      c[i,j]: f32[7,10] = sum[k:6](a[i,k] * b[k,j])
      y[i,j] = max(c[i,j] + bias[j], 0.0) })",
    R"(workload conv(x: f32[1,5,5,3], w: const f32[4,3,3,3]) -> (y: f32[1,5,5,4]) {
      p[n,i,j,c]: f32[1,7,7,3] = select(1 <= i && i < 6 && 1 <= j && j < 6, x[n,i-1,j-1,c], 0.0)
      y[n,i,j,k] = sum[c:3, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s]) })",
    R"(workload softmax(x: f32[3,11]) -> (y: f32[3,11]) {
      m[i]: f32[3] = max[j:11](x[i,j])
      e[i,j]: f32[3,11] = exp(x[i,j] - m[i])
      s[i]: f32[3] = sum[j:11](e[i,j])
      y[i,j] = e[i,j] / s[i] })",
    R"(workload best(x: f32[4,9]) -> (y: i32[4], z: f32[4,9]) {
      y[i] = argmax[j:9](x[i,j])
      z[i,j] = x[i,j] * f32(y[i]) })",
};

class Names {
 public:
  Names(const Function& function, std::mt19937* rng) : rng_(*rng) {
    for (const Param& param : function.params) buffers_.push_back(param.buffer->name);
    VisitStmts(function.body, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kFor) loops_.push_back(As<For>(stmt).var->name);
      if (stmt->kind == StmtKind::kBlock) blocks_.push_back(As<Block>(stmt).name);
      if (stmt->kind == StmtKind::kAlloc) buffers_.push_back(As<Alloc>(stmt).buffer->name);
      return true;
    });
  }
  std::string Loop() { return Pick(loops_); }
  std::string BlockName() { return Pick(blocks_); }
  std::string BufferName() { return Pick(buffers_); }
  // A run of neighbouring loops in the order of the text: often a nest.
  std::vector<std::string> Nest() {
    if (loops_.empty()) return {"none"};
    const size_t first = rng_() % loops_.size();
    return {loops_.begin() + first, loops_.begin() + std::min(loops_.size(), first + 2 + rng_() % 3)};
  }

 private:
  std::string Pick(const std::vector<std::string>& from) {
    return from.empty() ? "none" : from[rng_() % from.size()];
  }

  std::mt19937& rng_;
  std::vector<std::string> loops_, blocks_, buffers_;
};

Step RandomStep(const Function& function, std::mt19937* rng) {
  Names names(function, rng);
  const auto pick = [&](auto... options) {
    const std::string all[] = {options...};
    return all[(*rng)() % sizeof...(options)];
  };
  const auto number = [&](int limit) { return static_cast<int64_t>(1 + (*rng)() % limit); };
  switch ((*rng)() % 14) {
    case 0:
    case 1:
    case 2: return {"split", {{names.Loop()}, {StepArg::Ints{number(5)}}}};
    case 3: {
      std::vector<std::string> loops = names.Nest();
      std::shuffle(loops.begin(), loops.end(), *rng);
      return {"reorder", {{loops}}};
    }
    case 4: return {"fuse", {{names.Nest()}}};
    case 5: return {"bind", {{names.Loop()}, {pick("parallel", "vector", "unroll", "serial")}}};
    case 6: return {"inline", {{names.BlockName()}}};
    case 7: return {"compute_at", {{names.BlockName()}, {names.Loop()}}};
    case 8: return {"reverse_compute_at", {{names.BlockName()}, {names.Loop()}}};
    case 9: return {"reverse_inline", {{names.BlockName()}}};
    case 10:
      return {"cache_read",
              {{names.BufferName()},
               {names.BlockName()},
               {pick("root", "loop") == "root" ? "root" : names.Loop()},
               {pick("local", "packed")}}};
    case 11: return {"cache_write", {{names.BlockName()}, {names.Loop()}}};
    case 12:
      return {"pack",
              {{names.BufferName()},
               {pick("0", "1") == "0" ? StepArg::Names{"1", "0"} : StepArg::Names{"0/2", "1", "0%2"}}}};
    default: return {"rfactor", {{names.Loop()}, {number(6)}}};
  }
}

TEST(RandomTracesTest, StepsAreRefusedOrKeepTheMeaning) {
  int applied = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 rng(seed);
    const Workload workload = CanonicalWorkload(kWorkloads[seed % std::size(kWorkloads)]);
    Schedule schedule = Schedule::Create(workload, TestTarget());
    for (int steps = 0; steps < 30 && schedule.trace().steps.size() < 8; ++steps) {
      const Step step = RandomStep(schedule.function(), &rng);
      const absl::Status status = schedule.Apply(step);
      if (!status.ok()) {
        EXPECT_TRUE(status.code() == absl::StatusCode::kFailedPrecondition) << status;
        EXPECT_TRUE(absl::StartsWith(status.message(), PrintStep(step))) << status;
        continue;
      }
      ++applied;
      const absl::Status verified = VerifyFunction(schedule.function());
      ASSERT_TRUE(verified.ok()) << "seed " << seed << ": " << verified << "\n"
                                 << PrintTrace(schedule.trace()) << PrintFunction(schedule.function());
    }
    const absl::Status same = CheckFunction(workload, schedule.function());
    ASSERT_TRUE(same.ok()) << "seed " << seed << ": " << same << "\n"
                           << PrintTrace(schedule.trace()) << PrintFunction(schedule.function());
  }
  EXPECT_GT(applied, 400);
}

}  // namespace
}  // namespace mycc
