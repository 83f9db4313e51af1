#include "command/layouts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "tuner/cost/analytic.h"
#include "tuner/space/space.h"

namespace mycc {
namespace {

constexpr char kPrefix[] = "layout:";
// Planes are preferred where they are predicted to take a smaller share of the time. Default schedules of 13
// models were timed in both layouts: the two with a smaller share were faster in planes, and nine of the
// eleven others were slower.
constexpr double kClearlyFaster = 0.75;

// The analytic model's time of a workload's default schedule.
double PredictedSeconds(const Workload& workload, const Target& target) {
  double least = std::numeric_limits<double>::infinity();
  for (const SketchWithDefault& generated : GenerateSketchesWithDefaults(Canonicalize(workload), target)) {
    const absl::StatusOr<double> seconds = EstimateSeconds(generated.function, target);
    if (seconds.ok()) least = std::min(least, *seconds);
  }
  return least;
}

using Counted = std::map<std::string, Workload>;  // by canonical text

Counted KernelsOf(const ModelProgram& program) {
  Counted kernels;
  for (const Workload& kernel : program.kernels) kernels.emplace(CanonicalText(kernel), kernel);
  return kernels;
}

// The launches of `program` that `other` lacks.
std::vector<Workload> Missing(const ModelProgram& program, const Counted& other) {
  std::vector<Workload> missing;
  for (const Workload& kernel : program.kernels) {
    const auto known = other.find(CanonicalText(kernel));
    Workload left = kernel;
    if (known != other.end()) left.count -= known->second.count;
    if (left.count > 0) missing.push_back(std::move(left));
  }
  return missing;
}

double SumOfPredicted(const std::vector<Workload>& kernels, const Target& target) {
  double sum = 0;
  for (const Workload& kernel : kernels)
    sum += static_cast<double>(kernel.count) * PredictedSeconds(kernel, target);
  return sum;
}

absl::StatusOr<LaidOutModel> LayOutAs(ImageLayout images, const std::string& layout, Graph prepared,
                                      const Target& target, GraphOptions options) {
  options.images = images;
  MYCC_ASSIGN_OR_RETURN(Graph graph, LayOutGraph(std::move(prepared), target, options));
  ModelProgram program = MakeProgramFor(target, graph);
  return LaidOutModel{layout, std::move(graph), std::move(program)};
}

}  // namespace

ModelProgram MakeProgramFor(const Target& target, const Graph& graph,
                            const std::vector<std::string>& chosen) {
  return MakeProgram(graph, chosen, [&](const Workload& workload) {
    return HasStreamedSketch(Canonicalize(workload), target);
  });
}

bool IsLayoutAlternative(const std::string& name) { return absl::StartsWith(name, kPrefix); }
std::string LayoutOf(const std::string& name) { return std::string(absl::StripPrefix(name, kPrefix)); }

absl::StatusOr<std::vector<LaidOutModel>> LayOut(Graph imported, const Target& target,
                                                 const GraphOptions& options) {
  MYCC_ASSIGN_OR_RETURN(Graph prepared, PrepareGraph(std::move(imported), target, options));
  const bool may_differ = target.kind == TargetKind::kCpu && HasImages(prepared, target);
  Graph copy;
  if (may_differ) copy = prepared;
  std::vector<LaidOutModel> models(1);
  MYCC_ASSIGN_OR_RETURN(
      models[0], LayOutAs(ImageLayout::kChannelsLast, "channels_last", std::move(prepared), target, options));
  if (!may_differ) return models;
  MYCC_ASSIGN_OR_RETURN(LaidOutModel planes,
                        LayOutAs(ImageLayout::kPlanes, "planes", std::move(copy), target, options));
  std::vector<Workload> of_last = Missing(models[0].program, KernelsOf(planes.program));
  std::vector<Workload> of_planes = Missing(planes.program, KernelsOf(models[0].program));
  if (of_last.empty() || of_planes.empty()) return models;
  const double last_seconds = SumOfPredicted(of_last, target);
  const double planes_seconds = SumOfPredicted(of_planes, target);
  if (planes_seconds >= last_seconds) return models;
  models.push_back(std::move(planes));
  if (planes_seconds < kClearlyFaster * last_seconds) {
    std::swap(models[0], models[1]);
    std::swap(of_last, of_planes);
  }
  for (Workload& part : of_planes) absl::StrAppend(&part.name, "_", models[1].layout);
  models[0].program.alternatives.push_back(
      {absl::StrCat(kPrefix, models[1].layout), std::move(of_last), std::move(of_planes)});
  return models;
}

}  // namespace mycc
