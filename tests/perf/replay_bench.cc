// The search's cost of one candidate: replay of its trace, features and the analytic estimate, and what the
// model costs beside them; and of searches of 64 trials as a whole, whose times are made up. Prints a table
// and ends with its figures as `name: value` lines; fails when a contraction's replay with features takes
// more than 300 us.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "tuner/cost/schedule_scorer.h"
#include "tuner/search/rng.h"
#include "tuner/search/strategy.h"

namespace mycc {
namespace {

constexpr double kLimitMicroseconds = 300;

constexpr char kGemm[] =
    R"(workload gemm(a: f32[1024,1024], b: const f32[1024,1024], c: f32[1024]) -> (y: f32[1024,1024]) {
  p[i,j]: f32[1024,1024] = sum[k:1024](a[i,k] * b[k,j])
  y[i,j] = max(p[i,j] + c[j], 0.0)
})";
constexpr char kConv[] =
    R"(workload conv(x: f32[1,56,56,64], w: const f32[64,64,3,3], b: const f32[64]) -> (y: f32[1,56,56,64]) {
  p[n,i,j,c]: f32[1,58,58,64] = select(1 <= i && i < 57 && 1 <= j && j < 57, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,56,56,64] = sum[c:64, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s])
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)
})";
constexpr char kHalfGemm[] =
    R"(workload gemm(a: f16[2048,2048], b: const f16[2048,2048]) -> (c: f16[2048,2048]) {
  p[i,j]: f32[2048,2048] = sum[k:2048](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = f16(p[i,j])
})";
constexpr char kHalfConv[] =
    R"(workload conv(x: f16[32,56,56,64], w: f16[64,3,3,64], b: f16[64]) -> (y: f16[32,56,56,64]) {
  p[n,i,j,c]: f16[32,58,58,64] = select(1 <= i && 1 <= j && i < 57 && j < 57, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[32,56,56,64] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0))
})";
constexpr char kSoftmax[] = R"(workload softmax(x: f32[512,1000]) -> (y: f32[512,1000]) {
  m[i]: f32[512] = max[j:1000](x[i,j])
  e[i,j]: f32[512,1000] = exp(x[i,j] - m[i])
  s[i]: f32[512] = sum[j:1000](e[i,j])
  y[i,j] = e[i,j] / s[i]
})";

Workload Canonical(const char* text) { return Canonicalize(*ParseWorkload(text, "replay_bench")); }
Target TheTarget() { return *ParseTarget("znver3"); }

void ReplayWithFeatures(benchmark::State& state, const char* text) {
  const Workload workload = Canonical(text);
  const Target target = TheTarget();
  const Sketch sketch = GenerateSketches(workload, target)[0];
  const Trace trace = *sketch.instantiate(sketch.default_choice);
  for (auto _ : state) benchmark::DoNotOptimize(Appraise(workload, target, trace));
}

// One generation of 16 by the default strategy, nothing measured yet: hundreds of candidates appraised.
void FirstGeneration(benchmark::State& state, const char* text) {
  const Workload workload = Canonical(text);
  const Target target = TheTarget();
  for (auto _ : state) {
    ScheduleScorer scorer(workload, target, "task", nullptr);
    auto search = *MakeSearchStrategy({}, GenerateSketches(workload, target), {}, &scorer);
    benchmark::DoNotOptimize(search->Ask());
  }
}

// Counts the different programs that it predicts.
class CountedScorer final : public Scorer {
 public:
  explicit CountedScorer(Scorer* scorer) : scorer_(scorer) {}
  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    for (const Trace* trace : traces) seen_.insert(StepsKey(*trace));
    return scorer_->Score(traces);
  }
  std::vector<absl::StatusOr<std::string>> CodesOf(const std::vector<const Trace*>& traces) override {
    return scorer_->CodesOf(traces);
  }
  size_t count() const { return seen_.size(); }

 private:
  Scorer* const scorer_;
  std::set<std::string> seen_;
};

// The predicted time, and up to a half more by the trace's text.
double MadeUpSeconds(const Candidate& candidate) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : candidate.trace) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return *candidate.predicted_seconds * (1 + 0.5 * Rng(hash).Unit());
}

// A search of 64 trials, from its spaces to its last generation, with all that it learns.
void SearchOf64(benchmark::State& state, const char* text, const char* target_text) {
  const Workload workload = Canonical(text);
  const Target target = *ParseTarget(target_text);
  double scored = 0;
  for (auto _ : state) {
    Learner learner;
    ScheduleScorer scorer(workload, target, "task", &learner);
    CountedScorer counted(&scorer);
    const auto search = *MakeSearchStrategy({.seed = 1}, GenerateSketches(workload, target), {}, &counted);
    for (int generation = 0; generation < 4; ++generation) {
      const auto asked = search->Ask();
      std::vector<Outcome> outcomes;
      for (const Candidate& candidate : *asked)
        outcomes.push_back({candidate.generation, candidate.index, MadeUpSeconds(candidate), ""});
      if (!search->Tell(outcomes).ok() ||
          !learner.Add(scorer.SamplesOf(search->ledger().generation(generation))).ok())
        state.SkipWithError("the search failed");
    }
    scored += static_cast<double>(counted.count());
  }
  state.counters["scored"] = benchmark::Counter(scored, benchmark::Counter::kIsRate);
}

std::vector<Sample> RandomSamples(int count) {
  Rng rng(1);
  std::vector<Sample> samples;
  for (int i = 0; i < count; ++i) {
    Sample sample;
    for (size_t f = 0; f < FunctionFeatureSlots().size(); ++f)
      sample.features.push_back(static_cast<float>(rng.Below(20)));
    sample.analytic_seconds = 1e-3;
    sample.seconds = 1e-3 * std::exp(0.1 * sample.features[3] + 0.05 * sample.features[7] + 0.1 * rng.Unit());
    sample.group = "task" + std::to_string(i / 64);
    samples.push_back(std::move(sample));
  }
  return samples;
}

void Train(benchmark::State& state) {
  const std::vector<Sample> samples = RandomSamples(static_cast<int>(state.range(0)));
  std::vector<const Sample*> pointers;
  for (const Sample& sample : samples) pointers.push_back(&sample);
  for (auto _ : state) {
    XgboostModel model;
    if (!model.Train(pointers).ok()) state.SkipWithError("training failed");
  }
}

void Predict128(benchmark::State& state) {
  const std::vector<Sample> samples = RandomSamples(512);
  std::vector<const Sample*> pointers;
  std::vector<const Features*> rows;
  for (const Sample& sample : samples) {
    pointers.push_back(&sample);
    if (rows.size() < 128) rows.push_back(&sample.features);
  }
  XgboostModel model;
  if (!model.Train(pointers).ok()) state.SkipWithError("training failed");
  for (auto _ : state) benchmark::DoNotOptimize(model.Predict(rows, "task0"));
}

BENCHMARK_CAPTURE(ReplayWithFeatures, gemm, kGemm)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ReplayWithFeatures, conv, kConv)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(ReplayWithFeatures, softmax, kSoftmax)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(FirstGeneration, conv, kConv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchOf64, gemm, kGemm, "skylake-avx512")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchOf64, conv, kConv, "skylake-avx512")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchOf64, gpu, kHalfGemm, "h100")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SearchOf64, gpu_conv, kHalfConv, "h100")->Unit(benchmark::kMillisecond);
BENCHMARK(Train)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK(Predict128)->Unit(benchmark::kMicrosecond);

// The table, and a note of every figure.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_None) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto scored = run.counters.find("scored");
      if (scored != run.counters.end()) scored_per_second[run.benchmark_name()] = scored->second;
      microseconds[run.benchmark_name()] =
          run.real_accumulated_time / static_cast<double>(run.iterations) * 1e6;
    }
  }
  std::map<std::string, double> microseconds, scored_per_second;
};

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const double gemm = reporter.microseconds["ReplayWithFeatures/gemm"],
               conv = reporter.microseconds["ReplayWithFeatures/conv"];
  std::printf("replay_with_features_gemm_us: %.1f\nreplay_with_features_conv_us: %.1f\n", gemm, conv);
  for (const char* const name : {"gemm", "conv", "gpu", "gpu_conv"}) {
    std::printf("scored_per_second_%s: %.0f\n", name,
                reporter.scored_per_second[std::string("SearchOf64/") + name]);
  }
  return std::max(gemm, conv) <= kLimitMicroseconds ? 0 : 1;
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) { return mycc::Main(argc, argv); }
