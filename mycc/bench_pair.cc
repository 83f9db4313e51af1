#include "mycc/bench_pair.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/compare.h"
#include "command/colour.h"
#include "command/table.h"
#include "command/times.h"
#include "mycc/library_workload.h"
#include "mycc/stopwatch.h"
#include "proto/precision.h"

namespace mycc {
namespace {

// A comparison of the outputs that the two libraries left of one function.
struct Outputs {
  bool same_bits = true;
  bool passed = true;
  double max_abs_error = 0, max_rel_error = 0;
  std::string first_mismatch;  // "output y: element 17 is 1.5, expected 2 (within 1e-06)"
};

struct PairResult {
  std::string function, other;
  MedianInterval seconds, other_seconds, ratio;  // ratio: other over this
  size_t turns = 0;
  Outputs outputs;
};

struct Pair {
  std::string function, other;
  Workload workload;
};

absl::StatusOr<std::vector<Pair>> PairsOf(const Library& library, const Library& other,
                                          const std::vector<std::string>& functions) {
  std::vector<std::pair<std::string, std::string>> hashes;  // of the other's functions
  for (const ArtifactFunction& function : other.functions()) {
    MYCC_ASSIGN_OR_RETURN(const FunctionOrigin origin, OriginOf(other, function.name));
    hashes.emplace_back(WorkloadHash(origin.workload), function.name);
  }
  std::vector<Pair> pairs;
  for (const std::string& function : functions) {
    MYCC_ASSIGN_OR_RETURN(FunctionOrigin origin, OriginOf(library, function));
    const std::string hash = WorkloadHash(origin.workload);
    const auto match =
        std::find_if(hashes.begin(), hashes.end(), [&](const auto& h) { return h.first == hash; });
    if (match == hashes.end()) continue;
    pairs.push_back({function, match->second, std::move(origin.workload)});
    hashes.erase(match);
  }
  if (!pairs.empty()) return pairs;
  return absl::FailedPreconditionError(
      absl::StrCat("the libraries have no workload in common; expected two that were compiled of the same "
                   "workloads"));
}

// Both differ from the exact result, so that they may differ from each other by twice as much.
Outputs CompareOutputs(const Workload& workload, Arguments* arguments, Arguments* others) {
  const Tolerance one = ToleranceOf(workload), both = {2 * one.of_value, 2 * one.of_scale};
  Outputs outputs;
  for (int i = 0; i < arguments->size(); ++i) {
    if (arguments->arg(i).kind != "output") continue;
    const HostTensor& want = arguments->tensor(i);
    const HostTensor& got = others->tensor(i);
    outputs.same_bits &= std::memcmp(want.data(), got.data(), static_cast<size_t>(want.bytes())) == 0;
    const Comparison comparison =
        Compare({want.dtype(), want.data(), {}, want.num_elements()}, got.data(), both);
    outputs.max_abs_error = std::max(outputs.max_abs_error, comparison.max_abs_error);
    outputs.max_rel_error = std::max(outputs.max_rel_error, comparison.max_rel_error);
    if (!comparison.passed && outputs.passed)
      outputs.first_mismatch =
          absl::StrCat("output ", arguments->arg(i).name, ": ", comparison.first_mismatch);
    outputs.passed &= comparison.passed;
  }
  return outputs;
}

// The arguments of a function, with inputs that depend on the workload and the seed alone, after one call.
absl::StatusOr<Arguments> CalledOnce(Library* library, const std::string& function, const Workload& workload,
                                     uint64_t seed) {
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library, function));
  FillRandom(workload, seed, &arguments);
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  MYCC_RETURN_IF_ERROR(arguments.Call());
  return arguments;
}

absl::StatusOr<PairResult> BenchOne(Library* library, Library* other, const Pair& pair,
                                    const BenchOptions& options) {
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, CalledOnce(library, pair.function, pair.workload, options.seed));
  MYCC_ASSIGN_OR_RETURN(Arguments others, CalledOnce(other, pair.other, pair.workload, options.seed));
  PairResult result{pair.function, pair.other};
  result.outputs = CompareOutputs(pair.workload, &arguments, &others);
  MYCC_ASSIGN_OR_RETURN(const auto first, StopwatchFor(library, &arguments, options.cold));
  MYCC_ASSIGN_OR_RETURN(const auto second, StopwatchFor(other, &others, options.cold));
  MYCC_ASSIGN_OR_RETURN(const Turns turns,
                        TakeTurns(first.get(), second.get(), {options.repeats, options.seconds}));
  result.seconds = MedianOf(turns.first);
  result.other_seconds = MedianOf(turns.second);
  result.ratio = MedianOf(turns.ratios);
  result.turns = turns.ratios.size();
  return result;
}

std::string OutputsText(const Outputs& outputs) {
  if (outputs.same_bits) return "same bits";
  return absl::StrFormat("%s, max error %.3g", outputs.passed ? "agree" : "differ", outputs.max_abs_error);
}

std::string PairTable(const std::vector<PairResult>& results) {
  constexpr size_t kRemark = 7;
  std::vector<std::vector<std::string>> rows = {
      {"function", "first", "second", "second/first", "95 % interval", "turns", "outputs", ""}};
  for (const PairResult& result : results) {
    rows.push_back({result.function, FormatSeconds(result.seconds.median),
                    FormatSeconds(result.other_seconds.median), absl::StrFormat("%.4f", result.ratio.median),
                    absl::StrFormat("%.4f .. %.4f", result.ratio.low, result.ratio.high),
                    absl::StrCat(result.turns), OutputsText(result.outputs),
                    result.ratio.relative_width() > kWideInterval ? "wide interval" : ""});
  }
  return FormatTable(rows, {1, 2, 3, 4, 5}, [](size_t column, const std::string& cell) {
    return column == kRemark ? Painted(cell, Tone::kWarning, Stream::kOutput) : cell;
  });
}

std::string PairJson(const std::vector<PairResult>& results, const BenchOptions& options) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PairResult& result : results) {
    rows.push_back({{"name", result.function},
                    {"other_name", result.other},
                    {"seconds", result.seconds.median},
                    {"ci_low_seconds", result.seconds.low},
                    {"ci_high_seconds", result.seconds.high},
                    {"other_seconds", result.other_seconds.median},
                    {"other_ci_low_seconds", result.other_seconds.low},
                    {"other_ci_high_seconds", result.other_seconds.high},
                    {"ratio", result.ratio.median},
                    {"ci_low_ratio", result.ratio.low},
                    {"ci_high_ratio", result.ratio.high},
                    {"turns", result.turns},
                    {"same_bits", result.outputs.same_bits},
                    {"outputs_agree", result.outputs.passed},
                    {"max_abs_error", result.outputs.max_abs_error},
                    {"max_rel_error", result.outputs.max_rel_error}});
  }
  const nlohmann::ordered_json json = {{"library", options.library},
                                       {"other_library", options.other},
                                       {"protocol", options.cold ? "cold" : "warm"},
                                       {"functions", rows}};
  return json.dump() + "\n";
}

}  // namespace

absl::Status BenchPair(Library* library, Library* other, const std::vector<std::string>& functions,
                       const BenchOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, PairsOf(*library, *other, functions));
  std::vector<PairResult> results;
  for (const Pair& pair : pairs) {
    MYCC_ASSIGN_OR_RETURN(PairResult result, BenchOne(library, other, pair, options));
    results.push_back(std::move(result));
  }
  out << (options.json ? PairJson(results, options) : PairTable(results));
  for (const PairResult& result : results) {
    if (!result.outputs.passed)
      return absl::FailedPreconditionError(
          absl::StrCat(result.function, ": the libraries differ: ", result.outputs.first_mismatch));
  }
  return absl::OkStatus();
}

}  // namespace mycc
