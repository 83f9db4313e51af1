// `mycc bench`: times the functions of a library, and prints the median with its interval.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/times.h"
#include "mycc/bench_pair.h"
#include "mycc/bench_profile.h"
#include "mycc/bench_report.h"
#include "mycc/commands.h"
#include "mycc/library_workload.h"
#include "mycc/samples.h"
#include "mycc/stopwatch.h"

namespace mycc {
namespace {

using Json = nlohmann::ordered_json;

struct Result {
  std::string function;
  MedianInterval seconds;
  double gflops, gbytes_per_second;
  std::optional<double> expected_seconds;
  std::vector<KernelTime> kernels;  // of a model that was compiled with a profile
};

absl::StatusOr<Result> BenchFunction(Library* library, const std::string& function,
                                     const BenchOptions& options) {
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library, function));
  MYCC_ASSIGN_OR_RETURN(const FunctionOrigin origin, OriginOf(*library, function));
  FillRandom(origin.workload, options.seed, &arguments);
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  // The first call with all its checks' words, should one refuse.
  MYCC_RETURN_IF_ERROR(arguments.Call());
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Stopwatch> stopwatch,
                        StopwatchFor(library, &arguments, options.cold));
  MYCC_ASSIGN_OR_RETURN(const std::vector<double> samples,
                        TakeSamples(stopwatch.get(), {options.repeats, options.seconds}));
  const MedianInterval interval = MedianOf(samples);
  std::vector<KernelTime> kernels;
  if (library->Profile().ok()) {
    MYCC_ASSIGN_OR_RETURN(kernels, ProfileModel(library, &arguments, options.seconds));
  }
  return Result{function,
                interval,
                origin.flops / interval.median / 1e9,
                CountBytes(origin.workload) / interval.median / 1e9,
                origin.expected_seconds,
                std::move(kernels)};
}

std::string ResultsTable(const std::vector<Result>& results) {
  std::vector<std::vector<std::string>> rows = {
      {"function", "median", "95 % interval", "GFLOP/s", "GB/s", "expected", "samples", ""}};
  for (const Result& result : results) {
    const MedianInterval& seconds = result.seconds;
    rows.push_back({result.function, FormatSeconds(seconds.median),
                    seconds.is_confident()
                        ? absl::StrCat(FormatSeconds(seconds.low), " .. ", FormatSeconds(seconds.high))
                        : "-",
                    absl::StrFormat("%.2f", result.gflops), absl::StrFormat("%.2f", result.gbytes_per_second),
                    result.expected_seconds ? FormatSeconds(*result.expected_seconds) : "-",
                    absl::StrCat(seconds.samples), RemarkOn(seconds)});
  }
  std::string text = BenchTable(rows, {1, 2, 3, 4, 5, 6});
  for (const Result& result : results) {
    if (!result.kernels.empty()) absl::StrAppend(&text, "\n", ProfileTable(result.kernels));
  }
  return text;
}

std::string ResultsJson(const std::vector<Result>& results, const BenchOptions& options) {
  Json rows = Json::array();
  for (const Result& result : results) {
    Json row = {{"name", result.function}};
    AddMedian(result.seconds, "seconds", &row);
    row["samples"] = result.seconds.samples;
    row["gflops"] = result.gflops;
    row["gbytes_per_second"] = result.gbytes_per_second;
    if (result.expected_seconds) row["expected_seconds"] = *result.expected_seconds;
    for (const KernelTime& kernel : result.kernels) {
      row["kernels"].push_back(
          {{"name", kernel.kernel}, {"launches", kernel.launches}, {"seconds", kernel.seconds}});
    }
    rows.push_back(std::move(row));
  }
  Json json = BenchJson(options);
  json["functions"] = std::move(rows);
  return json.dump() + "\n";
}

// The functions that are timed: the one that is named, or all.
absl::StatusOr<std::vector<std::string>> ChosenFunctions(const Library& library, const std::string& name) {
  if (!name.empty()) {
    const absl::StatusOr<const ArtifactFunction*> function = library.Find(name);
    if (!function.ok()) return Misuse(absl::StrCat("--function: ", std::string(function.status().message())));
    return std::vector<std::string>{(*function)->name};
  }
  std::vector<std::string> names;
  for (const ArtifactFunction& function : library.functions()) names.push_back(function.name);
  return names;
}

}  // namespace

absl::Status BenchCommand(const BenchOptions& options, std::ostream& out) {
  // OpenMP reads its environment when the library brings it into this process. Threads that wander between
  // cores are no fair timing.
  if (options.threads > 0) setenv("OMP_NUM_THREADS", absl::StrCat(options.threads).c_str(), 1);
  setenv("OMP_PROC_BIND", "close", 0);
  MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Library> library, Library::Open(options.library, options.device));
  MYCC_ASSIGN_OR_RETURN(const std::vector<std::string> functions,
                        ChosenFunctions(*library, options.function));
  if (!options.other.empty()) {
    MYCC_ASSIGN_OR_RETURN(std::unique_ptr<Library> other, Library::Open(options.other, options.device));
    return BenchPair(std::move(library), std::move(other), functions, options, out);
  }
  std::vector<Result> results;
  for (const std::string& function : functions) {
    MYCC_ASSIGN_OR_RETURN(Result result, BenchFunction(library.get(), function, options));
    results.push_back(std::move(result));
  }
  out << (options.json ? ResultsJson(results, options) : ResultsTable(results));
  return absl::OkStatus();
}

}  // namespace mycc
