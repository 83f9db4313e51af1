// `mycc-tune log verify`: measures the best record of each key again.
#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "command/times.h"
#include "db/tuning_log.h"
#include "mycc_tune/left_out.h"
#include "mycc_tune/log_commands.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

// The number of consecutive crashes, without a kernel that ran, after which verification ends.
constexpr size_t kMostCrashes = 3;
// `mycc compile` tries no more records before it takes none to replay.
constexpr size_t kMostPassedOver = 64;

// A key, and the protocol under which its records rank.
using Ranking = std::tuple<std::string, std::string, v1::TimingProtocol>;

// The rankings of the filter's records, in the order in which they came into the log.
absl::StatusOr<std::vector<Ranking>> RankingsOf(const TuningLog& log, const RecordFilter& filter) {
  std::set<Ranking> known;
  std::vector<Ranking> rankings;
  RecordFilter ok = filter;
  ok.statuses = {v1::MEASURE_STATUS_OK};
  MYCC_RETURN_IF_ERROR(log.ForEach(ok, [&](const StoredRecord& stored) {
    const v1::Record& record = stored.record;
    const Ranking ranking{record.workload_hash(), record.target(), record.result().timing().protocol()};
    if (known.insert(ranking).second) rankings.push_back(ranking);
    return absl::OkStatus();
  }));
  return rankings;
}

// "ok, 3.861 us (was 4.037 us), the same code" or "wrong_result: output y: element 3 is 1, expected 2".
std::string Comparison(const v1::MeasureResult& before, const v1::MeasureResult& now) {
  const std::string status = StatusName(now.status());
  if (!now.error().empty()) return absl::StrCat(status, ": ", now.error());
  if (now.status() != v1::MEASURE_STATUS_OK) return status;
  return absl::StrCat(status, ", ", FormatSeconds(now.timing().seconds()), " (was ",
                      FormatSeconds(before.timing().seconds()), "), ",
                      now.code_digest() == before.code_digest() ? "the same code" : "other code than before");
}

// Keeps a record's new result, beside the old one; returns its id.
absl::StatusOr<int64_t> KeepResult(const v1::Record& old, v1::MeasureResult result, TuningLog* log) {
  v1::Record record = old;
  record.set_trial(RemeasuredTrialName(old.trial(), log->now()));
  record.set_created_unix_micros(log->now());
  record.set_recorded_unix_micros(0);
  record.set_attempt(1);
  // A time of this moment does not compare with those of a final round, whose order stands for the same code.
  const v1::Timing& before = old.result().timing();
  if (before.rank_seconds() > 0 && result.status() == v1::MEASURE_STATUS_OK) {
    const bool same_code = result.code_digest() == old.result().code_digest();
    v1::Timing& now = *result.mutable_timing();
    now.set_rank_seconds(same_code ? before.rank_seconds() : now.seconds());
  }
  *record.mutable_result() = std::move(result);
  MYCC_ASSIGN_OR_RETURN(const std::vector<AppendedRecord> appended, log->Append({record}));
  return appended[0].id;
}

enum class Verdict { kConfirmed, kNotConfirmed, kForAnotherMachine };

// Measures rankings again. Where this machine is broken every kernel crashes, so a crash speaks against its
// record only once a kernel of the same target has run here: until then it is held back.
class Verifier {
 public:
  Verifier(const Remeasure& remeasure, TuningLog* log, std::ostream& out)
      : remeasure_(remeasure), log_(log), out_(out) {}

  // Measures the best record of a ranking again, and whichever is the best then, until a result of now is:
  // what was second may be stale as well.
  absl::StatusOr<Verdict> Verify(const Ranking& ranking) {
    const auto& [workload_hash, target, protocol] = ranking;
    const LogKey key{workload_hash, target};
    std::set<int64_t> results, measured;  // records that were kept, and records that they are results of
    std::map<std::string, std::string> confirmed;  // code digests by trace
    std::set<int64_t> passed_over;                 // these stand in the ranking where they stood
    size_t crashes = 0;                            // of this ranking, held back
    while (crashes < kMostCrashes && passed_over.size() < kMostPassedOver) {
      MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> ranked,
                            log_->TopK(key, protocol, static_cast<int>(passed_over.size()) + 1));
      const auto next = std::ranges::find_if(
          ranked, [&](const StoredRecord& record) { return !passed_over.contains(record.id); });
      if (next == ranked.end()) return Verdict::kNotConfirmed;
      const StoredRecord& best = *next;
      if (results.contains(best.id) || HasConfirmed(confirmed, best)) return Verdict::kConfirmed;
      if (!measured.insert(best.id).second) {
        passed_over.insert(best.id);
        continue;
      }
      out_ << "record " << best.id << " of " << best.record.workload_name() << ": ";
      absl::StatusOr<v1::MeasureResult> result = remeasure_(best.record);
      if (!result.ok() || IsInfrastructureFailure(result->status())) {
        out_ << "not measured: "
             << Printable(result.ok() ? result->error() : std::string(result.status().message()))
             << std::endl;
        return absl::IsFailedPrecondition(result.status()) ? Verdict::kForAnotherMachine
                                                           : Verdict::kNotConfirmed;
      }
      out_ << Printable(Comparison(best.record.result(), *result));
      if (result->status() == v1::MEASURE_STATUS_RUN_ERROR && !has_run_.contains(target)) {
        out_ << ", not kept before another kernel has run here" << std::endl;
        crashes_[target].push_back({best, *std::move(result)});
        ++crashes;
        passed_over.insert(best.id);
        continue;
      }
      if (!SpeaksOfItsRecord(result->status())) {
        out_ << ", not kept: `mycc compile` passes over it here, and `log ban` takes it out of the ranking"
             << std::endl;
        passed_over.insert(best.id);
        continue;
      }
      MYCC_ASSIGN_OR_RETURN(const int64_t id, KeepResult(best.record, *result, log_));
      results.insert(id);
      if (result->status() == v1::MEASURE_STATUS_OK) confirmed[best.record.trace()] = result->code_digest();
      out_ << ", kept as record " << id << std::endl;
      if (!HasRun(result->status())) continue;
      MYCC_RETURN_IF_ERROR(KeepCrashes(target));
      crashes = 0;
    }
    return Verdict::kNotConfirmed;
  }

  // How many crashes were held back to the end.
  size_t num_crashes() const {
    size_t count = 0;
    for (const auto& [target, crashes] : crashes_) count += crashes.size();
    return count;
  }

 private:
  struct Crash {
    StoredRecord stored;
    v1::MeasureResult result;
  };

  // Whether the record's code was measured now. Its earlier time may stand first nevertheless: that of a
  // default schedule, which its job compared with others at one moment.
  static bool HasConfirmed(const std::map<std::string, std::string>& digests, const StoredRecord& stored) {
    const auto digest = digests.find(stored.record.trace());
    return digest != digests.end() && digest->second == stored.record.result().code_digest();
  }

  static bool HasRun(v1::MeasureStatus status) {
    return status == v1::MEASURE_STATUS_OK || status == v1::MEASURE_STATUS_WRONG_RESULT;
  }

  // Other builds may do what this one cannot.
  static bool SpeaksOfItsRecord(v1::MeasureStatus status) {
    return HasRun(status) || status == v1::MEASURE_STATUS_RUN_ERROR;
  }

  // A kernel of the target has run here, and what crashed did so by its own fault.
  absl::Status KeepCrashes(const std::string& target) {
    has_run_.insert(target);
    for (Crash& crash : crashes_[target]) {
      MYCC_ASSIGN_OR_RETURN(const int64_t id, KeepResult(crash.stored.record, std::move(crash.result), log_));
      out_ << "the crash of record " << crash.stored.id << " is kept as record " << id << std::endl;
    }
    crashes_.erase(target);
    return absl::OkStatus();
  }

  const Remeasure& remeasure_;
  TuningLog* const log_;
  std::ostream& out_;
  std::set<std::string> has_run_;                      // targets with a kernel that has run here
  std::map<std::string, std::vector<Crash>> crashes_;  // by target; only targets without such a kernel
};

}  // namespace

absl::Status LogVerifyCommand(const LogVerifyArgs& args, const Remeasure& remeasure, std::ostream& out) {
  LeftOut left_out;
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  left_out.Watch(log.get());
  MYCC_ASSIGN_OR_RETURN(const std::vector<Ranking> rankings, RankingsOf(*log, args.filter));
  if (rankings.empty()) return absl::NotFoundError(absl::StrCat(args.log, ": has no ok record that matches"));
  Verifier verifier(remeasure, log.get(), out);
  std::map<Verdict, int> verdicts;
  for (const Ranking& ranking : rankings) {
    MYCC_ASSIGN_OR_RETURN(const Verdict verdict, verifier.Verify(ranking));
    ++verdicts[verdict];
  }
  const int confirmed = verdicts[Verdict::kConfirmed], refuted = verdicts[Verdict::kNotConfirmed];
  out << confirmed << " of " << confirmed + refuted << " best records confirmed";
  if (const int others = verdicts[Verdict::kForAnotherMachine]; others > 0) {
    out << ", and " << others << " for other machines";
  }
  out << "\n";
  if (const size_t crashes = verifier.num_crashes(); crashes > 0) {
    out << "no kernel has run here and " << crashes
        << " crashed, which may be this machine's fault: the log holds nothing of it\n";
  }
  MYCC_RETURN_IF_ERROR(log->Close());
  if (refuted == 0) return left_out.After(absl::OkStatus());
  return absl::FailedPreconditionError(
      absl::StrCat(args.log, ": ", refuted, " of ", confirmed + refuted, " best records were not confirmed"));
}

}  // namespace mycc
