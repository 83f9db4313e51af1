// A made-up space like that of a tiled contraction, with a known cost surface, for testing searches without a
// compiler.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tuner/search/rng.h"
#include "tuner/search/strategy.h"

namespace mycc {

// One step a decision: split(t0.aI, [value]).
inline Sketch SketchOf(std::string name, std::vector<Decision> decisions,
                       std::function<bool(const Choice&)> constraint = nullptr) {
  Sketch sketch;
  sketch.name = name;
  sketch.space.decisions = decisions;
  sketch.space.constraint = std::move(constraint);
  sketch.default_choice = Choice(decisions.size(), 0);
  sketch.instantiate = [name, decisions](const Choice& choice) -> absl::StatusOr<Trace> {
    Trace trace;
    trace.sketch = name;
    for (size_t d = 0; d < decisions.size(); ++d) {
      const int64_t value = decisions[d].choices[choice[d]];
      trace.decisions.emplace_back(decisions[d].name, value);
      trace.steps.push_back({"split", {StepArg{absl::StrCat(name, ".a", d)}, StepArg{StepArg::Ints{value}}}});
    }
    return trace;
  };
  return sketch;
}

// Noise in [-1, 1] that belongs to a point, not to a generator.
inline double NoiseOf(const std::string& trace, uint64_t salt) {
  uint64_t h = 0xcbf29ce484222325 ^ (salt * 0x9e3779b97f4a7c15);
  for (const char c : trace) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return 2 * Rng(h).Unit() - 1;
}

// mr, nr: a register tile that spills beyond 28 vectors; kc: a panel that wants to fit 48 KB; mc: one that
// wants to fit 1 MB; order, unroll, parallel: switches with interactions. The constraint takes about half of
// the 9 * 6 * 10 * 8 * 6 * 4 * 3 = 311,040 points.
inline Sketch ContractionLikeSketch() {
  Sketch sketch = SketchOf("contraction", {{"mr", {1, 2, 4, 6, 8, 12, 14, 16, 24}},
                                           {"nr", {8, 16, 32, 48, 64, 96}},
                                           {"kc", {8, 16, 32, 64, 96, 128, 192, 256, 384, 512}},
                                           {"mc", {8, 16, 32, 64, 128, 256, 512, 1024}},
                                           {"order", {0, 1, 2, 3, 4, 5}, false},
                                           {"unroll", {1, 2, 4, 8}},
                                           {"parallel", {0, 1, 2}, false}});
  const Space space = sketch.space;
  sketch.space.constraint = [space](const Choice& choice) {
    const int64_t mr = space.Value(choice, "mr"), mc = space.Value(choice, "mc");
    return mc % mr == 0 || mc > 4 * mr;
  };
  sketch.default_choice = {2, 1, 4, 4, 0, 0, 1};
  return sketch;
}

inline double SquaredLog(double ratio) { return std::log2(ratio) * std::log2(ratio); }

// Values of the decisions of a ContractionLikeSketch, in its order.
using ContractionLikePoint = std::array<double, 7>;

// Seconds without the noise; negative for a point that fails.
inline double SmoothSeconds(const ContractionLikePoint& point) {
  const auto [mr, nr, kc, mc, order, unroll, parallel] = point;
  const double vectors = mr * nr / 16;
  if (vectors > 96) return -1;  // does not build
  double seconds = 1e-3;
  seconds *= 1 + 6 / (1 + vectors * vectors / 16);           // latency is hidden by many accumulators
  if (vectors > 28) seconds *= 1.5 + 0.05 * (vectors - 28);  // spills
  seconds *= 1 + 0.12 * SquaredLog(kc * nr * 4 / 40000);     // the panel in L1
  seconds *= 1 + 0.06 * SquaredLog(mc * kc * 4 / 500000);    // the block in L2
  const double by_order[] = {1.35, 1.0, 1.2, 1.9, 1.1, 2.5};
  seconds *= by_order[static_cast<int>(order)];
  seconds *= 1 + 0.1 * SquaredLog(unroll * mr / 16);
  const bool coarse = mc >= 256;
  return seconds * (parallel == 0 ? 1.9 : parallel == 1 ? (coarse ? 1.25 : 1.0) : (coarse ? 1.0 : 1.2));
}

// The largest difference of a measurement from the smooth surface.
constexpr double kSurfaceNoise = 0.03;

// Seconds of a point of ContractionLikeSketch, whose trace is `text`; negative for one that fails.
inline double ContractionLikeSeconds(const Trace& trace, const std::string& text) {
  ContractionLikePoint point = {};
  for (size_t d = 0; d < point.size(); ++d) point[d] = static_cast<double>(trace.decisions.at(d).second);
  const double seconds = SmoothSeconds(point);
  return seconds < 0 ? seconds : seconds * (1 + kSurfaceNoise * NoiseOf(text, 1));
}
inline double ContractionLikeSeconds(const Trace& trace) {
  return ContractionLikeSeconds(trace, PrintTrace(trace));
}

// Predicts the surface's seconds to the power `trust` times exp(noise): 1 is a good model, 0 knows nothing,
// -1 has everything backwards.
class SurfaceScorer : public Scorer {
 public:
  SurfaceScorer(double trust, double noise) : trust_(trust), noise_(noise) {}

  std::vector<absl::StatusOr<Prediction>> Score(const std::vector<const Trace*>& traces) override {
    std::vector<absl::StatusOr<Prediction>> predictions;
    for (const Trace* trace : traces) {
      const std::string text = PrintTrace(*trace);
      const double seconds = std::abs(ContractionLikeSeconds(*trace, text));
      const double predicted = std::pow(seconds / 1e-3, trust_) * 1e-3 * std::exp(noise_ * NoiseOf(text, 2));
      predictions.push_back(Prediction{predicted, predicted, 0});
      ++asked;
    }
    return predictions;
  }
  int asked = 0;

 private:
  const double trust_, noise_;
};

inline Outcome MeasureSurface(const Candidate& candidate) {
  const auto trace = ParseTrace(candidate.trace);
  Outcome outcome{candidate.generation, candidate.index, std::nullopt, ""};
  const double seconds = ContractionLikeSeconds(*trace);
  if (seconds < 0) {
    outcome.failure = "build_error";
  } else {
    outcome.seconds = seconds;
  }
  return outcome;
}

}  // namespace mycc
