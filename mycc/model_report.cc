#include "mycc/model_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/plural.h"
#include "command/table.h"
#include "command/times.h"

namespace mycc {
namespace {

std::string LaunchName(const ModelProgram& program, const KernelLaunch& launch) {
  return launch.kernel < 0 ? launch.call.function : program.kernels[launch.kernel].name;
}

std::string PlaceText(const ModelProgram& program, const TensorPlace& place) {
  switch (place.kind) {
    case TensorPlace::kInput: return program.inputs[place.at].name;
    case TensorPlace::kOutput:
      return program.outputs[place.at].is_extent ? "a shape" : program.outputs[place.at].name;
    case TensorPlace::kArena: return absl::StrCat("+", place.at);
    case TensorPlace::kConstant: return absl::StrCat("weights ", place.at);
  }
  return "";
}

std::string MegaBytes(int64_t bytes) { return absl::StrFormat("%.2f MB", static_cast<double>(bytes) / 1e6); }

// "91 launches of 33 kernels and the library kernels top_k, recurrent"
std::string LaunchesText(const ModelProgram& program, size_t kernels) {
  std::set<std::string> library;
  for (const KernelLaunch& launch : program.launches) {
    if (launch.kernel < 0) library.insert(launch.call.function);
  }
  std::vector<std::string> parts;
  if (kernels > 0 || library.empty()) parts.push_back(HowMany(kernels, "kernel"));
  if (!library.empty())
    parts.push_back(
        absl::StrCat("the library kernel", library.size() == 1 ? " " : "s ", absl::StrJoin(library, ", ")));
  return absl::StrCat(HowMany(program.launches.size(), "launch", "launches"), " of ",
                      absl::StrJoin(parts, " and "));
}

// The number of the tensor that a launch is there for: its last output that is no extent of another.
size_t ResultOf(const ModelProgram& program, const KernelLaunch& launch) {
  size_t result = launch.tensors.size() - 1;
  for (const size_t first = launch.tensors.size() - launch.num_outputs; result > first; --result) {
    const TensorPlace& place = launch.places[result];
    if (place.kind != TensorPlace::kOutput || !program.outputs[place.at].is_extent) break;
  }
  return result;
}

std::string MemoryText(const ModelProgram& program) {
  return absl::StrCat("tensors between kernels: ", MegaBytes(program.arena_bytes), " at the peak, ",
                      MegaBytes(program.tensor_bytes), " in all\n");
}

// The expected seconds of all launches of a kernel, where they are known.
std::optional<double> ExpectedSeconds(const KernelSpec& kernel) {
  if (!kernel.expected_seconds) return std::nullopt;
  return *kernel.expected_seconds * static_cast<double>(kernel.workload.count);
}

std::string DotQuoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
}

}  // namespace

std::string ModelTable(const ModelProgram& program, const std::vector<Found>& found,
                       const std::vector<ChosenGrouping>& groupings) {
  constexpr size_t kReasonColumn = 2;
  double known = 0;
  int64_t unknown = std::ranges::count_if(
      program.launches, [](const KernelLaunch& launch) { return launch.kernel < 0; });  // library kernels
  for (const Found& row : found) {
    const std::optional<double> seconds = ExpectedSeconds(row.kernel);
    known += seconds.value_or(0);
    unknown += seconds ? 0 : row.kernel.workload.count;
  }
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "count", "reason", "record", "expected", "share", "why"}};
  for (const Found& row : found) {
    const KernelSpec& kernel = row.kernel;
    const std::optional<double> seconds = ExpectedSeconds(kernel);
    rows.push_back({kernel.workload.name, absl::StrCat(kernel.workload.count), ReasonName(kernel.reason),
                    kernel.record ? absl::StrCat(*kernel.record) : "-",
                    seconds ? absl::StrFormat("%.4f ms", *seconds * 1e3) : "-",
                    seconds && known > 0 ? absl::StrFormat("%.1f %%", 100 * *seconds / known) : "-",
                    row.why});
  }
  std::string text;
  if (!found.empty()) {
    text = FormatTable(rows, {1, 3, 4, 5}, [](size_t column, const std::string& cell) {
      return column == kReasonColumn ? PaintedReason(cell) : cell;
    });
  }
  for (const ChosenGrouping& grouping : groupings) absl::StrAppend(&text, GroupingLine(grouping), "\n");
  if (known > 0) {
    absl::StrAppend(
        &text, "expected in all: ", FormatSeconds(known),
        unknown > 0 ? absl::StrCat(", without ", HowMany(unknown, "launch", "launches"), " of unknown time")
                    : "",
        "\n");
  }
  return absl::StrCat(text, LaunchesText(program, found.size()), "; ", MemoryText(program));
}

std::string LaunchTable(const ModelProgram& program) {
  std::vector<std::vector<std::string>> rows = {{"launch", "kernel", "result", "place", "nodes"}};
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const KernelLaunch& launch = program.launches[i];
    const size_t result = ResultOf(program, launch);
    rows.push_back({absl::StrCat(i), LaunchName(program, launch), TypeText(launch.tensors[result]),
                    PlaceText(program, launch.places[result]), absl::StrJoin(launch.origins, " + ")});
  }
  return absl::StrCat(FormatTable(rows, {0}), MemoryText(program));
}

std::string ModelDot(const ModelProgram& program) {
  std::string text = absl::StrCat("digraph ", DotQuoted(program.name), " {\n  node [shape=box];\n");
  // The launch that wrote what is at a place last.
  std::map<std::pair<int, int64_t>, std::string> writers;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const std::string id = absl::StrCat("input", i);
    absl::StrAppend(&text, "  ", id, " [shape=ellipse label=",
                    DotQuoted(absl::StrCat(program.inputs[i].name, "\n", TypeText(program.inputs[i].tensor))),
                    "];\n");
    writers[{TensorPlace::kInput, i}] = id;
  }
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const KernelLaunch& launch = program.launches[i];
    const std::string id = absl::StrCat("launch", i);
    absl::StrAppend(
        &text, "  ", id, " [label=",
        DotQuoted(absl::StrCat(LaunchName(program, launch), "\n", absl::StrJoin(launch.origins, "\n"))),
        "];\n");
    const size_t inputs = launch.tensors.size() - launch.num_outputs;
    for (size_t k = 0; k < launch.tensors.size(); ++k) {
      const TensorPlace& place = launch.places[k];
      const auto writer = writers.find({place.kind, place.at});
      if (k < inputs && writer != writers.end())
        absl::StrAppend(&text, "  ", writer->second, " -> ", id,
                        " [label=", DotQuoted(TypeText(launch.tensors[k])), "];\n");
    }
    for (size_t k = inputs; k < launch.tensors.size(); ++k)
      writers[{launch.places[k].kind, launch.places[k].at}] = id;
  }
  for (size_t i = 0; i < program.outputs.size() && !program.outputs[i].is_extent; ++i) {
    const auto writer = writers.find({TensorPlace::kOutput, static_cast<int64_t>(i)});
    absl::StrAppend(
        &text, "  output", i, " [shape=ellipse label=",
        DotQuoted(absl::StrCat(program.outputs[i].name, "\n", TypeText(program.outputs[i].tensor))), "];\n");
    if (writer != writers.end()) absl::StrAppend(&text, "  ", writer->second, " -> output", i, ";\n");
  }
  return text + "}\n";
}

}  // namespace mycc
