// Merging logs loses nothing, and its result does not depend on the order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "db/json_lines.h"
#include "db/namesake.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

constexpr auto kWarmProtocol = v1::TIMING_PROTOCOL_WARM;
constexpr auto kCold = v1::TIMING_PROTOCOL_COLD;

using Logs = std::vector<std::unique_ptr<TuningLog>>;

class MergeTest : public testing::Test {
 protected:
  std::unique_ptr<TuningLog> NewLog(const std::vector<v1::Record>& records = {}) {
    auto log = TuningLog::Open(directory_ / absl::StrCat("log", ++logs_, ".db"), OpenMode::kCreate, clock_);
    EXPECT_TRUE(log.ok()) << log.status();
    EXPECT_TRUE((*log)->Append(records).ok());
    return *std::move(log);
  }
  static TransferCounts Merge(const TuningLog& from, TuningLog* into) {
    const auto counts = MergeLog(from, into);
    EXPECT_TRUE(counts.ok()) << counts.status();
    return *counts;
  }
  // The same by way of a file.
  static void MoveByJson(const TuningLog& from, TuningLog* into) {
    std::stringstream lines;
    ASSERT_TRUE(ExportJsonLines(from, {}, lines).ok());
    const auto counts = ImportJsonLines(lines, "lines", into);
    ASSERT_TRUE(counts.ok()) << counts.status();
  }

  // Everything about a log that is not the order in which records came: each record under its name, whether
  // it is superseded, what people say of it, and the rankings.
  static std::string StateOf(const TuningLog& log) {
    std::map<std::string, std::string> records;
    const auto listed = log.List({});
    for (const StoredRecord& stored : *listed) {
      records[stored.record.trial()] =
          absl::StrCat(ContentDigest(stored.record), " stamped ", stored.record.recorded_unix_micros(),
                       stored.superseded ? " superseded" : "",
                       stored.override_by ? absl::StrCat(" by hand: ", stored.override_by->reason) : "");
    }
    std::string state;
    for (const auto& [trial, text] : records) absl::StrAppend(&state, trial, ": ", text, "\n");
    for (const auto protocol : {kWarmProtocol, kCold}) {
      const auto top = log.TopK(KeyOf({}), protocol, 1000);
      for (const StoredRecord& ranked : *top)
        absl::StrAppend(&state, ProtocolName(protocol), ": ", ranked.record.trial(), "\n");
    }
    return state;
  }

  TempDir directory_;
  int logs_ = 0;
  Clock clock_ = SystemUnixMicros;
};

// Logs of old versions: the same command on two hosts made the same names for other results.
TEST_F(MergeTest, TwoHostsThatRanOneCommandMergeIntoAllRecordsOfBoth) {
  std::vector<v1::Record> here, there;
  for (int i = 0; i < 64; ++i) {
    here.push_back(MakeRecord({.index = i, .seconds = 1e-3 + 1e-6 * i}));
    // The first 38 searched alike, and were measured alike; then the searches parted.
    const bool parted = i >= 38;
    there.push_back(parted ? MakeRecord({.index = i, .seconds = 2e-3, .trace = absl::StrCat("v1 there ", i)})
                           : here.back());
  }
  auto a = NewLog(here), b = NewLog(there);
  const TransferCounts counts = Merge(*b, a.get());
  EXPECT_EQ(counts.added, 26);
  EXPECT_EQ(counts.known, 38);
  EXPECT_EQ(counts.namesakes, 26);
  std::multiset<std::string> contents, expected;
  const auto merged = a->List({});
  for (const StoredRecord& stored : *merged) contents.insert(ContentDigest(stored.record));
  for (int i = 0; i < 64; ++i) {
    expected.insert(ContentDigest(here[i]));
    if (i >= 38) expected.insert(ContentDigest(there[i]));
  }
  EXPECT_EQ(contents, expected);
  for (const TuningLog* again : {a.get(), b.get()}) {
    auto copy = NewLog();
    Merge(*a, copy.get());
    const std::string before = StateOf(*copy);
    const TransferCounts repeated = Merge(*again, copy.get());
    EXPECT_EQ(repeated.added, 0);
    EXPECT_EQ(repeated.known, again == a.get() ? 90 : 64);
    EXPECT_EQ(StateOf(*copy), before);
  }
}

TEST_F(MergeTest, APinMeansTheRecordThatCameUnderItsName) {
  for (const bool smaller_first : {false, true}) {
    v1::Record one = MakeRecord({.index = 1, .trace = "v1 one"}),
               other = MakeRecord({.index = 1, .trace = "v1 other"});
    if ((ContentDigest(one) < ContentDigest(other)) != smaller_first) std::swap(one, other);
    auto into = NewLog({one}), from = NewLog({other});
    ASSERT_TRUE(from->SetOverride(1, OverrideKind::kPin, "ours").ok());
    Merge(*from, into.get());
    EXPECT_EQ(into->Best(KeyOf({}), kWarmProtocol)->record.trace(), other.trace());
    auto by_json = NewLog({one});
    MoveByJson(*from, by_json.get());
    EXPECT_EQ(by_json->Best(KeyOf({}), kWarmProtocol)->record.trace(), other.trace());
  }
}

TEST_F(MergeTest, WordsOfOneMicrosecondHaveAnOrder) {
  clock_ = [] { return int64_t{1700000000000000}; };
  const std::vector<v1::Record> records = {MakeRecord({.index = 1, .trace = "v1 one"}),
                                           MakeRecord({.index = 2, .trace = "v1 other"})};
  const auto log_with = [&](int64_t id, OverrideKind kind, const std::string& reason) {
    auto log = NewLog(records);
    EXPECT_TRUE(log->SetOverride(id, kind, reason).ok());
    return log;
  };
  const auto expect_no_order = [&](const TuningLog& one, const TuningLog& other) {
    auto first = NewLog(records), second = NewLog(records);
    for (const TuningLog* from : {&one, &other}) Merge(*from, first.get());
    for (const TuningLog* from : {&other, &one}) Merge(*from, second.get());
    EXPECT_EQ(StateOf(*first), StateOf(*second));
  };
  const auto pin = log_with(1, OverrideKind::kPin, "a"), other_pin = log_with(2, OverrideKind::kPin, "b"),
             ban = log_with(1, OverrideKind::kBan, "c"), other_ban = log_with(1, OverrideKind::kBan, "d");
  expect_no_order(*pin, *other_pin);
  expect_no_order(*pin, *ban);
  expect_no_order(*ban, *other_ban);
}

TEST_F(MergeTest, ANameThatOnlyLooksDerivedIsKept) {
  v1::Record odd = MakeRecord({.index = 1});
  odd.set_trial("by hand#0123456789abcdef");
  auto log = NewLog({odd});
  EXPECT_EQ(log->Find(odd.trial())->id, 1);
  EXPECT_EQ(log->Append({odd}).value()[0].id, 1);
}

// Random logs with what makes orders matter: few names, few traces, few stamps, equal times, words against
// traces, final rounds, and records that several logs hold.
std::vector<v1::Record> RandomRecords(std::mt19937* random, const std::vector<v1::Record>& shared) {
  const v1::MeasureStatus statuses[] = {v1::MEASURE_STATUS_OK, v1::MEASURE_STATUS_OK, v1::MEASURE_STATUS_OK,
                                        v1::MEASURE_STATUS_WRONG_RESULT, v1::MEASURE_STATUS_RUN_ERROR};
  std::vector<v1::Record> records;
  for (int i = 0; i < 14; ++i) {
    if (!shared.empty() && (*random)() % 4 == 0) {
      records.push_back(shared[(*random)() % shared.size()]);
      continue;
    }
    const auto any = [random](int count) {
      return static_cast<int>((*random)() % static_cast<unsigned>(count));
    };
    records.push_back(MakeRecord({.index = any(8),
                                  .status = statuses[any(5)],
                                  .seconds = 1e-3 * (1 + any(3)),
                                  .protocol = any(2) == 0 ? kWarmProtocol : kCold,
                                  .recorded = 1 + any(6),
                                  .finished = 1 + any(1000),
                                  .trace = absl::StrCat("v1 ", any(5)),
                                  .rank_seconds = any(4) == 0 ? 1e-3 * (1 + any(3)) : 0}));
  }
  return records;
}

class MergeOrderTest : public MergeTest, public ::testing::WithParamInterface<unsigned> {};

TEST_P(MergeOrderTest, EveryOrderGivesTheSameRecordsAndTheSameRanking) {
  std::mt19937 random(GetParam());
  int collisions = 0;
  Logs logs;
  std::vector<v1::Record> shared;
  for (int i = 0; i < 4; ++i) {
    const std::vector<v1::Record> records = RandomRecords(&random, shared);
    logs.push_back(NewLog(records));
    shared.insert(shared.end(), records.begin(), records.end());
  }
  std::vector<int> order = {0, 1, 2, 3};
  std::string expected;
  do {
    auto merged = NewLog();
    for (const int i : order) {
      const TransferCounts counts = Merge(*logs[i], merged.get());
      EXPECT_EQ(counts.added + counts.known, static_cast<int64_t>(logs[i]->List({})->size()));
      collisions += static_cast<int>(counts.namesakes);
    }
    const std::string state = StateOf(*merged);
    if (expected.empty()) expected = state;
    ASSERT_EQ(state, expected) << "order " << testing::PrintToString(order);
    EXPECT_EQ(Merge(*logs[order[0]], merged.get()).added, 0) << "repeating changes nothing";
  } while (std::next_permutation(order.begin(), order.end()));

  // In pairs, by files, and into one of them.
  auto left = NewLog(), right = NewLog(), both = NewLog();
  MoveByJson(*logs[3], left.get());
  MoveByJson(*logs[1], left.get());
  MoveByJson(*logs[2], right.get());
  Merge(*logs[0], right.get());
  MoveByJson(*right, both.get());
  MoveByJson(*left, both.get());
  EXPECT_EQ(StateOf(*both), expected);
  for (const int i : {1, 2, 3}) Merge(*logs[i], logs[0].get());
  EXPECT_EQ(StateOf(*logs[0]), expected);
  EXPECT_GT(std::ranges::count(expected, 'p'), 3) << "superseded records";
  EXPECT_GT(collisions, 30);
}
INSTANTIATE_TEST_SUITE_P(Logs, MergeOrderTest, ::testing::Values(12, 13, 14));

}  // namespace
}  // namespace mycc
