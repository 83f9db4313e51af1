// Jobs that measure given schedules alone, and end (`mycc-tune reverify`). A client lists the candidates of
// each workload, under the strategy `listed`; or it names the strategy `foreign`, and the server takes the
// log's foreign records that wait (db/foreign_table.h). Pure functions but for reading the log.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/tuning_log.h"
#include "proto/tuning.pb.h"

namespace mycc {

// A job of this strategy becomes a `listed` one when its turn comes. Its target says on which device the
// records must run, its protocol how they are timed, and `trials` how many each workload has at most, those
// that others found fastest first. A task's workload is the name of the workloads that are wanted; without
// tasks, all of them are.
inline constexpr char kForeignStrategy[] = "foreign";

bool IsListed(const v1::JobSpec& spec);   // has its candidates
bool IsForeign(const v1::JobSpec& spec);  // waits for them

// A workload's text with the function's own name, where that is a name; the log keeps texts without.
std::string WithName(const std::string& workload, const std::string& name);

// The traces of one task, each a text that parses, without those that repeat the steps of an earlier one.
// InvalidArgument names the candidate, what is wrong with it, and what was expected.
absl::StatusOr<std::vector<std::string>> ReadCandidates(const v1::TaskSpec& spec, const std::string& origin);
// Adds the candidates whose steps the task does not have yet.
void AddCandidates(const std::vector<std::string>& more, std::vector<std::string>* candidates);

// InvalidArgument when a foreign job's spec asks for what such a job does not have.
absl::Status CheckForeign(const v1::JobSpec& spec);
// The same job with the candidates that wait in the log now. NotFound when none does.
absl::StatusOr<v1::JobSpec> ListForeign(const v1::JobSpec& spec, const TuningLog& log);

// The most candidates of a job, and of one of its tasks.
inline constexpr int kMostCandidates = 10000, kMostCandidatesOfTask = 1000;

}  // namespace mycc
