// `mycc-tune log diff`: each kind of change, as a table and as JSON.
#include "mycc_tune/log_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_split.h"
#include "db/log_diff.h"
#include "db/tuning_log.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A record whose interval reaches from 1 - width to 1 + width of its time.
v1::Record Timed(RecordSpec spec, double width, const std::string& worker = "w1") {
  v1::Record record = MakeRecord(spec);
  v1::MeasureResult& result = *record.mutable_result();
  result.mutable_timing()->set_ci_low_seconds(spec.seconds * (1 - width));
  result.mutable_timing()->set_ci_high_seconds(spec.seconds * (1 + width));
  result.mutable_device()->set_worker(worker);
  return record;
}

class LogDiffTest : public testing::Test {
 protected:
  LogDiffTest() {
    const v1::Record same = Timed({.index = 1, .shape = 1}, 0.01);
    // A trace of A that B has measured again, with other code.
    v1::Record other_code =
        Timed({.index = 32, .shape = 4, .seconds = 1.01e-3, .trace = "v1\nsplit(i, 4)\n"}, 0.02);
    other_code.mutable_result()->set_code_digest("another");
    Write("a.db", {same, Timed({.index = 12, .shape = 2, .seconds = 2e-3}, 0.01),
                   Timed({.index = 13, .shape = 3, .seconds = 1e-3}, 0.01),
                   Timed({.index = 14, .shape = 4, .seconds = 1e-3, .trace = "v1\nsplit(i, 4)\n"}, 0.02),
                   Timed({.index = 15, .shape = 5}, 0.01),
                   Timed({.index = 16, .shape = 7, .timer_version = 1}, 0.01)});
    Write("b.db", {same, Timed({.index = 22, .shape = 2, .seconds = 1e-3}, 0.01, "w2"),
                   Timed({.index = 23, .shape = 3, .seconds = 3e-3}, 0.01), other_code,
                   Timed({.index = 25, .shape = 5, .protocol = v1::TIMING_PROTOCOL_COLD}, 0.01),
                   Timed({.index = 26, .shape = 7, .timer_version = 2}, 0.01)});
  }

  void Write(const std::string& name, const std::vector<v1::Record>& records) {
    auto log = TuningLog::Open(directory_ / name, OpenMode::kCreate).value();
    ASSERT_TRUE(log->Append(records).ok());
    ASSERT_TRUE(log->Close().ok());
  }
  std::string Output(bool json) {
    std::ostringstream out;
    const absl::Status status =
        LogDiffCommand({.first = directory_ / "a.db", .second = directory_ / "b.db", .json = json}, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }

  TempDir directory_;
};

TEST_F(LogDiffTest, ATableForPeople) {
  const auto before = Snapshot(directory_.path());
  const std::string text = Output(/*json=*/false);
  EXPECT_EQ(Snapshot(directory_.path()), before) << "both are only read";
  std::vector<std::string> starts;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty()))
    starts.emplace_back(line.substr(0, 44));
  EXPECT_THAT(starts[0], HasSubstr("A is "));
  EXPECT_THAT(text, HasSubstr("slower       3.000x  1.000 ms  3.000 ms  warm"));
  EXPECT_THAT(text, HasSubstr("faster       0.500x  2.000 ms  1.000 ms  warm"));
  EXPECT_THAT(text, HasSubstr("tie          1.010x  1.000 ms  1.010 ms  warm"));
  EXPECT_THAT(text, HasSubstr("other timer       -  1.000 ms  1.000 ms  warm"));
  EXPECT_THAT(text, HasSubstr("only in A         -  1.000 ms         -  warm"));
  EXPECT_THAT(text, HasSubstr("only in B         -         -  1.000 ms  cold"));
  EXPECT_THAT(text, HasSubstr("other trace, other worker (w1, w2)"));
  EXPECT_THAT(text, HasSubstr("other code"));
  EXPECT_THAT(text,
              HasSubstr("1 the same, 1 faster in B, 1 slower in B, 1 ties, 1 of other timers, 1 only in A, 1 "
                        "only in B\n"));
  EXPECT_LT(text.find("slower "), text.find("faster ")) << "what became slower stands first";
}

TEST_F(LogDiffTest, JsonForPrograms) {
  std::vector<json> rows;
  for (const auto line : absl::StrSplit(Output(/*json=*/true), '\n', absl::SkipEmpty()))
    rows.push_back(json::parse(line));
  ASSERT_EQ(rows.size(), 7u);
  std::map<std::string, json> by_change;
  for (const json& row : rows)
    if (row.contains("change")) by_change[row["change"]] = row;
  EXPECT_EQ(by_change["faster"]["ratio"], 0.5);
  EXPECT_EQ(by_change["faster"]["intervals_overlap"], false);
  EXPECT_EQ(by_change["faster"]["same_worker"], false);
  EXPECT_EQ(by_change["faster"]["first"]["worker"], "w1");
  EXPECT_EQ(by_change["tie"]["intervals_overlap"], true);
  EXPECT_EQ(by_change["tie"]["same_trace"], true);
  EXPECT_EQ(by_change["tie"]["same_code"], false);
  EXPECT_EQ(by_change["other_timer"]["ratio"], nullptr);
  EXPECT_EQ(by_change["only_first"]["second"], nullptr);
  EXPECT_EQ(by_change["only_second"]["protocol"], "cold");
  EXPECT_EQ(rows.back()["same"], 1);
  EXPECT_EQ(rows.back()["only_second"], 1);
}

TEST_F(LogDiffTest, ALogDoesNotDifferFromItself) {
  std::ostringstream out;
  ASSERT_TRUE(LogDiffCommand({.first = directory_ / "a.db", .second = directory_ / "a.db"}, out).ok());
  EXPECT_THAT(out.str(), HasSubstr("6 the same, 0 faster in B"));
  EXPECT_TRUE(
      absl::IsNotFound(LogDiffCommand({.first = directory_ / "a.db", .second = directory_ / "c.db"}, out)));
}

// Times without an interval are compared by themselves.
TEST_F(LogDiffTest, OneSampleMakesNoTie) {
  StoredRecord a{.id = 1, .record = Timed({.index = 1, .seconds = 1e-3}, 0.5)};
  StoredRecord b{.id = 2, .record = Timed({.index = 2, .seconds = 1.1e-3}, 0.5)};
  EXPECT_EQ(CompareBest({}, a, b).change, Change::kTie);
  b.record.mutable_result()->mutable_timing()->clear_ci_low_seconds();
  EXPECT_EQ(CompareBest({}, a, b).change, Change::kSlower);
  EXPECT_FALSE(CompareBest({}, a, b).intervals_overlap.has_value());
}

}  // namespace
}  // namespace mycc
