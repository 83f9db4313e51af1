#include "mycc/bench_profile.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "command/table.h"
#include "command/times.h"

namespace mycc {
namespace {

constexpr size_t kFewestCalls = 5;

double MedianSeconds(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

absl::StatusOr<std::vector<KernelTime>> ProfileModel(Library* library, Arguments* arguments, double seconds) {
  const nlohmann::json json = nlohmann::json::parse(library->json(), nullptr, /*allow_exceptions=*/false);
  const nlohmann::json launches = json.value("launches", nlohmann::json::array());
  std::vector<std::vector<double>> samples(launches.size());
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (size_t call = 0; call < kFewestCalls || Clock::now() < end; ++call) {
    MYCC_RETURN_IF_ERROR(arguments->Call());
    MYCC_ASSIGN_OR_RETURN(const std::vector<double> times, library->Profile());
    if (times.size() != samples.size())
      return absl::FailedPreconditionError("the library's JSON tells of another number of launches");
    for (size_t i = 0; i < times.size(); ++i) samples[i].push_back(times[i]);
  }
  std::map<std::string, KernelTime> kernels;
  for (size_t i = 0; i < samples.size(); ++i) {
    KernelTime& kernel = kernels[launches[i].value("kernel", "")];
    ++kernel.launches;
    kernel.seconds += MedianSeconds(samples[i]);
  }
  std::vector<KernelTime> times;
  for (auto& [name, kernel] : kernels) {
    kernel.kernel = name;
    times.push_back(kernel);
  }
  std::ranges::sort(times, [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return times;
}

std::string ProfileTable(const std::vector<KernelTime>& times) {
  double all = 0;
  for (const KernelTime& time : times) all += time.seconds;
  std::vector<std::vector<std::string>> rows = {{"kernel", "launches", "time", "share"}};
  for (const KernelTime& time : times) {
    rows.push_back({time.kernel, absl::StrCat(time.launches), FormatSeconds(time.seconds),
                    absl::StrFormat("%.1f %%", all > 0 ? 100 * time.seconds / all : 0)});
  }
  rows.push_back({"all", "", FormatSeconds(all), ""});
  return FormatTable(rows, {1, 2, 3});
}

}  // namespace mycc
