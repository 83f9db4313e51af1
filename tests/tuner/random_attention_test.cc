// Random small attention: types, shapes, layouts, masks, biases and second results as models have them.
// Random legal points of every sketch are lowered, and the machine's interpreter compares them with the
// reference.
#include <optional>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "tests/schedule/testing.h"
#include "tests/tuner/lowered_point.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

class RandomAttention {
 public:
  explicit RandomAttention(int seed) : rng_(static_cast<uint64_t>(seed)) {}

  std::string Text() {
    const std::string type = Coin(60) ? "f16" : "bf16";
    const int batches = 2, groups = Between(1, 2), of_group = Pick({1, 1, 2, 3, 4}),
              heads = groups * of_group;
    const int queries = Pick({1, 2, 3, 5, 16, 17, 64}), keys = Pick({64, 65, 96, 127, 128, 190});
    const int depth = Pick({16, 24, 32, 64}), values = Coin(60) ? depth : Pick({16, 24, 64});
    const std::string rows = absl::StrCat(batches, ",", heads, ",", queries);
    inputs_ = {absl::StrCat("q: ", type, "[", rows, ",", depth, "]")};
    const auto memory = [&](const char* name, int width) {
      const std::string head = of_group == 1 ? "h" : absl::StrCat("h//", of_group);
      const bool keys_first = Coin(40);
      const std::string shape =
          keys_first ? absl::StrCat(keys, ",", groups) : absl::StrCat(groups, ",", keys);
      inputs_.push_back(absl::StrCat(name, ": ", type, "[", batches, ",", shape, ",", width, "]"));
      return absl::StrCat("f32(", name, "[b,", keys_first ? "j," + head : head + ",j", ",d])");
    };
    const std::string k = memory("k", depth), v = memory("v", values);
    const bool guards = Coin(30), divides_early = Coin(20), is_transposed = Coin(40), has_lse = Coin(30);
    // The sum, too, not its reader alone.
    const bool transposes_sum = is_transposed && Coin(50);
    const std::string sum = transposes_sum ? "t[b,i,h,d]" : "t[b,h,i,d]";
    const std::string transposed_rows = absl::StrCat(batches, ",", queries, ",", heads);
    const std::string masked = Masked(Score(queries, keys, heads), queries, keys, guards || !has_lse);
    const std::string weight = divides_early ? "e[b,h,i,j] / l[b,h,i]" : "e[b,h,i,j]";
    const std::string result = absl::StrCat(sum, divides_early ? "" : " / l[b,h,i]");
    std::string outputs =
        absl::Substitute("o: $0[$1,$2]", type, is_transposed ? transposed_rows : rows, values);
    if (has_lse) absl::StrAppend(&outputs, ", z: f32[", rows, "]");
    return absl::Substitute(R"(workload attention($0) -> ($1) {
  s[b,h,i,j]: f32[$2,$3] = sum[d:$4](f32(q[b,h,i,d]) * $5)
  c[b,h,i,j]: f32[$2,$3] = $6
  m[b,h,i]: f32[$2] = max[j:$3](c[b,h,i,j])
)",
                            absl::StrJoin(inputs_, ", "), outputs, rows, keys, depth, k, masked) +
           absl::Substitute(
               R"(  e[b,h,i,j]: f32[$0,$1] = exp(c[b,h,i,j] - $2)
  l[b,h,i]: f32[$0] = sum[j:$1](e[b,h,i,j])
)",
               rows, keys, guards ? "select(m[b,h,i] == -inf, 0.0, m[b,h,i])" : "m[b,h,i]") +
           absl::Substitute(R"(  $0: f32[$1,$2] = sum[j:$3](f32($4($5)) * $6)
  o[$7,d] = $4($8)
$9})",
                            sum, transposes_sum ? transposed_rows : rows, values, keys, type, weight, v,
                            is_transposed ? "b,i,h" : "b,h,i", result,
                            has_lse ? "  z[b,h,i] = log(l[b,h,i]) + m[b,h,i]\n" : "");
  }

  int Between(int low, int high) {
    return low + static_cast<int>(rng_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  bool Coin(int percent) { return Between(1, 100) <= percent; }
  int Pick(const std::vector<int>& from) { return from[Between(0, static_cast<int>(from.size()) - 1)]; }

  std::string Score(int queries, int keys, int heads) {
    switch (Between(0, 5)) {
      case 0: return "s[b,h,i,j] * 0.125 + f32(j - i) * 0.01";
      case 1:
        inputs_.push_back(absl::StrCat("r: f32[", queries, ",", keys, "]"));
        return "s[b,h,i,j] * 0.125 + r[i,j]";
      case 2:
        inputs_.push_back(absl::StrCat("r: f16[", heads, ",", keys, "]"));
        return "s[b,h,i,j] * 0.125 + f32(r[h,j])";
      case 3: return "tanh(s[b,h,i,j] * 0.05) * 20.0";
      default: return "s[b,h,i,j] * 0.125";
    }
  }

  // `may_hide_all`: some rows may see no key.
  std::string Masked(const std::string& score, int queries, int keys, bool may_hide_all) {
    const int offset = std::max(keys - queries, 0);
    std::string mask;
    switch (Between(0, may_hide_all ? 6 : 3)) {
      case 0: mask = absl::StrCat("j <= i + ", offset); break;
      case 1:
        mask = absl::StrCat("j <= i + ", offset, " && i + ", offset, " < j + ", Pick({1, 20, 70}));
        break;
      case 2: mask = absl::StrCat(Between(0, keys - 1), " <= j"); break;
      case 3: return score;
      case 4: mask = absl::StrCat("j < i * ", Between(1, 30)); break;
      case 5: mask = absl::StrCat(Between(0, keys - 1), " <= j && j <= i"); break;
      default: inputs_.push_back("n: i32[2]"); mask = absl::StrCat("j < i64(n[b]) * ", Between(1, 40));
    }
    return absl::StrCat("select(", mask, ", ", score, ", -inf)");
  }

  std::mt19937_64 rng_;
  std::vector<std::string> inputs_;
};

// The default point, or a random legal one where there are such.
std::optional<Choice> LegalPoint(const Sketch& sketch, bool is_default, RandomAttention* random) {
  if (is_default) return sketch.default_choice;
  Choice choice = sketch.default_choice;
  for (int round = 0; round < 300; ++round) {
    for (size_t d = 0; d < choice.size(); ++d)
      choice[d] = random->Between(0, static_cast<int>(sketch.space.decisions[d].choices.size()) - 1);
    if (sketch.space.Legal(choice)) return choice;
  }
  return std::nullopt;
}

// Calls check(workload, target, sketch, choice) for a point of each streamed sketch of the seed's attention,
// the default one or a random one; returns their number.
template <typename CheckFn>
int CheckStreamedPoints(int seed, bool is_default, const char* target_text, const CheckFn& check) {
  RandomAttention random(seed);
  const std::string text = random.Text();
  SCOPED_TRACE(text);
  const Workload workload = CanonicalWorkload(text);
  const Target target = *ParseTarget(target_text);
  int streamed = 0;
  for (const Sketch& sketch : GenerateSketches(workload, target)) {
    if (!IsStreamedSketch(sketch.name)) continue;
    const std::optional<Choice> choice = LegalPoint(sketch, is_default, &random);
    if (!choice) continue;
    ++streamed;
    const absl::Status same = check(workload, target, sketch, *choice);
    EXPECT_TRUE(same.ok()) << same;
  }
  return streamed;
}

TEST(RandomAttentionTest, LegalPointsComputeWhatTheStagesSay) {
  const char* targets[] = {"v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=2 smem=232448 l2=60M",
                           "v1 cuda arch=sm_90a model=\"NVIDIA H200\" sms=132 smem=232448 l2=60M",
                           "v1 cuda arch=sm_80 model=\"NVIDIA A100\" sms=108 smem=166912 l2=40M"};
  const auto check = [](const Workload& workload, const Target& target, const Sketch& sketch,
                        const Choice& choice) {
    return CheckLoweredPoint(workload, target, sketch, choice, 5e-2);
  };
  int streamed = 0;
  for (int seed = 0; seed < RandomSeeds(12) && !HasFailure(); ++seed)
    streamed += CheckStreamedPoints(seed, seed % 2 == 0, targets[seed % 3], check);
  EXPECT_GE(streamed, RandomSeeds(12));
}

// On CPUs: the schedule itself is interpreted. With and without instructions for pairs of bf16; with more
// threads than there are heads, which then share keys.
TEST(RandomAttentionTest, CpuSchedulesComputeWhatTheStagesSay) {
  const char* targets[] = {"v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2",
                           "v1 cpu mcpu=haswell l1d=32K l2=512K threads=24"};
  const auto check = [](const Workload& workload, const Target& target, const Sketch& sketch,
                        const Choice& choice) -> absl::Status {
    MYCC_ASSIGN_OR_RETURN(const Trace trace, sketch.instantiate(choice));
    const absl::StatusOr<Schedule> schedule = Replay(workload, target, trace);
    const absl::Status same =
        schedule.ok() ? CheckFunction(workload, schedule->function(), 5e-2) : schedule.status();
    return same.ok() ? same
                     : absl::Status(same.code(), absl::StrCat(same.message(), "\n", PrintTrace(trace)));
  };
  int streamed = 0;
  for (int seed = 100; seed < 100 + RandomSeeds(24) && !HasFailure(); ++seed)
    streamed += CheckStreamedPoints(seed, seed % 3 == 0, targets[seed % 2], check);
  EXPECT_GE(streamed, RandomSeeds(24) / 3);
}

}  // namespace
}  // namespace mycc
