#include "server/final_round.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "db/record_check.h"
#include "db/shared_record.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "server/ties.h"

namespace mycc {
namespace {

constexpr size_t kMostFinalists = 8;
// A single timing is off by this much at most, in either direction, unless its interval says otherwise.
constexpr double kBehind = 1.05;
// Some are off by more, and one that was too fast leads. In its first round it meets the next ones even when
// they are further behind, up to this much.
constexpr size_t kFewestFinalists = 4;
constexpr double kFarBehind = 1.5;
// The default's by this much: it is taken once, early, perhaps in a slow or fast phase of a shared machine.
constexpr double kDefaultBehind = 4;
constexpr int kMostLeaders = 32;  // of the log, among which finalists are looked for

// A timing's interval, moved to where it ranks; the rank alone for one without.
double RankedLow(const v1::Timing& timing) {
  const double low = timing.ci_low_seconds() > 0 ? timing.ci_low_seconds() : timing.seconds();
  return low / timing.seconds() * RankSeconds(timing);
}
double RankedHigh(const v1::Timing& timing) {
  return std::max(timing.ci_high_seconds(), timing.seconds()) / timing.seconds() * RankSeconds(timing);
}

const v1::Timing& TimingOf(const v1::Record& record) { return record.result().timing(); }

bool AreSameCode(const v1::Record& a, const v1::Record& b) {
  return a.trace() == b.trace() ||
         (!a.result().code_digest().empty() && a.result().code_digest() == b.result().code_digest());
}

// Ranks the records that passed a round: the chosen one and its ties just before where the best ranked until
// now, the others as far behind as their times are behind the fastest one's.
void Rank(const std::string& round, double best_rank, std::vector<v1::Record>* records) {
  std::vector<const v1::Record*> passed;
  std::vector<v1::Timing*> timings;
  for (v1::Record& record : *records) {
    if (!IsVerifiedOk(record)) continue;
    passed.push_back(&record);
    timings.push_back(record.mutable_result()->mutable_timing());
  }
  if (passed.empty()) return;
  const std::vector<size_t> ties = TiesForBest(passed);
  double fastest = HUGE_VAL;
  for (const v1::Timing* timing : timings) fastest = std::min(fastest, timing->seconds());
  // Just before: times of a coarse clock are often equal.
  double rank = std::nextafter(best_rank, 0);
  for (v1::Timing* timing : timings) {
    timing->set_final_round(round);
    timing->set_rank_seconds(rank * (timing->seconds() / fastest));
  }
  for (size_t i = ties.size(); i-- > 0; rank = std::nextafter(rank, 0))
    timings[ties[i]]->set_rank_seconds(rank);
}

// The record that speaks for a trial's candidate, when that may still be the best: its own, or that of a
// round in which it was before.
absl::StatusOr<std::optional<v1::Record>> RivalOf(const TuningLog& log, const std::string& trial) {
  if (trial.empty()) return std::optional<v1::Record>();
  const absl::StatusOr<StoredRecord> stored = RecordThatFinished(log, trial);
  if (absl::IsDataLoss(stored.status())) return std::optional<v1::Record>();
  MYCC_RETURN_IF_ERROR(stored.status());
  if (!IsVerifiedOk(stored->record)) return std::optional<v1::Record>();
  MYCC_ASSIGN_OR_RETURN(std::optional<StoredRecord> valid, log.ValidRecordOf(stored->record));
  const bool is_banned = valid && valid->override_by && valid->override_by->kind == OverrideKind::kBan;
  if (!valid || is_banned) return std::optional<v1::Record>();
  return std::optional<v1::Record>(std::move(valid->record));
}

}  // namespace

std::vector<v1::Record> Finalists(const std::vector<StoredRecord>& ranked, const OwnRecords& own) {
  std::vector<v1::Record> finalists;
  std::set<std::string> binaries;
  const auto is_default = [&own](const v1::Record& record) {
    return own.by_default && record.trace() == own.by_default->trace();
  };
  const auto take = [&](const v1::Record& record) {
    const bool is_there = std::ranges::any_of(
        finalists, [&record](const v1::Record& finalist) { return finalist.trace() == record.trace(); });
    const std::string& digest = record.result().code_digest();
    if (!is_there && (digest.empty() || binaries.insert(digest).second)) finalists.push_back(record);
  };
  for (const StoredRecord& stored : ranked) {
    const v1::Record& record = stored.record;
    if (finalists.size() == kMostFinalists) break;
    if (!finalists.empty()) {
      const v1::Timing& best = TimingOf(finalists[0]);
      // A default that leads alone may have been timed in a fast phase, so it is timed again with the next
      // one.
      const bool is_single = best.final_round().empty();
      const double behind = finalists.size() == 1 && is_default(finalists[0])  ? kDefaultBehind
                            : is_single && finalists.size() < kFewestFinalists ? kFarBehind
                                                                               : kBehind;
      const bool is_near = RankSeconds(TimingOf(record)) <= behind * RankSeconds(best) ||
                           RankedLow(TimingOf(record)) <= RankedHigh(best);
      if (!is_near) break;
    }
    take(record);
  }
  if (!own.by_default || finalists.empty()) return finalists;
  const double first = RankSeconds(TimingOf(finalists[0])),
               by_default = RankSeconds(TimingOf(*own.by_default));
  if (by_default <= kDefaultBehind * first) take(*own.by_default);
  if (own.best && own.best_share > 0 && own.best_share * by_default <= kBehind * first) take(*own.best);
  return finalists;
}

absl::StatusOr<FinalRoundPlan> PlanFinalRound(const TuningLog& log, const std::string& job, uint32_t task,
                                              const PlannedTask& planned, const JobsOwn& own) {
  MYCC_ASSIGN_OR_RETURN(
      std::vector<StoredRecord> leaders,
      log.Leaders({planned.key.workload_hash, planned.key.target}, planned.protocol, kMostLeaders));
  // A pin, which stands first, is no time.
  std::ranges::stable_sort(leaders, [](const StoredRecord& a, const StoredRecord& b) {
    return RankSeconds(TimingOf(a.record)) < RankSeconds(TimingOf(b.record));
  });
  // A pinned record may be of another protocol.
  std::erase_if(leaders, [&planned](const StoredRecord& leader) {
    return TimingOf(leader.record).protocol() != planned.protocol;
  });
  OwnRecords records{.best_share = own.best_share};
  MYCC_ASSIGN_OR_RETURN(records.by_default, RivalOf(log, own.default_trial));
  MYCC_ASSIGN_OR_RETURN(records.best, RivalOf(log, own.best_trial));
  FinalRound round{FinalRoundName(job, task, log.now()), task, Finalists(leaders, records),
                   records.by_default};
  FinalRoundPlan plan;
  if (round.finalists.size() < 2) return plan;
  const std::string& decided_by = TimingOf(round.finalists[0]).final_round();
  if (IsFinalRoundOf(job, task, decided_by)) return plan;
  const bool has_met = std::ranges::all_of(round.finalists, [&decided_by](const v1::Record& finalist) {
    return !decided_by.empty() && TimingOf(finalist).final_round() == decided_by;
  });
  if (has_met) {
    plan.earlier = FinalTimesOf(round.finalists, round.by_default);
    plan.earlier->is_earlier = true;
  } else {
    plan.round = std::move(round);
  }
  return plan;
}

absl::StatusOr<std::vector<v1::Record>> RecordsOf(const FinalRound& round,
                                                  const std::vector<v1::MeasureResult>& results,
                                                  int64_t now_unix_micros) {
  if (results.size() != round.finalists.size()) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", results.size(), " results; expected ",
                                                   round.finalists.size(), ", of candidates timed in turn"));
  }
  std::vector<v1::Record> records;
  double best_rank = HUGE_VAL;
  for (size_t i = 0; i < results.size(); ++i) {
    if (IsInfrastructureFailure(results[i].status())) continue;
    v1::Record record = round.finalists[i];
    record.set_trial(RemeasuredTrialName(record.trial(), now_unix_micros));
    record.set_created_unix_micros(now_unix_micros);
    record.set_recorded_unix_micros(0);
    record.set_attempt(1);
    const double rank = RankSeconds(TimingOf(record));
    v1::MeasureResult& result = *record.mutable_result();
    const v1::CodeResources resources = result.resources();
    result = results[i];
    *result.mutable_device() = results[0].device();
    // The code is the same, and so is what it takes.
    if (!result.has_resources()) *result.mutable_resources() = resources;
    // Its earlier proof holds too: another device made it, or this worker before it was started again.
    const v1::MeasureResult& before = round.finalists[i].result();
    const bool is_same_code = !result.code_digest().empty() && result.code_digest() == before.code_digest();
    if (is_same_code && IsVerifiedOk(record) && IsServable(round.finalists[i]) && !IsServable(record) &&
        before.verification().launches() > 0)
      *result.mutable_verification() = before.verification();
    if (IsVerifiedOk(record)) best_rank = std::min(best_rank, rank);
    records.push_back(std::move(record));
  }
  Rank(round.name, best_rank, &records);
  return records;
}

absl::StatusOr<std::vector<v1::Record>> FinalRecordsOf(const TuningLog& log, const std::string& job,
                                                       uint32_t task, const PlannedTask& planned) {
  RecordFilter filter;
  filter.workload_hash = planned.key.workload_hash;
  filter.target = planned.key.target;
  filter.only_final = true;
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> stored, log.List(filter));
  std::vector<v1::Record> records;
  for (const StoredRecord& one : stored) {
    if (IsFinalRoundOf(job, task, TimingOf(one.record).final_round())) records.push_back(one.record);
  }
  // A job that was interrupted within a round may have held another, and logs of two hosts were merged.
  const auto latest = std::ranges::max_element(records, [](const v1::Record& a, const v1::Record& b) {
    return a.recorded_unix_micros() < b.recorded_unix_micros();
  });
  if (latest == records.end()) return records;
  const std::string round = TimingOf(*latest).final_round();
  std::erase_if(records,
                [&round](const v1::Record& record) { return TimingOf(record).final_round() != round; });
  return records;
}

FinalTimes FinalTimesOf(const std::vector<v1::Record>& records, const std::optional<v1::Record>& by_default) {
  FinalTimes times;
  std::vector<const v1::Record*> finalists;
  double best_rank = HUGE_VAL;
  for (const v1::Record& record : records) {
    const bool passed = IsVerifiedOk(record), is_default = by_default && AreSameCode(record, *by_default);
    const double seconds = TimingOf(record).seconds();
    if (is_default && passed) times.default_seconds = seconds;
    if (is_default && !passed) times.default_failed = true;
    if (!passed) continue;
    finalists.push_back(&record);
    if (best_rank <= RankSeconds(TimingOf(record))) continue;
    best_rank = RankSeconds(TimingOf(record));
    times.best_seconds = seconds;
    times.best_width = RelativeWidth(TimingOf(record));
  }
  times.finalists = static_cast<uint32_t>(finalists.size());
  if (!finalists.empty()) times.ties = static_cast<uint32_t>(TiesForBest(finalists).size() - 1);
  return times;
}

absl::StatusOr<std::optional<v1::Record>> RecordOfTrial(const TuningLog& log, const std::string& trial) {
  if (trial.empty()) return std::optional<v1::Record>();
  absl::StatusOr<StoredRecord> stored = RecordThatFinished(log, trial);
  if (absl::IsNotFound(stored.status()) || absl::IsDataLoss(stored.status()))
    return std::optional<v1::Record>();
  MYCC_RETURN_IF_ERROR(stored.status());
  return std::optional<v1::Record>(std::move(stored->record));
}

}  // namespace mycc
