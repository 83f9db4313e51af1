// `mycc-tune set` and `quota`: the terms of a job, and what its owner may use.
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/table.h"
#include "command/times.h"
#include "db/message_json.h"
#include "mycc_tune/commands.h"
#include "mycc_tune/deadline.h"
#include "mycc_tune/progress_view.h"
#include "mycc_tune/tuning_client.h"
#include "mycc_tune/user_name.h"

namespace mycc {
namespace {

std::string DeadlineText(const v1::JobProgress& job) {
  return job.deadline_unix_micros() == 0
             ? "without a deadline"
             : absl::StrCat("until ", FormatUnixMicros(job.deadline_unix_micros()), " UTC");
}

// "3 of 4"; "3" where there is no limit.
template <typename Number>
std::string OfLimit(const std::string& used, bool has_limit, Number limit) {
  return has_limit ? absl::StrCat(used, " of ", limit) : used;
}

}  // namespace

absl::Status SetCommand(const SetOptions& options, std::ostream& out) {
  if (!options.priority && options.deadline.empty())
    return Misuse("nothing is to be set; expected --priority or --deadline");
  v1::UpdateJobRequest request;
  request.set_job(options.job);
  if (options.priority) request.set_priority(*options.priority);
  if (options.deadline == "none") {
    request.set_deadline_unix_micros(0);
  } else if (!options.deadline.empty()) {
    MYCC_ASSIGN_OR_RETURN(const int64_t deadline,
                          ParseDeadline(options.deadline, absl::Now(), absl::LocalTimeZone()));
    request.set_deadline_unix_micros(deadline);
  }
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  MYCC_ASSIGN_OR_RETURN(const v1::JobProgress job, client->Update(request));
  if (options.json) {
    out << ProgressJson(job) << "\n";
  } else {
    out << "job " << job.job() << " runs at priority " << job.priority() << ", " << DeadlineText(job) << "\n";
  }
  return absl::OkStatus();
}

absl::Status QuotaCommand(const JobOptions& options, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningClient> client, TuningClient::Connect(options.server));
  MYCC_ASSIGN_OR_RETURN(const std::vector<v1::OwnerStatus> owners, client->ListOwners());
  std::vector<std::vector<std::string>> rows = {
      {"owner", "running", "waiting", "highest priority", "device seconds (24 h)", "trials (24 h)", ""}};
  for (const v1::OwnerStatus& owner : owners) {
    const bool is_mine = IsOwn(owner.owner(), client->caller());
    if (options.mine ? !is_mine : !options.owner.empty() && owner.owner() != options.owner) continue;
    if (options.json) out << MessageToJson(owner).dump() << "\n";
    const v1::Quota& quota = owner.quota();
    rows.push_back(
        {owner.owner().empty() ? "-" : owner.owner(),
         OfLimit(absl::StrCat(owner.running_jobs()), quota.has_running_jobs(), quota.running_jobs()),
         OfLimit(absl::StrCat(owner.waiting_jobs()), quota.has_waiting_jobs(), quota.waiting_jobs()),
         quota.has_highest_priority() ? absl::StrCat(quota.highest_priority()) : "-",
         OfLimit(absl::StrFormat("%.0f", owner.device_seconds()), quota.has_device_seconds_per_day(),
                 quota.device_seconds_per_day()),
         OfLimit(absl::StrCat(owner.trials()), quota.has_trials_per_day(), quota.trials_per_day()),
         owner.held()});
  }
  if (options.json) return absl::OkStatus();
  if (rows.size() > 1) {
    out << FormatTable(rows, {1, 2, 3, 4, 5});
  } else if (options.mine || !options.owner.empty()) {
    out << (options.mine ? "you have" : options.owner + " has")
        << " no jobs, and used nothing in the last 24 hours\n";
  } else {
    out << "no owner has jobs, or used the farm in the last 24 hours\n";
  }
  return absl::OkStatus();
}

}  // namespace mycc
