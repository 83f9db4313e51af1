// Makes the sketches of a workload: chooses the rule for each group of stages, and joins the rules' parts.
//
//   0. some stages become others (rewrites.h)
//   1. cheap elementwise stages are inlined into their readers (cheap_stages.h)
//   2. the stages that are left form groups (grouping.h), and one rule schedules each group
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
#include "tuner/space/cheap_stages.h"
#include "tuner/space/cpu_products.h"
#include "tuner/space/grouping.h"
#include "tuner/space/part.h"
#include "tuner/space/rewrites.h"
#include "tuner/space/stage_class.h"
#include "tuner/space/stream_chain.h"

namespace mycc {
namespace {

// Few enough terms for one thread to have them all.
bool IsWindow(const Stage& stage) {
  constexpr int64_t kMostTerms = 64;
  const int64_t terms = PointsOf(stage.reduce_axes);
  return terms <= kMostTerms;
}

// The part of any class but rows, which have several ways.
Part MakeGpuPart(const Anatomy& anatomy, const Group& group, StageClass c, const Target& target) {
  switch (c) {
    case StageClass::kContraction: return GpuSimtRule(anatomy, group, target);
    case StageClass::kTile:
      return IsWindow(anatomy.stage(group.anchor)) ? GpuWindowRule(anatomy, group, target)
                                                   : GpuColumnsRule(anatomy, group, target);
    default: return GpuElementwiseRule(anatomy, group, target);
  }
}

// On a CPU, of all classes but contractions, which have two ways.
Part MakePart(const Anatomy& anatomy, const Group& group, StageClass c, const Target& target) {
  if (target.kind == TargetKind::kCuda) return MakeGpuPart(anatomy, group, c, target);
  switch (c) {
    case StageClass::kTile: return TileRule(anatomy, group, target);
    default: return ElementwiseRule(anatomy, group, target);
  }
}

// Every sum along an axis is shorter than the rows that the copy engine fetches best.
bool IsShallow(const Stage& stage) {
  constexpr int64_t kFewest = 64;
  return std::ranges::all_of(stage.reduce_axes, [](const Var& axis) { return axis->extent < kFewest; });
}

// With lanes along an axis of the output, where there are such; along the depth, where no panels are made
// ahead of time; by Winograd's transforms.
std::vector<Part> CpuContractionParts(const Anatomy& anatomy, const Group& group, const Target& target) {
  std::vector<Part> parts = ContractionParts(anatomy, group, target);
  for (Part& part : WinogradParts(anatomy, group, target)) parts.push_back(std::move(part));
  const Contraction& c = *anatomy.info(group.anchor).contraction;
  if (!parts.empty() && c.vector.is_const) return parts;
  if (std::optional<Part> dot = DotPart(anatomy, group, target)) {
    const bool first = HasFewRowsForPanels(c, anatomy.product(group.anchor));
    parts.insert(first ? parts.begin() : parts.end(), *std::move(dot));
  }
  return parts;
}

using Refusals = std::vector<std::string>;  // each once

void AddRefusal(const std::string& why, Refusals* refusals) {
  if (!why.empty() && std::ranges::count(*refusals, why) == 0) refusals->push_back(why);
}

// The rules' ways to stream a chain, the most promising first.
std::vector<Part> StreamedParts(const Anatomy& anatomy, const Group& group, const Target& target,
                                Refusals* refusals) {
  std::vector<Part> parts;
  if (target.kind == TargetKind::kCuda) {
    absl::StatusOr<std::vector<Part>> made = GpuStreamedParts(anatomy, group, target);
    if (made.ok()) return *std::move(made);
    AddRefusal(std::string(made.status().message()), refusals);
    return parts;
  }
  std::string types;  // a rule for other types has nothing to say where one for these does
  for (const auto rule : {StreamedPart, StreamedPairsPart, StreamedDotPart}) {
    // Few rows have a rule of their own where no other takes them.
    if (rule == StreamedDotPart && !parts.empty()) break;
    absl::StatusOr<Part> part = rule(anatomy, group, target);
    if (part.ok()) {
      parts.push_back(*std::move(part));
    } else if (absl::IsInvalidArgument(part.status())) {
      types = std::string(part.status().message());
    } else if (!absl::IsNotFound(part.status())) {
      AddRefusal(std::string(part.status().message()), refusals);
    }
  }
  if (parts.empty() && refusals->empty()) AddRefusal(types, refusals);
  return parts;
}

// Alternatives for a group, the most promising first. None for a chain that no rule streams.
std::vector<Part> MakeParts(const Anatomy& anatomy, const Group& group, StageClass c, const Target& target,
                            Refusals* refusals) {
  std::vector<Part> parts;
  if (c == StageClass::kStreamed) return StreamedParts(anatomy, group, target, refusals);
  if (c == StageClass::kMerge) return {GpuMergeRule(anatomy, group, target)};
  if (target.kind == TargetKind::kCuda && c == StageClass::kContraction) {
    if (std::optional<Part> part = WarpSpecializedPart(anatomy, group, target)) parts.push_back(*part);
    // Operands that the copy engine can fetch as they are, in whole rows, have no use for threads that copy.
    if (parts.empty() || parts.front().Default("repack") != 0 || IsShallow(anatomy.stage(group.anchor))) {
      if (std::optional<Part> part = MultistagePart(anatomy, group, target)) parts.push_back(*part);
    }
    if (OtherClass(anatomy, group.anchor, target) == StageClass::kTile)
      parts.push_back(MakeGpuPart(anatomy, group, StageClass::kTile, target));
  }
  if (target.kind == TargetKind::kCuda && c == StageClass::kRow) return GpuRowParts(anatomy, group, target);
  if (c == StageClass::kRow) return RowParts(anatomy, group, target);
  if (target.kind == TargetKind::kCpu && c == StageClass::kTile) {
    if (std::optional<Part> part = ColumnsPart(anatomy, group, target)) parts.push_back(*part);
  }
  if (target.kind == TargetKind::kCpu && c == StageClass::kContraction) {
    parts = CpuContractionParts(anatomy, group, target);
  }
  if (parts.empty()) parts.push_back(MakePart(anatomy, group, c, target));
  return parts;
}

// The stages made of const inputs alone: computed once, when these are packed.
std::vector<bool> KnownAhead(const Anatomy& anatomy) {
  const std::vector<Argument>& inputs = anatomy.workload().inputs;
  std::vector<bool> known;
  for (int s = 0; s < anatomy.num_stages(); ++s) {
    const std::vector<const ExprNode*> loads = LoadsOf(anatomy.stage(s).value);
    const bool is_known = std::ranges::all_of(loads, [&](const ExprNode* load) {
      const int producer = anatomy.ProducerOf(load->buffer.get());
      if (producer >= 0) return static_cast<bool>(known[producer]);
      return std::ranges::any_of(
          inputs, [&](const Argument& input) { return input.tensor == load->buffer && input.is_const; });
    });
    known.push_back(is_known && !anatomy.info(s).is_output);
  }
  return known;
}

// Nobody waits for it, so there is nothing to decide.
Part AheadPart(const Anatomy& anatomy, const Group& group, const Target& target) {
  Part part;
  part.rule = "ahead";
  part.emit = [anatomy, group, shares = target.threads > 1](const Values&, TraceBuilder* b) {
    for (const int s : group.members) {
      if (shares && !anatomy.stage(s).axes.empty()) b->Bind(anatomy.Loop(s, 0), "parallel");
    }
  };
  return part;
}

// The part's choices begin at place `first` of the sketch's.
Values ValuesOf(const Part& part, const Choice& choice, size_t first) {
  Values values;
  for (size_t d = 0; d < part.decisions.size(); ++d)
    values.Add(part.decisions[d].name, part.decisions[d].choices[choice[first + d]]);
  return values;
}

// The first of each group's alternatives; then, for one group after the other, each of its others. Nothing
// where a group has none.
std::vector<std::vector<Part>> Combinations(const std::vector<std::vector<Part>>& choices) {
  std::vector<Part> first;
  first.reserve(choices.size());
  if (std::ranges::any_of(choices, [](const auto& parts) { return parts.empty(); })) return {};
  for (const std::vector<Part>& alternatives : choices) first.push_back(alternatives.front());
  std::vector<std::vector<Part>> all = {first};
  for (size_t g = 0; g < choices.size(); ++g) {
    for (size_t other = 1; other < choices[g].size(); ++other) {
      all.push_back(first);
      all.back()[g] = choices[g][other];
    }
  }
  return all;
}

Sketch Joined(const std::vector<Step>& rewrites, const std::vector<std::string>& inlined,
              const std::vector<Part>& parts) {
  Sketch sketch;
  std::string& name = sketch.name;
  for (const Part& part : parts) {
    absl::StrAppend(&name, name.empty() ? "" : "+", part.rule);
    for (size_t d = 0; d < part.decisions.size(); ++d) {
      Decision decision = part.decisions[d];
      const auto& choices = decision.choices;
      sketch.default_choice.push_back(
          static_cast<int>(std::ranges::find(choices, part.defaults[d]) - choices.begin()));
      decision.name = part.prefix + decision.name;
      sketch.space.decisions.push_back(std::move(decision));
    }
  }
  size_t first = 0;
  for (const Part& part : parts) {
    for (const std::vector<int64_t>& start : part.starts) {
      sketch.starts.push_back(sketch.default_choice);
      for (size_t d = 0; d < part.decisions.size(); ++d) {
        const auto& choices = part.decisions[d].choices;
        sketch.starts.back()[first + d] =
            static_cast<int>(std::ranges::find(choices, start[d]) - choices.begin());
      }
    }
    first += part.decisions.size();
  }
  sketch.space.constraint = [parts](const Choice& choice) {
    size_t first = 0;
    for (const Part& part : parts) {
      if (part.legal && !part.legal(ValuesOf(part, choice, first))) return false;
      first += part.decisions.size();
    }
    return true;
  };
  sketch.instantiate = [name = sketch.name, parts, decisions = sketch.space.decisions, rewrites,
                        inlined](const Choice& choice) -> absl::StatusOr<Trace> {
    TraceBuilder builder;
    builder.steps = rewrites;
    for (const std::string& stage : inlined) builder.Inline(stage);
    size_t first = 0;
    for (const Part& part : parts) {
      part.emit(ValuesOf(part, choice, first), &builder);
      first += part.decisions.size();
    }
    Trace trace;
    trace.sketch = name;
    for (size_t d = 0; d < decisions.size(); ++d)
      trace.decisions.emplace_back(decisions[d].name, decisions[d].choices[choice[d]]);
    trace.steps = std::move(builder.steps);
    return trace;
  };
  return sketch;
}

// The naive nest as it is: what remains when no rule's schedule replays.
SketchWithDefault NaiveSketch(const Workload& canonical) {
  Trace trace;
  trace.sketch = "naive";
  Sketch sketch;
  sketch.name = trace.sketch;
  sketch.instantiate = [trace](const Choice&) -> absl::StatusOr<Trace> { return trace; };
  return {std::move(sketch), std::move(trace), BuildNaive(canonical)};
}

// Tensors without elements and sums of nothing: there are no tiles to choose.
bool HasEmptyLoops(const Workload& workload) {
  const auto empty = [](const Var& axis) { return axis->extent == 0; };
  return std::ranges::any_of(workload.stages, [&](const Stage& stage) {
    return std::ranges::any_of(stage.axes, empty) || std::ranges::any_of(stage.reduce_axes, empty);
  });
}

// The stages that put queries into the order of a tile: they become that tile.
std::set<int> QueriesOfChains(const Anatomy& anatomy) {
  std::set<int> queries;
  for (int s = 0; s < anatomy.num_stages(); ++s) {
    const std::optional<StreamChain> chain = FindStreamChain(anatomy, s);
    if (chain) queries.insert(anatomy.ProducerOf(chain->queries->buffer.get()));
  }
  return queries;
}

// The sketches of one way to group the stages, whose default schedules replay. `refusals` gets what rules for
// chains, and the steps of theirs, say of others.
std::vector<SketchWithDefault> SketchesOf(const Workload& canonical, const Rewritten& rewritten, bool streams,
                                          const Target& target, Refusals* refusals) {
  const Anatomy whole(rewritten.workload);
  std::vector<int> cheap = CheapStages(whole, target);
  const std::set<int> queries = streams ? QueriesOfChains(whole) : std::set<int>();
  std::erase_if(cheap, [&](int s) { return queries.contains(s); });
  std::vector<std::string> inlined;
  inlined.reserve(cheap.size());
  for (int s : cheap) inlined.push_back(whole.name(s));
  const Anatomy anatomy(WithoutStages(rewritten.workload, cheap));
  const Groups groups = GroupStages(anatomy, target, streams);
  const bool has_streams =
      std::ranges::any_of(groups, [](const auto& group) { return group.second == StageClass::kStreamed; });
  if (streams && !has_streams) return {};
  const std::vector<bool> known_ahead = KnownAhead(anatomy);
  std::vector<std::vector<Part>> choices;
  for (const auto& [group, c] : groups) {
    const bool ahead = target.kind == TargetKind::kCpu && known_ahead[group.anchor];
    choices.push_back(ahead ? std::vector<Part>{AheadPart(anatomy, group, target)}
                            : MakeParts(anatomy, group, c, target, refusals));
  }
  std::vector<SketchWithDefault> sketches;
  for (const std::vector<Part>& parts : Combinations(choices)) {
    Sketch sketch = Joined(rewritten.steps, inlined, parts);
    absl::StatusOr<Trace> trace = sketch.instantiate(sketch.default_choice);
    if (!trace.ok()) continue;
    const absl::StatusOr<Schedule> schedule = Replay(canonical, target, *trace);
    if (schedule.ok()) sketches.push_back({std::move(sketch), *std::move(trace), schedule->function()});
    if (!schedule.ok()) AddRefusal(std::string(schedule.status().message()), refusals);
  }
  return sketches;
}

// All ways to stream chains of a workload, the most promising first.
std::vector<SketchWithDefault> StreamedSketches(const Workload& canonical, const Rewritten& whole,
                                                const Target& target, Refusals* refusals) {
  std::vector<SketchWithDefault> sketches;
  const auto add = [&](const Rewritten& way) {
    for (SketchWithDefault& sketch : SketchesOf(canonical, way, /*streams=*/true, target, refusals))
      sketches.push_back(std::move(sketch));
  };
  for (const Rewritten& parts : WithPartsOfChains(whole, target)) add(parts);
  add(whole);
  return sketches;
}

// The rule for wgmma, which these rewrites serve.
constexpr char kWarpSpecialized[] = "warp_specialized";
std::vector<Rewritten> WaysForWarpgroups(const Rewritten& rewritten, const Target& target) {
  std::vector<Rewritten> ways = WithJoinedGroups(rewritten, target);
  for (Rewritten& way : WithFoldedStrides(rewritten, target)) ways.push_back(std::move(way));
  for (Rewritten& way : WithRoundedOperands(rewritten, target)) ways.push_back(std::move(way));
  return ways;
}

}  // namespace

std::vector<SketchWithDefault> GenerateSketchesWithDefaults(const Workload& canonical, const Target& target) {
  if (HasEmptyLoops(canonical)) return {NaiveSketch(canonical)};
  const Rewritten rewritten = RewriteForCpu(canonical, target);
  // Chains in one pass, where there are such; and every stage for itself. On a GPU one pass is always faster
  // than the tiles' way through memory, which takes a search longer to measure than all the rest.
  const Rewritten whole = WithSumsAsRead(WithOperandStages(rewritten));
  Refusals refusals;
  std::vector<SketchWithDefault> sketches = StreamedSketches(canonical, whole, target, &refusals);
  if (target.kind == TargetKind::kCuda && !sketches.empty()) return sketches;
  const Rewritten single = WithoutSingleTerms(rewritten);
  for (SketchWithDefault& plain : SketchesOf(canonical, single, /*streams=*/false, target, &refusals))
    sketches.push_back(std::move(plain));
  for (const Rewritten& way : WaysForWarpgroups(single, target)) {
    for (SketchWithDefault& sketch : SketchesOf(canonical, way, /*streams=*/false, target, &refusals)) {
      if (absl::StrContains(sketch.sketch.name, kWarpSpecialized)) sketches.push_back(std::move(sketch));
    }
  }
  if (sketches.empty()) sketches.push_back(NaiveSketch(canonical));
  return sketches;
}

std::vector<SketchWithDefault> SketchesOfSingleStages(const Workload& canonical, const Target& target) {
  if (HasEmptyLoops(canonical)) return {};
  Refusals refusals;
  const Rewritten single = WithoutSingleTerms(RewriteForCpu(canonical, target));
  return SketchesOf(canonical, single, /*streams=*/false, target, &refusals);
}

bool IsStreamedSketch(const std::string& name) { return absl::StrContains(name, "streamed"); }

bool HasStreamedSketch(const Workload& canonical, const Target& target) {
  if (HasEmptyLoops(canonical)) return false;
  const Rewritten whole = WithSumsAsRead(WithOperandStages(RewriteForCpu(canonical, target)));
  Refusals refusals;
  const auto streams = [&](const Rewritten& way) {
    return !SketchesOf(canonical, way, /*streams=*/true, target, &refusals).empty();
  };
  if (streams(whole)) return true;
  const std::vector<Rewritten> ways = WithPartsOfChains(whole, target);
  return std::ranges::any_of(ways, streams);
}

std::vector<std::string> WhyNotStreamed(const Workload& canonical, const Target& target) {
  Refusals refusals;
  if (HasEmptyLoops(canonical)) return refusals;
  const Rewritten rewritten = RewriteForCpu(canonical, target);
  if (!StreamedSketches(canonical, WithSumsAsRead(WithOperandStages(rewritten)), target, &refusals).empty())
    return {};
  if (!refusals.empty()) return refusals;
  const Workload stages = WithAllOperandStages(rewritten).workload;
  const StageLinks links(stages);
  for (int s = 0; s < static_cast<int>(stages.stages.size()); ++s)
    AddRefusal(WhyNoStreamChain(stages, links, s), &refusals);
  return refusals;
}

std::vector<Sketch> GenerateSketches(const Workload& canonical, const Target& target) {
  std::vector<Sketch> sketches;
  for (SketchWithDefault& generated : GenerateSketchesWithDefaults(canonical, target))
    sketches.push_back(std::move(generated.sketch));
  return sketches;
}

}  // namespace mycc
