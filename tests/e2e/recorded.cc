#include "tests/e2e/recorded.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "mycc_tune/program.h"
#include "process/child.h"
#include "proto/timer_version.h"
#include "server/search_child.h"
#include "worker/child_main.h"
#include "worker/runner.h"

namespace mycc {
namespace {

constexpr double kBaselineSeconds = 1e-3;
constexpr double kBriefly = 1e-3;  // of the real timing, which is not kept

int runs = -1;  // the file of kRecordedRuns

// The name of a library ends in the digest of its code.
std::string DigestOf(const std::string& library) {
  const std::string name = std::filesystem::path(library).stem().string();
  return name.substr(name.rfind('-') + 1);
}

void NoteRun(const v1::RunRequest& run) {
  if (runs < 0) return;
  const std::string line =
      absl::StrCat(run.rivals().empty() ? DigestOf(run.library()) : kRoundRun, " ", SystemUnixMicros(), "\n");
  // One write to a file that is opened to be appended to is one line, whoever else writes.
  if (write(runs, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(1);
}

void Replace(const v1::RunRequest& run, const std::string& library, v1::RunnerResponse* response) {
  if (response->status() != v1::MEASURE_STATUS_OK) return;
  const double seconds = RecordedSeconds(DigestOf(library));
  v1::Timing& timing = *response->mutable_timing();
  timing.Clear();
  timing.set_protocol(run.protocol());
  timing.set_timer_version(kTimerVersion);
  for (int sample = 0; sample < 3; ++sample) timing.add_samples_seconds(seconds);
  timing.set_seconds(seconds);
  timing.set_ci_low_seconds(seconds);
  timing.set_ci_high_seconds(seconds);
  timing.set_baseline_seconds(kBaselineSeconds);
  timing.set_relative_to_baseline(seconds / kBaselineSeconds);
}

v1::RunnerResponse HandleRecorded(const v1::RunnerRequest& request) {
  if (!request.has_run()) return HandleRunnerRequest(request);
  NoteRun(request.run());
  v1::RunnerRequest brief = request;
  v1::RunRequest& run = *brief.mutable_run();
  run.set_budget_seconds(kBriefly);
  run.set_usual_baseline_seconds(1);  // no baseline is slower: nothing is timed again
  v1::RunnerResponse response = HandleRunnerRequest(brief);
  Replace(run, run.library(), &response);
  for (int i = 0; i < response.rivals_size(); ++i) Replace(run, run.rivals(i), response.mutable_rivals(i));
  return response;
}

}  // namespace

double RecordedSeconds(const std::string& code_digest) {
  constexpr double kDigits = 0x1p32;  // of the first eight hexadecimal ones
  const double share =
      static_cast<double>(std::strtoul(code_digest.substr(0, 8).c_str(), nullptr, 16)) / kDigits;
  return 1e-3 * (1 + 9 * share);
}

}  // namespace mycc

int main(int argc, char** argv) {
  const char* const file = std::getenv(mycc::kRecordedRuns);
  if (file != nullptr && argc > 1 && std::string(argv[1]) == mycc::kRunCommand)
    mycc::runs = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (const std::optional<int> child = mycc::RunWorkerChild(argc, argv, &mycc::HandleRecorded)) return *child;
  if (const std::optional<int> search = mycc::RunSearchChild(argc, argv)) return *search;
  return mycc::RunProgram(argc, argv);
}
