#include "mycc/bench_pair.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/workload/compare.h"
#include "codegen/workload/reference.h"
#include "command/times.h"
#include "mycc/bench_report.h"
#include "mycc/library_workload.h"
#include "mycc/placed_turns.h"

namespace mycc {
namespace {

using Json = nlohmann::ordered_json;

// A comparison of the outputs that the two libraries left of one function.
struct Outputs {
  bool same_bits = true;
  bool passed = true;
  double max_abs_error = 0, max_rel_error = 0;
  std::string first_mismatch;  // "output y: element 17 is 1.5, expected 2 (within 1e-06)"
};

struct PairResult {
  std::string function, other;
  PlacedTimes times;  // the first is this one
  Outputs outputs;
};

struct Pair {
  std::string function, other;
  FunctionOrigin origin;
};

// The functions of two libraries, and those that have no partner in the other one.
struct Pairing {
  std::vector<Pair> pairs;
  std::vector<std::string> unmatched, other_unmatched;
};

absl::StatusOr<Pairing> PairUp(const Library& library, const Library& other,
                               const std::vector<std::string>& functions) {
  std::vector<std::pair<std::string, std::string>> others;  // identities and names
  for (const ArtifactFunction& function : other.functions()) {
    MYCC_ASSIGN_OR_RETURN(const FunctionOrigin origin, OriginOf(other, function.name));
    others.emplace_back(origin.identity, function.name);
  }
  Pairing pairing;
  for (const std::string& function : functions) {
    MYCC_ASSIGN_OR_RETURN(FunctionOrigin origin, OriginOf(library, function));
    const auto match =
        std::ranges::find_if(others, [&](const auto& o) { return o.first == origin.identity; });
    if (match == others.end()) {
      pairing.unmatched.push_back(function);
      continue;
    }
    pairing.pairs.push_back({function, match->second, std::move(origin)});
    others.erase(match);
  }
  for (const auto& [identity, name] : others) pairing.other_unmatched.push_back(name);
  return pairing;
}

absl::Status NothingInCommon(const Pairing& pairing, const BenchOptions& options) {
  if (!options.function.empty())
    return absl::FailedPreconditionError(
        absl::StrCat("--function: ", options.other, " has no function with the workload of ",
                     pairing.unmatched.front(), "; expected one of both libraries"));
  return absl::FailedPreconditionError(
      "the libraries have no workload in common; expected two that were compiled of the same workloads");
}

// Both differ from the exact result, so that they may differ from each other by twice as much.
Outputs CompareOutputs(const Tolerance& one, Arguments* arguments, Arguments* others) {
  const Tolerance both = {2 * one.of_value, 2 * one.of_scale};
  Outputs outputs;
  for (int i = 0; i < arguments->size(); ++i) {
    if (arguments->arg(i).kind != "output") continue;
    const HostTensor& want = arguments->tensor(i);
    const HostTensor& got = others->tensor(i);
    if (want.shape() != got.shape() || want.is_text()) {
      if (want.shape() == got.shape() && want.Texts() == got.Texts()) continue;
      outputs.same_bits = outputs.passed = false;
      outputs.first_mismatch =
          absl::StrCat("output ", arguments->arg(i).name,
                       want.is_text() ? ": its texts or their number differ" : ": its shape differs");
      continue;
    }
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

// The arguments of a function after one call.
absl::StatusOr<Arguments> CalledOnce(Library* library, const std::string& function,
                                     const std::vector<NDArray>& inputs) {
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library, function));
  Fill(inputs, &arguments);
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  MYCC_RETURN_IF_ERROR(arguments.Call());
  return arguments;
}

absl::StatusOr<Outputs> CompareOne(const Pair& pair, const std::vector<NDArray>& inputs,
                                   const BenchOptions& options) {
  MYCC_ASSIGN_OR_RETURN(const auto library, Library::Open(options.library, options.device));
  MYCC_ASSIGN_OR_RETURN(const auto other, Library::Open(options.other, options.device));
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, CalledOnce(library.get(), pair.function, inputs));
  MYCC_ASSIGN_OR_RETURN(Arguments others, CalledOnce(other.get(), pair.other, inputs));
  return CompareOutputs(pair.origin.tolerance, &arguments, &others);
}

// The inputs depend on the workload and the seed alone.
absl::StatusOr<PairResult> BenchOne(const Pair& pair, const BenchOptions& options) {
  const std::vector<NDArray> inputs = RandomInputs(pair.origin.workload, options.seed);
  PairResult result{pair.function, pair.other};
  MYCC_ASSIGN_OR_RETURN(result.outputs, CompareOne(pair, inputs, options));
  MYCC_ASSIGN_OR_RETURN(result.times, TimeAtPlacements({options.library, pair.function},
                                                       {options.other, pair.other}, inputs, options));
  return result;
}

std::string OutputsText(const Outputs& outputs) {
  if (outputs.same_bits) return "same bits";
  return absl::StrFormat("%s, max error %.3g", outputs.passed ? "agree" : "differ", outputs.max_abs_error);
}

std::string PairTable(const std::vector<PairResult>& results) {
  std::vector<std::vector<std::string>> rows = {
      {"function", "first", "second", "second/first", "95 % interval", "placements", "turns", "outputs", ""}};
  for (const PairResult& result : results) {
    const auto& [first, second, ratio, turns] = result.times;
    rows.push_back({result.function, FormatSeconds(first.median), FormatSeconds(second.median),
                    absl::StrFormat("%.4f", ratio.median),
                    ratio.is_confident() ? absl::StrFormat("%.4f .. %.4f", ratio.low, ratio.high) : "-",
                    absl::StrCat(ratio.samples), absl::StrCat(turns), OutputsText(result.outputs),
                    RemarkOn(ratio, "placement")});
  }
  return BenchTable(rows, {1, 2, 3, 4, 5, 6});
}

std::string UnmatchedText(const std::string& library, const std::vector<std::string>& functions) {
  if (functions.empty()) return "";
  return absl::StrCat("only in ", library, ": ", absl::StrJoin(functions, ", "), "\n");
}

Json PairJson(const PairResult& result) {
  Json row = {{"name", result.function}, {"other_name", result.other}};
  AddMedian(result.times.first, "seconds", &row);
  AddMedian(result.times.second, "seconds", &row, "other_");
  AddMedian(result.times.ratio, "ratio", &row);
  row["placements"] = result.times.ratio.samples;
  row["turns"] = result.times.turns;
  row["same_bits"] = result.outputs.same_bits;
  row["outputs_agree"] = result.outputs.passed;
  row["max_abs_error"] = result.outputs.max_abs_error;
  row["max_rel_error"] = result.outputs.max_rel_error;
  return row;
}

std::string ReportText(const std::vector<PairResult>& results, const Pairing& pairing,
                       const BenchOptions& options) {
  return absl::StrCat(PairTable(results), UnmatchedText(options.library, pairing.unmatched),
                      UnmatchedText(options.other, pairing.other_unmatched));
}

std::string ReportJson(const std::vector<PairResult>& results, const Pairing& pairing,
                       const BenchOptions& options) {
  Json json = BenchJson(options);
  json["functions"] = Json::array();
  for (const PairResult& result : results) json["functions"].push_back(PairJson(result));
  json["unmatched"] = pairing.unmatched;
  json["other_unmatched"] = pairing.other_unmatched;
  return json.dump() + "\n";
}

}  // namespace

absl::Status BenchPair(std::unique_ptr<Library> library, std::unique_ptr<Library> other,
                       const std::vector<std::string>& functions, const BenchOptions& options,
                       std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(Pairing pairing, PairUp(*library, *other, functions));
  if (pairing.pairs.empty()) return NothingInCommon(pairing, options);
  if (!options.function.empty()) pairing.other_unmatched.clear();  // nobody asked for them
  if (!library->on_cuda()) {
    library.reset();
    other.reset();
  }
  std::vector<PairResult> results;
  for (const Pair& pair : pairing.pairs) {
    MYCC_ASSIGN_OR_RETURN(PairResult result, BenchOne(pair, options));
    results.push_back(std::move(result));
  }
  out << (options.json ? ReportJson(results, pairing, options) : ReportText(results, pairing, options));
  for (const PairResult& result : results) {
    if (!result.outputs.passed)
      return absl::FailedPreconditionError(
          absl::StrCat(result.function, ": the libraries differ: ", result.outputs.first_mismatch));
  }
  return absl::OkStatus();
}

}  // namespace mycc
