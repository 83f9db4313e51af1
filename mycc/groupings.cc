#include "mycc/groupings.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "command/times.h"

namespace mycc {
namespace {

ChosenGrouping GroupingOf(const Alternative& alternative) {
  ChosenGrouping grouping{alternative.name, alternative.instead_of.name, {}, std::nullopt, std::nullopt};
  for (const Workload& part : alternative.parts) grouping.parts.push_back(part.name);
  return grouping;
}

// Null where the program has none of the name.
const Alternative* AlternativeNamed(const ModelProgram& program, const std::string& name) {
  const auto found = std::find_if(program.alternatives.begin(), program.alternatives.end(),
                                  [&](const Alternative& alternative) { return alternative.name == name; });
  return found == program.alternatives.end() ? nullptr : &*found;
}

// The seconds of all launches, where each workload has a record under the protocol.
absl::StatusOr<std::optional<double>> SecondsOfAll(const std::vector<Workload>& workloads,
                                                   v1::TimingProtocol protocol,
                                                   const ScheduleFinder& finder) {
  double sum = 0;
  for (const Workload& workload : workloads) {
    MYCC_ASSIGN_OR_RETURN(const std::optional<double> seconds, finder.MeasuredSeconds(workload, protocol));
    if (!seconds) return std::nullopt;
    sum += static_cast<double>(workload.count) * *seconds;
  }
  return sum;
}

// The alternative with the times of both, under the first protocol that has them all; without times
// otherwise.
absl::StatusOr<ChosenGrouping> Timed(const Alternative& alternative, const ScheduleFinder& finder) {
  ChosenGrouping grouping = GroupingOf(alternative);
  for (const v1::TimingProtocol protocol : finder.protocols()) {
    MYCC_ASSIGN_OR_RETURN(const std::optional<double> seconds,
                          SecondsOfAll(alternative.parts, protocol, finder));
    if (!seconds) continue;
    MYCC_ASSIGN_OR_RETURN(const std::optional<double> default_seconds,
                          SecondsOfAll({alternative.instead_of}, protocol, finder));
    if (!default_seconds) continue;
    grouping.seconds = seconds;
    grouping.default_seconds = default_seconds;
    break;
  }
  return grouping;
}

// The time of another cut, as a share of the default's, below which it is chosen: times of kernels that are
// measured alone differ by as much from those in a model.
constexpr double kLargestShare = 0.97;

// A part that is equal to another kernel of the program has that one's name.
void RenameParts(const ModelProgram& program, std::vector<ChosenGrouping>* groupings) {
  std::map<std::string, std::string> names;  // by hash
  for (const Workload& kernel : program.kernels) names.emplace(WorkloadHash(kernel), kernel.name);
  for (ChosenGrouping& grouping : *groupings) {
    const Alternative& alternative = *AlternativeNamed(program, grouping.name);
    for (size_t i = 0; i < grouping.parts.size(); ++i)
      grouping.parts[i] = names.at(WorkloadHash(alternative.parts[i]));
  }
}

}  // namespace

absl::StatusOr<std::vector<ChosenGrouping>> FastestGroupings(const ModelProgram& program,
                                                             const ScheduleFinder& finder) {
  std::vector<ChosenGrouping> chosen;
  std::map<std::string, size_t> places;  // in `chosen`, by the kernel
  for (const Alternative& alternative : program.alternatives) {
    MYCC_ASSIGN_OR_RETURN(ChosenGrouping grouping, Timed(alternative, finder));
    if (!grouping.seconds || *grouping.seconds >= kLargestShare * *grouping.default_seconds) continue;
    const auto [place, is_new] = places.emplace(grouping.kernel, chosen.size());
    if (is_new) {
      chosen.push_back(std::move(grouping));
    } else if (*grouping.seconds < *chosen[place->second].seconds) {
      chosen[place->second] = std::move(grouping);
    }
  }
  return chosen;
}

absl::StatusOr<std::vector<ChosenGrouping>> GroupingsNamed(const ModelProgram& program,
                                                           const std::vector<std::string>& names) {
  std::vector<ChosenGrouping> chosen;
  for (const std::string& name : names) {
    const Alternative* const alternative = AlternativeNamed(program, name);
    if (alternative == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("--lock: the model has no kernel here with the grouping ", name, " of the lock file"));
    }
    chosen.push_back(GroupingOf(*alternative));
  }
  return chosen;
}

absl::StatusOr<ModelProgram> ReadModelWith(const ModelSource& source, const Target& target,
                                           const ChooseGroupings& choose,
                                           std::vector<ChosenGrouping>* groupings) {
  MYCC_ASSIGN_OR_RETURN(const Graph graph, ReadGraph(source, target));
  ModelProgram by_default = MakeProgram(graph);
  MYCC_ASSIGN_OR_RETURN(*groupings, choose(by_default));
  if (groupings->empty()) return by_default;
  std::vector<std::string> names;
  for (const ChosenGrouping& grouping : *groupings) names.push_back(grouping.name);
  ModelProgram program = MakeProgram(graph, names);
  RenameParts(program, groupings);
  return program;
}

std::string GroupingLine(const ChosenGrouping& grouping) {
  const std::string why = grouping.seconds
                              ? absl::StrCat(FormatSeconds(*grouping.seconds), " instead of ",
                                             FormatSeconds(*grouping.default_seconds), " by the log")
                              : "from the lock file";
  return absl::StrCat(grouping.kernel, ": split into ", absl::StrJoin(grouping.parts, " and "), ", ", why);
}

}  // namespace mycc
