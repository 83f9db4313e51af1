// `mycc bench`: times the functions of a library, and prints the median with its interval.
#include <emmintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/table.h"
#include "command/times.h"
#include "mycc/commands.h"
#include "mycc/cuda_stopwatch.h"
#include "mycc/library_workload.h"
#include "mycc/samples.h"
#include "proto/precision.h"

namespace mycc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSampleSeconds = 200e-6;  // of a warm sample, at least: far above the clock's own cost
constexpr double kWarmUpSeconds = 20e-3;
constexpr int64_t kCacheLine = 64;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Takes the arguments out of the caches of every core.
void FlushArguments(Arguments* arguments) {
  for (const DLTensor* tensor : arguments->call_args()) {
    int64_t bytes = tensor->dtype.bits / 8;
    for (int i = 0; i < tensor->ndim; ++i) bytes *= tensor->shape[i];
    for (int64_t i = 0; i < bytes; i += kCacheLine) _mm_clflush(static_cast<const char*>(tensor->data) + i);
  }
  _mm_mfence();
}

// Calls one function again and again.
class Stopwatch {
 public:
  Stopwatch(Library::Entry entry, Arguments* arguments, const BenchOptions& options)
      : entry_(entry), arguments_(arguments), options_(options) {}

  // Seconds of each sample. REQUIRES: the function has been called once without an error.
  std::vector<double> Measure() {
    const double once = WarmUp();
    const int calls =
        options_.cold ? 1 : std::max(1, static_cast<int>(kSampleSeconds / std::max(once, 1e-9)));
    std::vector<double> samples;
    for (const Clock::time_point start = Clock::now(); !IsEnough(samples, Since(start));) {
      if (options_.cold) FlushArguments(arguments_);
      samples.push_back(TimeCalls(calls));
    }
    return samples;
  }

 private:
  double TimeCalls(int calls) {
    std::vector<DLTensor*>& args = arguments_->call_args();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) entry_(args.data(), static_cast<int32_t>(args.size()), nullptr);
    return Since(start) / calls;
  }

  // The way it is measured, until clocks and caches have settled. Returns the time of one call.
  double WarmUp() {
    const Clock::time_point start = Clock::now();
    double fastest = TimeCalls(1);
    while (Since(start) < kWarmUpSeconds) fastest = std::min(fastest, TimeCalls(1));
    return fastest;
  }

  bool IsEnough(const std::vector<double>& samples, double elapsed) const {
    const size_t count = samples.size();
    // Sorting all samples each time would disturb the measurement.
    const bool looks = options_.repeats > 0 || elapsed > options_.seconds || (count & (count - 1)) == 0;
    return looks && mycc::IsEnough(samples, {options_.repeats, options_.seconds}, elapsed);
  }

  const Library::Entry entry_;
  Arguments* const arguments_;
  const BenchOptions& options_;
};

struct Result {
  std::string function;
  MedianInterval seconds;
  size_t samples;
  double gflops, gbytes_per_second;
  std::optional<double> expected_seconds;
};

absl::StatusOr<Result> BenchFunction(Library* library, const std::string& function,
                                     const BenchOptions& options) {
  MYCC_ASSIGN_OR_RETURN(Arguments arguments, Arguments::Create(library, function));
  MYCC_ASSIGN_OR_RETURN(const FunctionOrigin origin, OriginOf(*library, function));
  FillRandom(origin.workload, options.seed, &arguments);
  MYCC_RETURN_IF_ERROR(arguments.Pack());
  // The first call with all its checks' words, should one refuse.
  MYCC_RETURN_IF_ERROR(arguments.Call());
  std::vector<double> samples;
  if (library->on_cuda()) {
    MYCC_ASSIGN_OR_RETURN(samples, TimeOnCuda(library, &arguments, options));
  } else {
    MYCC_ASSIGN_OR_RETURN(const Library::Entry entry, library->Symbol(function));
    samples = Stopwatch(entry, &arguments, options).Measure();
  }
  const MedianInterval interval = MedianOf(samples);
  return Result{function,
                interval,
                samples.size(),
                CountFlops(origin.workload) / interval.median / 1e9,
                CountBytes(origin.workload) / interval.median / 1e9,
                origin.expected_seconds};
}

std::string ResultsTable(const std::vector<Result>& results) {
  std::vector<std::vector<std::string>> rows = {
      {"function", "median", "95 % interval", "GFLOP/s", "GB/s", "expected", "samples", ""}};
  for (const Result& result : results) {
    const bool is_wide = result.seconds.relative_width() > kWideInterval;
    rows.push_back(
        {result.function, FormatSeconds(result.seconds.median),
         absl::StrCat(FormatSeconds(result.seconds.low), " .. ", FormatSeconds(result.seconds.high)),
         absl::StrFormat("%.2f", result.gflops), absl::StrFormat("%.2f", result.gbytes_per_second),
         result.expected_seconds ? FormatSeconds(*result.expected_seconds) : "-",
         absl::StrCat(result.samples), is_wide ? "wide interval" : ""});
  }
  return FormatTable(rows, {1, 2, 3, 4, 5, 6});
}

std::string ResultsJson(const std::vector<Result>& results, const BenchOptions& options) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Result& result : results) {
    rows.push_back({{"name", result.function},
                    {"seconds", result.seconds.median},
                    {"ci_low_seconds", result.seconds.low},
                    {"ci_high_seconds", result.seconds.high},
                    {"samples", result.samples},
                    {"gflops", result.gflops},
                    {"gbytes_per_second", result.gbytes_per_second}});
    if (result.expected_seconds) rows.back()["expected_seconds"] = *result.expected_seconds;
  }
  nlohmann::ordered_json json = {
      {"library", options.library}, {"protocol", options.cold ? "cold" : "warm"}, {"functions", rows}};
  if (options.threads > 0) json["threads"] = options.threads;
  return json.dump(2) + "\n";
}

}  // namespace

absl::Status BenchCommand(const BenchOptions& options, std::ostream& out) {
  // OpenMP reads its environment when the library brings it into this process. Threads that wander between
  // cores are no fair timing.
  if (options.threads > 0) setenv("OMP_NUM_THREADS", absl::StrCat(options.threads).c_str(), 1);
  setenv("OMP_PROC_BIND", "close", 0);
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<Library> library,
                        Library::Open(options.library, options.device));
  std::vector<std::string> functions;
  if (options.function.empty()) {
    for (const ArtifactFunction& function : library->functions()) functions.push_back(function.name);
  } else {
    absl::StatusOr<const ArtifactFunction*> function = library->Find(options.function);
    if (!function.ok()) return Misuse(absl::StrCat("--function: ", std::string(function.status().message())));
    functions.push_back((*function)->name);
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
