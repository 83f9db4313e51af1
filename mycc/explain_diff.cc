#include "mycc/explain_diff.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/driver/compile.h"
#include "codegen/schedule/trace.h"
#include "codegen/workload/parse.h"
#include "command/colour.h"
#include "command/table.h"
#include "command/times.h"
#include "db/record_check.h"
#include "db/tuning_log.h"
#include "mycc/code_facts.h"
#include "proto/names.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

// A record, and the facts that this build finds of it.
struct Side {
  StoredRecord stored;
  Trace trace;
  Facts facts;
};

std::string TimeText(const v1::Timing& timing) {
  if (timing.seconds() <= 0) return "-";
  return absl::StrCat(FormatSeconds(timing.seconds()), " (", FormatSeconds(timing.ci_low_seconds()), " .. ",
                      FormatSeconds(timing.ci_high_seconds()), ")");
}

// The code is compiled again; a record that no longer compiles says so in its place.
absl::Status AddCode(const v1::Record& record, Side* side) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(record.workload(), "the log"));
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(record.target()));
  const v1::Timing& timing = record.result().timing();
  const bool is_timed = record.result().status() == v1::MEASURE_STATUS_OK;
  side->facts.emplace_back(
      "share of peak",
      ShareOfPeak(workload, target, is_timed ? std::make_optional(timing.seconds()) : std::nullopt));
  const absl::StatusOr<KernelSpec> kernel = CompileKernel(workload, target, side->trace);
  const Facts code = kernel.ok() ? CodeFactsOf(*kernel, target) : NotKnown(kernel.status());
  side->facts.insert(side->facts.end(), code.begin(), code.end());
  return absl::OkStatus();
}

absl::StatusOr<Side> ReadSide(const TuningLog& log, const std::string& name) {
  int64_t id = 0;
  Side side;
  MYCC_ASSIGN_OR_RETURN(side.stored, absl::SimpleAtoi(name, &id) ? log.Get(id) : log.Find(name));
  const v1::Record& record = side.stored.record;
  MYCC_ASSIGN_OR_RETURN(side.trace, ParseTrace(record.trace()));
  const v1::Timing& timing = record.result().timing();
  side.facts = {
      {"workload", absl::StrCat(record.workload_name(), " ", record.workload_hash().substr(0, 12))},
      {"target", record.target()},
      {"status", StatusName(record.result().status())},
      {"time", TimeText(timing)},
      {"ranks by", timing.seconds() > 0 ? FormatSeconds(RankSeconds(timing)) : "-"},
      {"caches",
       timing.protocol() == v1::TIMING_PROTOCOL_UNSPECIFIED ? "-" : ProtocolName(timing.protocol())},
      {"recorded", FormatUnixMicros(record.recorded_unix_micros())}};
  MYCC_RETURN_IF_ERROR(AddCode(record, &side));
  side.facts.emplace_back("sketch", side.trace.sketch.empty() ? "-" : side.trace.sketch);
  for (const auto& [decision, value] : side.trace.decisions)
    side.facts.emplace_back(decision, absl::StrCat(value));
  return side;
}

// The names of both sides: the first's in order, then the second's others. Names with different values
// come first.
std::string FactsTable(const Side& first, const Side& second) {
  const std::map<std::string, std::string> of_first(first.facts.begin(), first.facts.end());
  const std::map<std::string, std::string> of_second(second.facts.begin(), second.facts.end());
  Facts names = first.facts;
  for (const auto& fact : second.facts)
    if (of_first.count(fact.first) == 0) names.push_back(fact);
  const auto value_of = [](const std::map<std::string, std::string>& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string("-") : found->second;
  };
  std::vector<std::vector<std::string>> rows = {
      {"", "", absl::StrCat("record ", first.stored.id), absl::StrCat("record ", second.stored.id)}};
  std::vector<std::vector<std::string>> equal;
  for (const auto& [name, value] : names) {
    const std::string a = value_of(of_first, name), b = value_of(of_second, name);
    (a == b ? equal : rows).push_back({a == b ? "" : "differs", name, a, b});
  }
  rows.insert(rows.end(), equal.begin(), equal.end());
  return FormatTable(rows, {}, [](size_t column, const std::string& cell) {
    return column == 0 ? Painted(cell, Tone::kMiss, Stream::kOutput) : cell;
  });
}

std::vector<std::string> StepsOf(const Trace& trace) {
  std::vector<std::string> steps;
  for (const Step& step : trace.steps) steps.push_back(PrintStep(step));
  return steps;
}

// The steps of both, those of one alone marked by `-` (the first) and `+`: the longest common subsequence
// stays.
std::string StepsDiff(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  }
  std::string text;
  const auto add = [&](const char* mark, const std::string& step, Tone tone) {
    const std::string line = absl::StrCat(mark, " ", Printable(step));
    absl::StrAppend(&text, mark[0] == ' ' ? line : Painted(line, tone, Stream::kOutput), "\n");
  };
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      add(" ", a[i++], Tone::kPlace);
      ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      add("-", a[i++], Tone::kError);
    } else {
      add("+", b[j++], Tone::kHit);
    }
  }
  return text;
}

}  // namespace

absl::Status ExplainDiff(const std::string& log, const std::string& first, const std::string& second,
                         std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningLog> opened, TuningLog::Open(log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const Side a, ReadSide(*opened, first));
  MYCC_ASSIGN_OR_RETURN(const Side b, ReadSide(*opened, second));
  out << FactsTable(a, b) << "\nsteps (- record " << a.stored.id << ", + record " << b.stored.id << "):\n"
      << StepsDiff(StepsOf(a.trace), StepsOf(b.trace));
  return absl::OkStatus();
}

}  // namespace mycc
