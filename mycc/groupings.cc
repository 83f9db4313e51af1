#include "mycc/groupings.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "command/layouts.h"
#include "command/times.h"

namespace mycc {
namespace {

ChosenGrouping GroupingOf(const Alternative& alternative) {
  ChosenGrouping grouping{alternative.name, {}, {}, std::nullopt, std::nullopt};
  for (const Workload& replaced : alternative.instead_of) grouping.instead_of.push_back(replaced.name);
  for (const Workload& part : alternative.parts) grouping.parts.push_back(part.name);
  return grouping;
}

// Null where the program has none of the name.
const Alternative* AlternativeNamed(const ModelProgram& program, const std::string& name) {
  const auto found = std::ranges::find_if(
      program.alternatives, [&](const Alternative& alternative) { return alternative.name == name; });
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
                          SecondsOfAll(alternative.instead_of, protocol, finder));
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

bool IsFaster(const ChosenGrouping& grouping) {
  return grouping.seconds && *grouping.seconds < kLargestShare * *grouping.default_seconds;
}

// Takes the layout, if it is faster than the kernels that it replaces, these as `chosen` cuts them. Their
// cuts are dropped then.
void ChooseLayout(ChosenGrouping layout, std::vector<ChosenGrouping>* chosen) {
  if (!layout.seconds) return;
  const std::set<std::string> replaced(layout.instead_of.begin(), layout.instead_of.end());
  const auto is_replaced = [&](const ChosenGrouping& grouping) {
    return replaced.count(grouping.instead_of[0]) > 0;
  };
  for (const ChosenGrouping& grouping : *chosen) {
    if (is_replaced(grouping)) *layout.default_seconds -= *grouping.default_seconds - *grouping.seconds;
  }
  if (!IsFaster(layout)) return;
  chosen->erase(std::remove_if(chosen->begin(), chosen->end(), is_replaced), chosen->end());
  chosen->insert(chosen->begin(), std::move(layout));
}

// A part that is equal to another kernel of the program has that one's name. A cut may have no place in
// another layout.
void RenameParts(const ModelProgram& program, const ModelProgram& by_default,
                 std::vector<ChosenGrouping>* groupings) {
  std::map<std::string, std::string> names;  // by hash
  for (const Workload& kernel : program.kernels) names.emplace(WorkloadHash(kernel), kernel.name);
  for (ChosenGrouping& grouping : *groupings) {
    const Alternative& alternative = *AlternativeNamed(by_default, grouping.name);
    for (size_t i = 0; i < grouping.parts.size(); ++i) {
      const auto name = names.find(WorkloadHash(alternative.parts[i]));
      if (name != names.end()) grouping.parts[i] = name->second;
    }
  }
}

}  // namespace

absl::StatusOr<std::vector<ChosenGrouping>> FastestGroupings(const ModelProgram& program,
                                                             const ScheduleFinder& finder) {
  std::vector<ChosenGrouping> chosen;
  std::map<std::string, size_t> places;  // in `chosen`, by the kernel
  for (const Alternative& alternative : program.alternatives) {
    MYCC_ASSIGN_OR_RETURN(ChosenGrouping grouping, Timed(alternative, finder));
    if (IsLayoutAlternative(grouping.name)) {
      ChooseLayout(std::move(grouping), &chosen);
      continue;
    }
    if (!IsFaster(grouping)) continue;
    const auto [place, is_new] = places.emplace(grouping.instead_of[0], chosen.size());
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
          absl::StrCat("--lock: ", kOtherModel, ": none here has the grouping ", name, " of the lock file"));
    }
    chosen.push_back(GroupingOf(*alternative));
  }
  return chosen;
}

absl::StatusOr<ModelProgram> ReadModelWith(const ModelSource& source, const Target& target,
                                           const ChooseGroupings& choose,
                                           std::vector<ChosenGrouping>* groupings) {
  MYCC_ASSIGN_OR_RETURN(std::vector<LaidOutModel> models, ReadLaidOut(source, target));
  LaidOutModel& preferred = models.front();
  MYCC_ASSIGN_OR_RETURN(*groupings, choose(preferred.program));
  if (groupings->empty()) return std::move(preferred.program);
  std::vector<std::string> names;
  const LaidOutModel* chosen = &preferred;
  for (const ChosenGrouping& grouping : *groupings) {
    names.push_back(grouping.name);
    if (IsLayoutAlternative(grouping.name)) chosen = &models.back();
  }
  ModelProgram program = MakeProgramFor(target, chosen->graph, names);
  RenameParts(program, preferred.program, groupings);
  return program;
}

std::string GroupingLine(const ChosenGrouping& grouping) {
  const std::string why = grouping.seconds
                              ? absl::StrCat(FormatSeconds(*grouping.seconds), " instead of ",
                                             FormatSeconds(*grouping.default_seconds), " by the log")
                              : "from the lock file";
  if (IsLayoutAlternative(grouping.name)) return absl::StrCat("images: ", LayoutOf(grouping.name), ", ", why);
  return absl::StrCat(grouping.instead_of[0], ": split into ", absl::StrJoin(grouping.parts, " and "), ", ",
                      why);
}

}  // namespace mycc
