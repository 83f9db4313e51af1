// Export and import of a log as JSON lines, without loss, and refusals of bad lines.
#include "db/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "db/message_json.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kHeader[] = "{\"mycc_tuning_log\":1}\n";

class JsonLinesTest : public testing::Test {
 protected:
  std::unique_ptr<TuningLog> NewLog() {
    auto log = TuningLog::Open(directory_ / absl::StrCat("log", ++logs_, ".db"), OpenMode::kCreate);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  static std::string Export(const TuningLog& log) {
    std::ostringstream out;
    EXPECT_TRUE(ExportJsonLines(log, {}, out).ok());
    return out.str();
  }
  static absl::StatusOr<TransferCounts> Import(const std::string& text, TuningLog* log) {
    std::istringstream in(text);
    return ImportJsonLines(in, "in.jsonl", log);
  }
  // A log with a record of every status, odd numbers, a pin and a ban.
  std::unique_ptr<TuningLog> FullLog() {
    auto log = NewLog();
    std::vector<v1::Record> records;
    for (int status = v1::MEASURE_STATUS_OK; status <= v1::MEASURE_STATUS_WORKER_UNFIT; ++status) {
      records.push_back(MakeRecord({.index = status, .status = static_cast<v1::MeasureStatus>(status)}));
    }
    v1::Verification& odd = *records[5].mutable_result()->mutable_verification();
    odd.set_max_abs_error(std::numeric_limits<double>::quiet_NaN());
    odd.set_max_rel_error(std::numeric_limits<double>::infinity());
    records.push_back(MakeRecord({.index = 20, .shape = 128, .seconds = 0.1 + 0.2}));
    records.push_back(MakeRecord(
        {.index = 21, .target = kOtherTarget, .seconds = std::numeric_limits<double>::denorm_min()}));
    v1::Record sparse = MakeRecord({.index = 22, .status = v1::MEASURE_STATUS_BUILD_ERROR});
    sparse.clear_result();
    sparse.mutable_result()->set_status(v1::MEASURE_STATUS_BUILD_ERROR);
    sparse.mutable_result()->mutable_device();
    sparse.clear_provenance();
    sparse.clear_workload_name();
    records.push_back(sparse);
    EXPECT_TRUE(log->Append(records).ok());
    EXPECT_TRUE(log->SetOverride(1, OverrideKind::kPin, "a \"quoted\"\nreason").ok());
    EXPECT_TRUE(log->SetOverride(12, OverrideKind::kBan, "").ok());
    return log;
  }

  TempDir directory_;
  int logs_ = 0;
};

TEST_F(JsonLinesTest, AnExportImportedIsTheSameLog) {
  auto log = FullLog();
  const std::string text = Export(*log);
  auto copy = NewLog();
  auto counts = Import(text, copy.get());
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->added, 13);
  EXPECT_EQ(counts->overrides, 2);
  EXPECT_EQ(Export(*copy), text);
  auto before = log->List({});
  auto after = copy->List({});
  ASSERT_EQ(before->size(), after->size());
  for (size_t i = 0; i < before->size(); ++i) {
    EXPECT_TRUE(SameMessage((*before)[i].record, (*after)[i].record)) << (*after)[i].record.DebugString();
    EXPECT_EQ((*before)[i].superseded, (*after)[i].superseded);
  }
  EXPECT_EQ(copy->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->override_by->reason, "a \"quoted\"\nreason");
  EXPECT_FALSE(copy->Best(KeyOf({.target = kOtherTarget}), v1::TIMING_PROTOCOL_WARM).ok());
}

TEST_F(JsonLinesTest, ImportingTwiceAddsNothing) {
  auto log = FullLog();
  const std::string text = Export(*log);
  auto counts = Import(text + text, log.get());  // joined files are a file
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->added, 0);
  EXPECT_EQ(counts->known, 26);
  EXPECT_EQ(counts->overrides, 0);
  EXPECT_EQ(Export(*log), text);
}

// The keys are promised to users: this text is read for ever.
TEST_F(JsonLinesTest, KeysAreWordsAndNumbersAreNumbers) {
  auto log = NewLog();
  ASSERT_TRUE(log->Append({MakeRecord({.index = 1})}).ok());
  std::istringstream lines(Export(*log));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line + "\n", kHeader);
  std::getline(lines, line);
  const json record = json::parse(line)["record"];
  EXPECT_EQ(record["trial"], "j0000000000000001/0/0/1");
  EXPECT_EQ(record["result"]["status"], "ok");
  EXPECT_EQ(record["result"]["timing"]["protocol"], "warm");
  EXPECT_EQ(record["result"]["timing"]["seconds"], 1e-3);
  EXPECT_EQ(record["result"]["timing"]["samples_seconds"].size(), 3u);
  EXPECT_EQ(record["result"]["verification"]["seeds"][1], UINT64_MAX);
  EXPECT_EQ(record["result"]["resources"]["spill_bytes"], 0);            // known to be none
  EXPECT_FALSE(record["result"]["resources"].contains("shared_bytes"));  // not known
  EXPECT_EQ(record["provenance"]["seed"], UINT64_MAX);
}

TEST_F(JsonLinesTest, RefusesBadLinesByTheirNumberAndKeepsNothing) {
  auto log = FullLog();
  const std::string good = Export(*log);
  const json line =
      json::parse(absl::StrCat("{\"record\":", MessageToJson(MakeRecord({.index = 50})).dump(), "}"));
  const auto with = [&](const char* pointer, const json& value) {
    json changed = line;
    changed[json::json_pointer(pointer)] = value;
    return changed.dump();
  };
  const auto without = [&](const char* pointer) {
    json changed = line;
    json patch = json::array({{{"op", "remove"}, {"path", pointer}}});
    return changed.patch(patch).dump();
  };
  const std::pair<std::string, std::string> cases[] = {
      {"{", "expected one JSON object"},
      {"[]", "expected one JSON object"},
      {"{\"record\":{},\"pin\":{}}", "expected one JSON object"},
      {"{\"recrod\":{}}", "unknown key \"recrod\"; expected record, pin or ban"},
      {"{\"mycc_tuning_log\":2}", "format version 2; this mycc-tune reads version 1"},
      {"{\"mycc_tuning_log\":[1]}", "format version of the wrong type"},
      {"{\"record\":7}", "expected an object, found 7"},
      {with("/record/note", "x"), "unknown key \"note\""},
      {with("/record/result/timing/secs", 1), "unknown key \"result.timing.secs\""},
      {with("/record/result/status", "fine"), "key \"result.status\": expected one of ok, build_error"},
      {with("/record/result/status", 0), "result.status is 0; expected a known status"},
      {with("/record/result/status", 77), "result.status is 77; expected a known status"},
      {with("/record/result/timing/seconds", "fast"),
       "key \"result.timing.seconds\": expected a number, found \"fast\""},
      {with("/record/result/timing/seconds", -1), "result.timing.seconds is -1; expected a positive number"},
      {with("/record/result/timing/seconds", "nan"),
       "result.timing.seconds is nan; expected a positive number"},
      {with("/record/result/timing/seconds", 1e-9), "lies outside of its interval; expected a number from "},
      {with("/record/result/timing/samples_seconds", json::array({1.0, 2.0})),
       "does not fit \"samples_seconds\"; expected their median, from 1 to 2"},
      {with("/record/result/timing/seconds", nullptr), "expected a number, found null"},
      {with("/record/result/timing/samples_seconds", 1), "expected an array, found 1"},
      {with("/record/result/timing/samples_seconds/1", "x"), "expected numbers, found \"x\""},
      {with("/record/result/timing/timer_version", 1ull << 32),
       "expected an unsigned 32-bit integer, found 4294967296"},
      {with("/record/result/timing/timer_version", -1), "expected an unsigned 32-bit integer, found -1"},
      {with("/record/result/timing/timer_version", 1.5), "expected an unsigned 32-bit integer, found 1.5"},
      {with("/record/result/timing", json::array()),
       "key \"result.timing\": expected an object, found an array"},
      {with("/record/created_unix_micros", UINT64_MAX), "expected a 64-bit integer"},
      {with("/record/result/verification/passed", 1), "expected true or false, found 1"},
      {with("/record/trial", ""), "record field trial is empty"},
      {with("/record/trace", json::object()), "key \"trace\": expected a text, found an object"},
      {with("/record/target", 1), "key \"target\": expected a text, found 1"},
      {without("/record/target"), "record field target is empty"},
      {without("/record/result"), "result.status is 0"},
      {with("/record/workload", "v1 another"), "key \"workload_hash\": expected the SHA-256 of \"workload\""},
      {with("/record/shape_erased_hash", "00"), "already stands for another workload"},
      {"{\"pin\":{\"trial\":\"nobody\",\"reason\":\"\",\"made_unix_micros\":1}}",
       "no record of trial \"nobody\""},
      {"{\"pin\":{\"trial\":\"x\"}}", "\"pin\": expected an object with"},
      {"{\"ban\":[1,2,3]}", "\"ban\": expected an object with"},
      {absl::StrCat("{\"record\":", std::string(100000, '['), "}"), "expected one JSON object"},
      {absl::StrCat("{\"record\":{\"trace\":", std::string(100000, '['), std::string(100000, ']'), "}}"),
       "found an array"},
      {"{\"record\":{\"trial\":\"\xff\"}}", "expected one JSON object"},
  };
  const std::string before = Export(*log);
  const std::string fresh = with("/record/trial", "j0000000000000001/0/0/51");
  for (const auto& [bad, words] : cases) {
    const absl::Status status = Import(absl::StrCat(kHeader, fresh, "\n\n", bad, "\n"), log.get()).status();
    EXPECT_FALSE(status.ok()) << bad.substr(0, 200);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(std::string(status.message()).rfind("in.jsonl:4: ", 0), 0u) << status;
    EXPECT_LT(status.message().size(), 400u);
    EXPECT_EQ(Export(*log), before);
  }
}

TEST_F(JsonLinesTest, RefusesAFileThatIsNoExport) {
  auto log = NewLog();
  EXPECT_THAT(std::string(Import("", log.get()).status().message()), HasSubstr("in.jsonl: is empty"));
  EXPECT_THAT(std::string(Import("\n\n", log.get()).status().message()), HasSubstr("is empty"));
  const absl::Status headless = Import("{\"record\":{}}\n", log.get()).status();
  EXPECT_THAT(std::string(headless.message()),
              HasSubstr("in.jsonl:1: expected {\"mycc_tuning_log\":1} first"));
  EXPECT_TRUE(Import(kHeader, log.get()).ok());
  EXPECT_TRUE(Import("{\"mycc_tuning_log\":1}\r\n", log.get()).ok());
}

TEST_F(JsonLinesTest, AByteOrderMarkMayStandFirst) {
  auto log = FullLog();
  auto copy = NewLog();
  const auto counts = Import("\xef\xbb\xbf" + Export(*log), copy.get());
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(Export(*copy), Export(*log));
}

TEST_F(JsonLinesTest, ALineWithoutEndIsRefusedByItsLength) {
  auto log = NewLog();
  std::ifstream endless("/dev/zero", std::ios::binary);
  const absl::Status status = ImportJsonLines(endless, "/dev/zero", log.get()).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/dev/zero:1: the line is too long; expected at most 64 MiB"));
}

// Around the size of the pieces in which lines are read.
TEST_F(JsonLinesTest, LinesOfAnyLengthAreReadWhole) {
  for (const size_t spaces : {0, 1, 16380, 16381, 16382, 16383, 16384, 32766, 32767, 100000}) {
    auto log = NewLog();
    const std::string padding(spaces, ' ');
    EXPECT_TRUE(Import(padding + kHeader, log.get()).ok()) << spaces;
    const absl::Status second = Import(absl::StrCat(kHeader, padding, "x"), log.get()).status();
    EXPECT_EQ(std::string(second.message()).rfind("in.jsonl:2: ", 0), 0u) << spaces << ": " << second;
  }
}

TEST_F(JsonLinesTest, AnyBytesAreImportedOrRefused) {
  auto source = FullLog();
  const std::string text = Export(*source);
  std::mt19937 random(5);
  auto log = NewLog();
  int accepted = 0;
  for (int round = 0; round < 700; ++round) {
    std::string mangled = text;
    for (int edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % mangled.size();
      switch (random() % 4) {
        case 0: mangled[at] = static_cast<char>(random()); break;
        case 1: mangled.erase(at, 1 + random() % 30); break;
        case 2: mangled.insert(at, text.substr(random() % text.size(), random() % 30)); break;
        default: mangled[at] = "0123456789.-+eE\"{}[],:\\"[random() % 23];
      }
    }
    auto counts = Import(mangled, log.get());
    accepted += counts.ok();
    if (counts.ok()) {  // accepted lines can be exported and imported again
      auto copy = NewLog();
      const std::string exported = Export(*log);
      ASSERT_TRUE(Import(exported, copy.get()).ok()) << Import(exported, copy.get()).status();
      ASSERT_EQ(Export(*copy), exported);
      log = NewLog();
    }
  }
  EXPECT_GT(accepted, 10);
  EXPECT_LT(accepted, 1490);
}

TEST_F(JsonLinesTest, AnyMessageSurvivesJson) {
  std::mt19937_64 random(6);
  const auto number = [&] {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  };
  for (int round = 0; round < 500; ++round) {
    v1::Record record = MakeRecord({.index = round});
    v1::Timing& timing = *record.mutable_result()->mutable_timing();
    timing.clear_samples_seconds();
    for (int i = 0; i < 20; ++i) timing.add_samples_seconds(number());
    timing.set_seconds(number());
    record.mutable_result()->mutable_verification()->set_elements_checked(random());
    record.set_created_unix_micros(static_cast<int64_t>(random()));
    record.mutable_result()->mutable_device()->set_temperature_celsius(0);
    v1::Record again;
    const json parsed = json::parse(MessageToJson(record).dump());
    ASSERT_TRUE(MessageFromJson(parsed, &again).ok());
    ASSERT_TRUE(SameMessage(record, again)) << parsed;
  }
}

TEST_F(JsonLinesTest, MergingKeepsEveryRecordOnceInAnyOrder) {
  auto a = NewLog();
  auto b = NewLog();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(a->Append({MakeRecord({.index = i, .seconds = 1e-3 * (1 + i % 7)})}).ok());
    ASSERT_TRUE(b->Append({MakeRecord({.index = i + 10, .seconds = 1e-3 * (1 + (i + 10) % 7)})}).ok());
  }
  auto ab = NewLog();
  auto ba = NewLog();
  EXPECT_EQ(MergeLog(*a, ab.get())->added, 20);
  auto counts = MergeLog(*b, ab.get());
  EXPECT_EQ(counts->added, 10);
  EXPECT_EQ(counts->known, 10);
  ASSERT_TRUE(MergeLog(*b, ba.get()).ok() && MergeLog(*a, ba.get()).ok());
  EXPECT_EQ(ab->List({})->size(), 30u);
  EXPECT_EQ(ba->List({})->size(), 30u);
  EXPECT_EQ(MergeLog(*ab, ba.get())->added, 0);
  EXPECT_EQ(ab->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->record.result().timing().seconds(), 1e-3);
}

TEST_F(JsonLinesTest, MergedPinsAndBansAreTheNewestWords) {
  for (bool newer_first : {false, true}) {
    int64_t now = 100;
    const auto clocked = [&] {
      auto log = *TuningLog::Open(directory_ / absl::StrCat("clocked", ++logs_), OpenMode::kCreate,
                                  [&] { return now; });
      EXPECT_TRUE(log->Append({MakeRecord({.index = 1}), MakeRecord({.index = 2})}).ok());
      return log;
    };
    auto older = clocked();
    auto newer = clocked();
    ASSERT_TRUE(older->SetOverride(1, OverrideKind::kPin, "old pin").ok());
    now = 200;
    ASSERT_TRUE(newer->SetOverride(2, OverrideKind::kPin, "new pin").ok());
    ASSERT_TRUE(newer->SetOverride(1, OverrideKind::kBan, "new ban").ok());
    auto merged = NewLog();
    ASSERT_TRUE(MergeLog(newer_first ? *newer : *older, merged.get()).ok());
    ASSERT_TRUE(MergeLog(newer_first ? *older : *newer, merged.get()).ok());
    EXPECT_EQ(merged->Get(1)->override_by->reason, "new ban");
    EXPECT_EQ(merged->Get(2)->override_by->reason, "new pin");
    EXPECT_EQ(merged->Get(2)->override_by->made_unix_micros, 200);
  }
}

}  // namespace
}  // namespace mycc
