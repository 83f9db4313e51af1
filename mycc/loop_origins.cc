#include "mycc/loop_origins.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "codegen/ir/stmt.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

constexpr size_t kMaxColumn = 70;  // of the remarks behind the loops

using Origins = std::map<std::string, std::string>;  // by loop

const Stage* StageOf(const Workload& workload, const Buffer& tensor) {
  for (const Stage& stage : workload.stages) {
    if (stage.output == tensor) return &stage;
  }
  return nullptr;
}

std::string Names(const std::vector<Var>& axes) {
  return absl::StrJoin(axes, ",",
                       [](std::string* out, const Var& axis) { absl::StrAppend(out, axis->name); });
}

// "c[i,j; k]"
std::string Signature(const std::string& name, const Stage& stage) {
  if (stage.axes.empty() && stage.reduce_axes.empty()) return name;
  return absl::StrCat(name, "[", Names(stage.axes), stage.reduce_axes.empty() ? "" : "; ",
                      Names(stage.reduce_axes), "]");
}

// The loops of the naive nest: axes of the workload's stages.
Origins AxisOrigins(const Workload& workload, const Workload& canonical,
                    const std::vector<Buffer>& originals) {
  Origins origins;
  for (size_t i = 0; i < canonical.stages.size(); ++i) {
    const Stage& stage = canonical.stages[i];
    const Stage& original = *StageOf(workload, originals[canonical.inputs.size() + i]);
    const auto add = [&](const std::vector<Var>& axes, const std::vector<Var>& names) {
      for (size_t d = 0; d < axes.size(); ++d)
        origins[absl::StrCat(stage.output->name, ".", axes[d]->name)] =
            absl::StrCat(names[d]->name, " of ", original.output->name);
    };
    add(stage.axes, original.axes);
    add(stage.reduce_axes, original.reduce_axes);
  }
  return origins;
}

std::set<std::string> LoopsOf(const Schedule& schedule) {
  std::set<std::string> loops;
  VisitStmts(schedule.function().body, [&](const Stmt& stmt) {
    if (const For* loop = DynAs<For>(stmt)) loops.insert(loop->var->name);
    return true;
  });
  return loops;
}

// A loop that appears with a step was made by it; a step whose first word is a loop marked that loop.
void AddStep(const Step& step, const std::set<std::string>& before, const std::set<std::string>& after,
             Origins* origins) {
  for (const std::string& loop : after) {
    if (before.count(loop) == 0) (*origins)[loop] = PrintStep(step);
  }
  const std::string* first = step.args.empty() ? nullptr : std::get_if<std::string>(&step.args[0].value);
  if (first != nullptr && before.count(*first) > 0 && after.count(*first) > 0)
    absl::StrAppend(&(*origins)[*first], ", ", PrintStep(step));
}

// The loop that a line of pseudocode opens, or nothing: "  for t2.a0 in 64" begins with a word, a loop and
// "in".
std::string LoopOn(const std::string& line, const Origins& origins) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  return words.size() > 2 && words[2] == "in" && origins.count(words[1]) > 0 ? words[1] : "";
}

std::string Annotate(const std::string& nest, const Origins& origins) {
  const std::vector<std::string> lines = absl::StrSplit(nest, '\n', absl::SkipEmpty());
  size_t column = 0;
  for (const std::string& line : lines) {
    if (!LoopOn(line, origins).empty()) column = std::max(column, std::min(line.size(), kMaxColumn));
  }
  std::string text;
  for (const std::string& line : lines) {
    absl::StrAppend(&text, line);
    if (const std::string loop = LoopOn(line, origins); !loop.empty())
      absl::StrAppend(&text, std::string(column - std::min(line.size(), column), ' '), "  # ",
                      origins.at(loop));
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

std::string NamesOfTensors(const Workload& workload) {
  const Workload canonical = Canonicalize(workload);
  const std::vector<Buffer> originals = OriginalTensors(workload);
  std::vector<std::string> words;
  for (size_t i = 0; i < canonical.inputs.size(); ++i)
    words.push_back(absl::StrCat(canonical.inputs[i].tensor->name, " is ", originals[i]->name));
  for (size_t i = 0; i < canonical.stages.size(); ++i) {
    const Buffer& original = originals[canonical.inputs.size() + i];
    words.push_back(absl::StrCat(Signature(canonical.stages[i].output->name, canonical.stages[i]), " is ",
                                 Signature(original->name, *StageOf(workload, original))));
  }
  return absl::StrJoin(words, ", ");
}

absl::StatusOr<std::string> ExplainNest(const Workload& workload, const Target& target, const Trace& trace) {
  const Workload canonical = Canonicalize(workload);
  const std::vector<Buffer> originals = OriginalTensors(workload);
  Origins origins = AxisOrigins(workload, canonical, originals);
  Schedule schedule = Schedule::Create(canonical, target);
  std::set<std::string> loops = LoopsOf(schedule);
  for (const Step& step : trace.steps) {
    MYCC_RETURN_IF_ERROR(schedule.Apply(step));
    std::set<std::string> after = LoopsOf(schedule);
    AddStep(step, loops, after, &origins);
    loops = std::move(after);
  }
  return absl::StrCat("# ", NamesOfTensors(workload), "\n",
                      Annotate(PrintFunction(schedule.function()), origins));
}

}  // namespace mycc
