#include "mycc/explain_why.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/plural.h"
#include "base/status.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "command/table.h"
#include "command/times.h"
#include "db/record_check.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "tuner/cost/explanation.h"

namespace mycc {
namespace {

constexpr int64_t kMostSamples = 1000;  // the newest results
constexpr size_t kMostShares = 10;      // features that are shown
constexpr int kMostRivals = 8;

const v1::Timing& TimingOf(const StoredRecord& stored) { return stored.record.result().timing(); }

// Half of the interval's width, relative to the time; nullopt where it is not known.
std::optional<double> ErrorBar(const v1::Timing& timing) {
  const double width = RelativeWidth(timing);
  return width > 0 && std::isfinite(width) ? std::make_optional(width / 2) : std::nullopt;
}

std::string ErrorText(const v1::Timing& timing) {
  const std::optional<double> error = ErrorBar(timing);
  return error ? absl::StrFormat("+-%.2f %%", 100 * *error) : "of unknown precision";
}

std::string PercentText(double log_ratio) { return absl::StrFormat("%+.2f %%", 100 * std::expm1(log_ratio)); }

std::vector<std::string> RecordRow(const std::string& role, const StoredRecord& stored) {
  const v1::Timing& timing = TimingOf(stored);
  return {role,
          absl::StrCat("record ", stored.id),
          FormatSeconds(RankSeconds(timing)),
          ErrorText(timing),
          timing.rank_seconds() > 0 ? "final round" : "timed by itself",
          FormatUnixMicros(stored.record.recorded_unix_micros())};
}

// The margin, and whether the error bars leave it standing.
std::string MarginText(const StoredRecord& chosen, const StoredRecord& rival) {
  const double first = RankSeconds(TimingOf(chosen)), second = RankSeconds(TimingOf(rival));
  std::string text = absl::StrFormat("margin: the rival takes %+.2f %%", 100 * (second / first - 1));
  const std::optional<double> a = ErrorBar(TimingOf(chosen)), b = ErrorBar(TimingOf(rival));
  if (!a || !b) {
    absl::StrAppend(&text, "; how precise that is, is not known");
  } else if (first * (1 + *a) >= second * (1 - *b)) {
    absl::StrAppendFormat(&text, ", +-%.2f %%: the intervals overlap, so the two are tied",
                          100 * std::hypot(*a, *b));
  } else {
    absl::StrAppendFormat(&text, ", +-%.2f %%: the intervals do not overlap", 100 * std::hypot(*a, *b));
  }
  return text;
}

std::string DecisionsText(const Trace& chosen, const Trace& rival) {
  const std::map<std::string, int64_t> first(chosen.decisions.begin(), chosen.decisions.end());
  const std::map<std::string, int64_t> second(rival.decisions.begin(), rival.decisions.end());
  const auto value_of = [](const std::map<std::string, int64_t>& decisions, const std::string& name) {
    const auto found = decisions.find(name);
    return found == decisions.end() ? std::string("-") : absl::StrCat(found->second);
  };
  std::set<std::string> names;
  for (const auto* decisions : {&first, &second})
    for (const auto& [name, value] : *decisions) names.insert(name);
  std::vector<std::vector<std::string>> rows = {{"decision", "chosen", "rival"}};
  if (chosen.sketch != rival.sketch) rows.push_back({"sketch", chosen.sketch, rival.sketch});
  for (const std::string& name : names) {
    const std::string a = value_of(first, name), b = value_of(second, name);
    if (a != b) rows.push_back({name, a, b});
  }
  return rows.size() > 1 ? FormatTable(rows, {1, 2}) : "no decision differs; the steps do\n";
}

// The newest results that the model can learn from: of the record's workload, or of all for its target.
absl::StatusOr<std::vector<Sample>> SamplesFor(const TuningLog& log, const v1::Record& record, bool all,
                                               const Target& target) {
  RecordFilter filter;
  if (!all) filter.workload_hash = record.workload_hash();
  filter.target = record.target();
  filter.protocol = record.result().timing().protocol();
  filter.only_current = true;
  filter.newest_first = true;
  filter.limit = kMostSamples;
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> records, log.List(filter));
  std::map<std::string, absl::StatusOr<Workload>> workloads;
  std::vector<Sample> samples;
  for (const StoredRecord& stored : records) {
    const v1::MeasureResult& result = stored.record.result();
    const std::string& hash = stored.record.workload_hash();
    const absl::StatusOr<Workload>& workload =
        workloads.try_emplace(hash, ParseWorkload(stored.record.workload(), "the log")).first->second;
    const absl::StatusOr<Trace> trace = ParseTrace(stored.record.trace());
    if (IsInfrastructureFailure(result.status()) || !workload.ok() || !trace.ok()) continue;
    const absl::StatusOr<Appraisal> appraisal = Appraise(*workload, target, *trace);
    if (!appraisal.ok()) continue;
    const bool is_valid = result.status() == v1::MEASURE_STATUS_OK && result.timing().seconds() > 0;
    samples.push_back({appraisal->features, appraisal->analytic_seconds,
                       is_valid ? std::make_optional(result.timing().seconds()) : std::nullopt, hash});
  }
  return samples;
}

// By a model of the workload's own results; where that has learned nothing, of all for the target.
absl::StatusOr<Explanation> Explain(const TuningLog& log, const v1::Record& record, const Target& target,
                                    const Appraisal& first, const Appraisal& second) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Sample> own, SamplesFor(log, record, /*all=*/false, target));
  MYCC_ASSIGN_OR_RETURN(Explanation explanation, ExplainRatio(own, first, second));
  if (explanation.metrics.trees > 0) return explanation;
  MYCC_ASSIGN_OR_RETURN(const std::vector<Sample> all, SamplesFor(log, record, /*all=*/true, target));
  return ExplainRatio(all, first, second);
}

std::string SharesTable(const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows = {{"effect", "feature", "chosen", "rival", "meaning"}};
  if (explanation.analytic_log_ratio != 0)
    rows.push_back({PercentText(explanation.analytic_log_ratio), "analytic model", "", "",
                    "the time that the machine's description predicts"});
  double rest = 0;
  for (size_t i = 0; i < explanation.shares.size(); ++i) {
    const FeatureShare& share = explanation.shares[i];
    if (i >= kMostShares) {
      rest += share.log_ratio;
      continue;
    }
    rows.push_back({PercentText(share.log_ratio), share.slot.name, absl::StrFormat("%.4g", share.first),
                    absl::StrFormat("%.4g", share.second), share.slot.meaning});
  }
  if (explanation.shares.size() > kMostShares)
    rows.push_back(
        {PercentText(rest), HowMany(explanation.shares.size() - kMostShares, "other"), "", "", ""});
  return FormatTable(rows, {0, 2, 3});
}

std::string ModelText(const Explanation& explanation, double measured_log_ratio) {
  const ModelMetrics& metrics = explanation.metrics;
  std::string text =
      absl::StrCat("model of ", metrics.samples, " valid and ", metrics.failures, " failed results",
                   metrics.groups > 1 ? absl::StrCat(" of ", metrics.groups, " workloads: ") : ": ");
  if (metrics.trees == 0) {
    absl::StrAppend(&text, "it finds nothing beyond the analytic model, which expects of the rival ",
                    PercentText(explanation.analytic_log_ratio), "\n");
    return text;
  }
  absl::StrAppendFormat(
      &text,
      "it orders %.0f %% of the pairs rightly that it was not trained on, the analytic model %.0f %%\n",
      100 * metrics.corrected.pairwise_accuracy, 100 * metrics.analytic.pairwise_accuracy);
  absl::StrAppend(&text, "it expects of the rival ", PercentText(explanation.log_ratio), ", measured ",
                  PercentText(measured_log_ratio), ":\n\n", SharesTable(explanation));
  if (explanation.shares.empty())
    absl::StrAppend(&text, "no feature that it has learned from differs between the two\n");
  return text;
}

// The next best trace; nullopt: no other has a valid time.
absl::StatusOr<std::optional<StoredRecord>> FindRival(const TuningLog& log, const StoredRecord& chosen) {
  const v1::Record& record = chosen.record;
  MYCC_ASSIGN_OR_RETURN(
      const std::vector<StoredRecord> best,
      log.Leaders({record.workload_hash(), record.target()}, TimingOf(chosen).protocol(), kMostRivals));
  for (const StoredRecord& stored : best)
    if (stored.record.trace() != record.trace()) return stored;
  return std::nullopt;
}

absl::Status ExplainAgainst(const TuningLog& log, const StoredRecord& chosen, const StoredRecord& rival,
                            const Found& found, const Target& target, std::ostream& out) {
  out << MarginText(chosen, rival) << "\n";
  if ((TimingOf(chosen).rank_seconds() > 0) != (TimingOf(rival).rank_seconds() > 0))
    out << "one was timed in a final round and one by itself: a final round ranks ahead of single times\n";
  if (chosen.override_by) out << "the chosen one is pinned: " << chosen.override_by->reason << "\n";
  MYCC_ASSIGN_OR_RETURN(const Trace first, ParseTrace(chosen.record.trace()));
  MYCC_ASSIGN_OR_RETURN(const Trace second, ParseTrace(rival.record.trace()));
  out << "\n" << DecisionsText(first, second) << "\n";
  const Workload workload = Canonicalize(found.kernel.workload);
  const absl::StatusOr<Appraisal> of_first = Appraise(workload, target, first);
  const absl::StatusOr<Appraisal> of_second = Appraise(workload, target, second);
  for (const absl::Status& status : {of_first.status(), of_second.status()}) {
    if (status.ok()) continue;
    out << "model: this build cannot look at both: " << status.message() << "\n";
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(const Explanation explanation,
                        Explain(log, chosen.record, target, *of_first, *of_second));
  out << ModelText(explanation, std::log(RankSeconds(TimingOf(rival)) / RankSeconds(TimingOf(chosen))));
  return absl::OkStatus();
}

}  // namespace

absl::Status ExplainWhy(const TuningLog& log, const Found& found, const Target& target, std::ostream& out) {
  out << Headline(found) << "\n";
  if (!found.kernel.record || !found.kernel.expected_seconds) {
    out << "this schedule was not measured here, so it has no rival\n";
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(const StoredRecord chosen, log.Get(*found.kernel.record));
  MYCC_ASSIGN_OR_RETURN(const std::optional<StoredRecord> rival, FindRival(log, chosen));
  std::vector<std::vector<std::string>> rows = {
      {"", "", "ranks by", "error bar", "measured", "recorded (UTC)"}, RecordRow("chosen", chosen)};
  if (rival) rows.push_back(RecordRow("rival", *rival));
  out << "\n" << FormatTable(rows, {2, 3}) << "\n";
  if (rival) return ExplainAgainst(log, chosen, *rival, found, target, out);
  out << "no rival: no other schedule of this workload has a valid time\n";
  return absl::OkStatus();
}

}  // namespace mycc
