// `mycc-tune jobs`, `cancel` and `devices`: shows a server's jobs and devices, and ends a job.

#include <cmath>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "command/table.h"
#include "command/times.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/progress_view.h"
#include "mycc_tune/status_json.h"
#include "mycc_tune/tuning_client.h"
#include "mycc_tune/user_name.h"

namespace mycc {
namespace {

bool IsWanted(const JobOptions& options, const std::string& caller, const std::string& owner) {
  if (options.mine) return IsOwn(owner, caller);
  return options.owner.empty() || owner == options.owner;
}

// Among all jobs where only some owner's are asked for.
absl::StatusOr<std::vector<v1::JobProgress>> WantedJobs(TuningClient* client, const JobOptions& options) {
  const bool is_all = options.owner.empty() && !options.mine;
  MYCC_ASSIGN_OR_RETURN(std::vector<v1::JobProgress> jobs, client->ListJobs(is_all ? options.limit : 0));
  std::erase_if(
      jobs, [&](const v1::JobProgress& job) { return !IsWanted(options, client->caller(), job.owner()); });
  if (options.limit > 0 && jobs.size() > options.limit) jobs.resize(options.limit);
  return jobs;
}

std::string PriorityText(const v1::JobProgress& job) {
  return job.only_when_idle() ? "idle" : absl::StrCat(job.priority());
}

}  // namespace

absl::Status JobsCommand(const JobOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  MYCC_ASSIGN_OR_RETURN(const std::vector<v1::JobProgress> jobs, WantedJobs(client.get(), options));
  std::vector<std::vector<std::string>> rows = {
      {"job", "name", "owner", "priority", "state", "done", "trials", "waiting", "created (UTC)", ""}};
  for (const v1::JobProgress& job : jobs) {
    if (options.json) out << JobLine(job) << "\n";
    rows.push_back({job.job(), job.name(), job.owner().empty() ? "-" : job.owner(), PriorityText(job),
                    JobStateName(job.state()), absl::StrFormat("%.0f %%", 100 * DoneShare(job)),
                    absl::StrCat(job.trials()), job.waiters() > 0 ? absl::StrCat(job.waiters()) : "-",
                    FormatUnixMicros(job.created_unix_micros()), job.message()});
  }
  if (!options.json) out << FormatTable(rows, {3, 5, 6, 7});
  return absl::OkStatus();
}

absl::Status CancelCommand(const JobOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  MYCC_ASSIGN_OR_RETURN(const v1::JobProgress progress, client->Cancel(options.job, UserAtHost()));
  if (options.json) {
    out << ProgressJson(progress) << "\n";
  } else if (progress.state() == v1::JOB_STATE_CANCELLED) {
    out << "job " << progress.job() << " is " << progress.message() << "; its " << KeptResults(progress)
        << "\n";
  } else {
    out << "job " << progress.job() << " had ended: " << JobStateName(progress.state()) << ", "
        << progress.message() << "\n";
  }
  return absl::OkStatus();
}

absl::Status DevicesCommand(const JobOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  MYCC_ASSIGN_OR_RETURN(const std::vector<v1::DeviceStatus> devices, client->ListDevices());
  std::vector<std::vector<std::string>> rows = {{"worker", "version", "device", "state", "leases", "trials",
                                                 "builds", "refused", "baseline", "silent", "target", ""}};
  for (const v1::DeviceStatus& device : devices) {
    if (options.json) out << DeviceLine(device) << "\n";
    const std::string baseline =
        device.baseline_ratio() > 0 ? absl::StrFormat("%.2fx", device.baseline_ratio()) : "-";
    const bool builds = device.role() == v1::WORKER_ROLE_BUILD;
    std::vector<std::string> notes;
    for (const std::string& note : {device.reason(), device.trouble()})
      if (!note.empty()) notes.push_back(note);
    if (!device.unconfined().empty())
      notes.push_back(absl::StrCat("candidates are not confined in: ", device.unconfined()));
    rows.push_back({device.worker(), device.version().empty() ? "-" : device.version(), device.device(),
                    device.state(), absl::StrCat(device.leases()),
                    builds ? "-" : absl::StrCat(device.trials()),
                    builds ? absl::StrCat(device.builds()) : "-", absl::StrCat(device.refused()), baseline,
                    absl::StrFormat("%.0f s", device.silent_seconds()),
                    builds ? absl::StrCat("builds for ", device.target()) : device.target(),
                    absl::StrJoin(notes, "; ")});
  }
  if (options.json) return absl::OkStatus();
  out << (devices.empty() ? "no worker is registered\n" : FormatTable(rows, {4, 5, 6, 7, 8, 9}));
  return absl::OkStatus();
}

}  // namespace mycc
