#include "db/log_diff.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {
namespace {

// One look-up in records_by_rank for each key and protocol, however many records a key has.
std::string SelectRankedKeys() {
  std::vector<std::string> protocols;
  for (int protocol = v1::TIMING_PROTOCOL_UNSPECIFIED + 1; v1::TimingProtocol_IsValid(protocol); ++protocol)
    protocols.push_back(absl::StrCat("(", protocol, ")"));
  return absl::StrCat("WITH protocols(protocol) AS (VALUES ", absl::StrJoin(protocols, ", "), R"sql()
SELECT w.hash, t.text, w.name, p.protocol
FROM keys k JOIN workloads w ON w.id = k.workload JOIN targets t ON t.id = k.target CROSS JOIN protocols p
WHERE EXISTS (SELECT 1 FROM records r INDEXED BY records_by_rank
              WHERE r.key = k.id AND r.protocol = p.protocol
              AND r.status = 1 AND r.verified = 1 AND r.superseded = 0)
ORDER BY w.hash, t.text, p.protocol)sql");
}

auto OrderOf(const RankedKey& key) { return std::tie(key.key.workload_hash, key.key.target, key.protocol); }

// Nullopt where one of them has no interval: it is of one sample, or of a build that kept none.
std::optional<bool> Overlap(const v1::Timing& a, const v1::Timing& b) {
  for (const v1::Timing* timing : {&a, &b}) {
    if (timing->samples_seconds_size() == 1 || timing->ci_low_seconds() <= 0 ||
        timing->ci_high_seconds() <= 0)
      return std::nullopt;
  }
  return a.ci_low_seconds() <= b.ci_high_seconds() && b.ci_low_seconds() <= a.ci_high_seconds();
}

absl::StatusOr<std::optional<StoredRecord>> BestOf(const TuningLog& log, const RankedKey& key) {
  MYCC_ASSIGN_OR_RETURN(std::vector<StoredRecord> best, log.TopK(key.key, key.protocol, 1));
  if (best.empty()) return std::optional<StoredRecord>();  // none is proven, or all are banned
  return std::optional<StoredRecord>(std::move(best[0]));
}

}  // namespace

absl::StatusOr<std::vector<RankedKey>> RankedKeys(const TuningLog& log) {
  MutexLock lock(log.database()->mutex());
  MYCC_ASSIGN_OR_RETURN(Query row, log.database()->Prepare(SelectRankedKeys()));
  std::vector<RankedKey> keys;
  while (true) {
    MYCC_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return keys;
    keys.push_back({{row.Text(0), row.Text(1)}, row.Text(2), static_cast<v1::TimingProtocol>(row.Int(3))});
  }
}

const char* ChangeName(Change change) {
  switch (change) {
    case Change::kSame: return "same";
    case Change::kFaster: return "faster";
    case Change::kSlower: return "slower";
    case Change::kTie: return "tie";
    case Change::kOtherTimer: return "other_timer";
    case Change::kOnlyFirst: return "only_first";
    case Change::kOnlySecond: return "only_second";
  }
  return "unknown";
}

KeyDifference CompareBest(RankedKey key, StoredRecord first, StoredRecord second) {
  KeyDifference difference{.key = std::move(key)};
  const v1::Record &a = first.record, &b = second.record;
  const v1::MeasureResult &old = a.result(), &now = b.result();
  difference.same_trace = a.trace() == b.trace();
  difference.same_code = old.code_digest() == now.code_digest();
  difference.same_worker = old.device().worker() == now.device().worker();
  difference.same_device =
      old.device().model() == now.device().model() && old.device().device() == now.device().device();
  const double before = old.timing().seconds(), after = now.timing().seconds();
  if (a.trial() == b.trial() && before == after) {
    difference.change = Change::kSame;
    difference.ratio = 1;
  } else if (old.timing().timer_version() != now.timing().timer_version()) {
    difference.change = Change::kOtherTimer;
  } else {
    difference.ratio = after / before;
    difference.intervals_overlap = Overlap(old.timing(), now.timing());
    const bool is_tie = difference.intervals_overlap.value_or(before == after);
    difference.change = is_tie ? Change::kTie : after < before ? Change::kFaster : Change::kSlower;
  }
  difference.first = std::move(first);
  difference.second = std::move(second);
  return difference;
}

absl::Status ForEachDifference(const TuningLog& first, const TuningLog& second,
                               const std::function<absl::Status(const KeyDifference&)>& visit) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<RankedKey> firsts, RankedKeys(first));
  MYCC_ASSIGN_OR_RETURN(const std::vector<RankedKey> seconds, RankedKeys(second));
  auto a = firsts.begin(), b = seconds.begin();
  while (a != firsts.end() || b != seconds.end()) {
    const bool in_first = a != firsts.end() && (b == seconds.end() || !(OrderOf(*b) < OrderOf(*a)));
    const bool in_second = b != seconds.end() && (a == firsts.end() || !(OrderOf(*a) < OrderOf(*b)));
    const RankedKey& key = in_first ? *a : *b;
    std::optional<StoredRecord> of_first, of_second;
    if (in_first) {
      MYCC_ASSIGN_OR_RETURN(of_first, BestOf(first, key));
    }
    if (in_second) {
      MYCC_ASSIGN_OR_RETURN(of_second, BestOf(second, key));
    }
    KeyDifference difference{.key = key};
    if (of_first && of_second) {
      difference = CompareBest(key, *std::move(of_first), *std::move(of_second));
    } else {
      difference.change = of_first ? Change::kOnlyFirst : Change::kOnlySecond;
      difference.first = std::move(of_first);
      difference.second = std::move(of_second);
    }
    if (difference.first || difference.second) MYCC_RETURN_IF_ERROR(visit(difference));
    a += in_first;
    b += in_second;
  }
  return absl::OkStatus();
}

}  // namespace mycc
