#include "mycc_tune/reported_job.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/plural.h"
#include "base/status.h"
#include "command/times.h"
#include "db/job_store.h"
#include "db/log_views.h"
#include "proto/job_state.pb.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr size_t kMostNamed = 8;
constexpr int64_t kMostReadJobs = 1000;

// "j4d3f... (layers, 64 results, 2026-01-31 12:00:00)"
std::string NamedJob(const JobStore& store, const MeasuredJob& job) {
  const absl::StatusOr<Job> stored = store.GetJob(job.id);
  v1::StoredJob spec;
  std::vector<std::string> facts;
  if (stored.ok() && spec.ParseFromString(stored->spec) && !spec.spec().name().empty())
    facts.push_back(Printable(spec.spec().name()));
  facts.push_back(HowMany(job.records, "result"));
  facts.push_back(FormatUnixMicros(job.created_unix_micros));
  return absl::StrCat(job.id, " (", absl::StrJoin(facts, ", "), ")");
}

std::string NamedJobs(const JobStore& store, const std::vector<MeasuredJob>& jobs) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(jobs.size(), kMostNamed); ++i) names.push_back(NamedJob(store, jobs[i]));
  if (jobs.size() > kMostNamed) names.push_back(absl::StrCat(jobs.size() - kMostNamed, " earlier"));
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::StatusOr<ReportedJob> ChooseReportedJob(TuningLog* log, const std::string& id) {
  MYCC_ASSIGN_OR_RETURN(std::vector<MeasuredJob> jobs, ReadMeasuredJobs(*log, kMostReadJobs));
  const JobStore store(log);
  if (id.empty() && jobs.empty()) {
    return absl::NotFoundError(
        absl::StrCat(log->path(), ": no job has results; expected those that `mycc-tune tune` leaves"));
  }
  if (!id.empty() && !store.GetJob(id).ok()) {
    return absl::NotFoundError(absl::StrCat(
        log->path(), ": no job `", Printable(id), "`; expected ",
        jobs.empty() ? "one, and the log has none with results" : "one of " + NamedJobs(store, jobs)));
  }
  ReportedJob reported{id.empty() ? jobs[0].id : id, ""};
  std::erase_if(jobs, [&reported](const MeasuredJob& job) { return job.id == reported.id; });
  reported.others = NamedJobs(store, jobs);
  return reported;
}

}  // namespace mycc
