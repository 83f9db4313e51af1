// The commands of `mycc-tune log`: what they print, write and refuse.
#include "mycc_tune/log_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "db/tuning_log.h"
#include "proto/names.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class LogCommandsTest : public testing::Test {
 protected:
  template <typename Args>
  std::string Output(absl::Status (*command)(const Args&, std::ostream&), const Args& args) {
    std::ostringstream out;
    const absl::Status status = command(args, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }

  TempDir directory_;
  const std::string log_ = MakeMixedLog(directory_, "tuning.db", kWholeTarget);
};

TEST_F(LogCommandsTest, StatsCountWhatTheLogHolds) {
  const std::string text = Output<LogStatsArgs>(LogStatsCommand, {.log = log_});
  EXPECT_THAT(text, HasSubstr(": 5 records of 2 workloads on 1 target,"));
  EXPECT_THAT(text, HasSubstr("run_error        1  20.0 %"));
  EXPECT_THAT(text, HasSubstr("add_one " + WorkloadHashOf(64).substr(0, 12) +
                              "        4       3   1.000 ms          -"));
  const json stats = json::parse(Output<LogStatsArgs>(LogStatsCommand, {.log = log_, .json = true}));
  EXPECT_EQ(stats["records"], 5);
  EXPECT_EQ(stats["statuses"]["ok"], 4);
  EXPECT_EQ(stats["keys"][0]["best_warm_seconds"], 1e-3);
  EXPECT_EQ(stats["keys"][0]["best_cold_seconds"], nullptr);
  EXPECT_EQ(stats["keys"][0]["best_model_seconds"], nullptr);
  EXPECT_EQ(stats["keys"][1]["workload_hash"], WorkloadHashOf(65));
}

TEST_F(LogCommandsTest, StatsOfKernelsOfAModel) {
  const std::string path = MakeLog(directory_, "model.db", 0);
  ASSERT_TRUE(TuningLog::Open(path, OpenMode::kCreate)
                  .value()
                  ->Append({MakeRecord({.seconds = 2e-3, .protocol = v1::TIMING_PROTOCOL_MODEL})})
                  .ok());
  const json key = json::parse(Output<LogStatsArgs>(LogStatsCommand, {.log = path, .json = true}))["keys"][0];
  EXPECT_EQ(key["ranked"], 1);
  EXPECT_EQ(key["best_warm_seconds"], nullptr);
  EXPECT_EQ(key["best_model_seconds"], 2e-3);
  EXPECT_THAT(Output<LogStatsArgs>(LogStatsCommand, {.log = path}), HasSubstr("best model"));
}

TEST_F(LogCommandsTest, StatsOfAnEmptyLog) {
  const std::string path = MakeLog(directory_, "empty.db", 0);
  EXPECT_THAT(Output<LogStatsArgs>(LogStatsCommand, {.log = path}), HasSubstr("0 records of 0 workloads"));
  EXPECT_EQ(json::parse(Output<LogStatsArgs>(LogStatsCommand, {.log = path, .json = true}))["records"], 0);
}

TEST_F(LogCommandsTest, ListShowsALineForEachRecord) {
  const std::string text = Output<LogListArgs>(LogListCommand, {.log = log_, .filter = {}});
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_THAT(lines[0], HasSubstr("id  recorded (UTC)"));
  EXPECT_THAT(lines[1], HasSubstr("--  -----"));
  EXPECT_THAT(lines[2], HasSubstr(" 1  2023-11-14 22:13:22Z  ok         1.000 ms  +-1.0 %  1.000 ms  warm"));
  EXPECT_THAT(lines[5], HasSubstr("run_error         -"));
  RecordFilter filter{.statuses = {v1::MEASURE_STATUS_OK}, .newest_first = true, .limit = 2};
  std::istringstream rows(Output<LogListArgs>(LogListCommand, {.log = log_, .filter = filter, .json = true}));
  std::string row;
  std::vector<int> ids;
  while (std::getline(rows, row)) ids.push_back(json::parse(row)["id"]);
  EXPECT_EQ(ids, (std::vector<int>{5, 3}));
}

TEST_F(LogCommandsTest, ShowTellsEverythingAboutARecord) {
  const std::string text = Output<LogShowArgs>(LogShowCommand, {.log = log_, .record = "4"});
  for (const char* words :
       {"record        4, trial j0000000000000001/0/0/3, attempt 1", "status        run_error",
        "build 250.000 ms", "error:\nline 1\nline \"2\"", "to reproduce:\nmycc-tune reproduce --trial x\n",
        "trace:\nv1\nsplit(i, 3)\n", "workload:\nv1 workload w(",
        "generation 0, candidate 3, by evolutionary with seed 18446744073709551615"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  EXPECT_THAT(Output<LogShowArgs>(LogShowCommand, {.log = log_, .record = MakeRecord({.index = 1}).trial()}),
              HasSubstr("time          2.000 ms +-1.0 %, warm caches, 3 samples, timer 1"));
  EXPECT_EQ(json::parse(Output<LogShowArgs>(LogShowCommand,
                                            {.log = log_, .record = "1", .json = true}))["result"]["status"],
            "ok");
  std::ostringstream out;
  EXPECT_EQ(LogShowCommand({.log = log_, .record = "77"}, out).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(LogShowCommand({.log = log_, .record = "x/y"}, out).code(), absl::StatusCode::kNotFound);
}

TEST_F(LogCommandsTest, WhatIsNotProvenIsShownSo) {
  {
    auto log = TuningLog::Open(log_, OpenMode::kWrite);
    ASSERT_TRUE((*log)
                    ->Append({MakeRecord({.index = 90, .launches = 40, .strained_launches = 9}),
                              MakeRecord({.index = 91, .launches = 40, .strained_launches = 20})})
                    .ok());
  }
  EXPECT_THAT(Output<LogShowArgs>(LogShowCommand, {.log = log_, .record = "6"}),
              HasSubstr("40 launches left the same bits, 9 of them under strain"));
  RecordFilter filter{.newest_first = true, .limit = 2};
  const std::string text = Output<LogListArgs>(LogListCommand, {.log = log_, .filter = filter});
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[2], Not(HasSubstr("not proven")));
  EXPECT_THAT(lines[3], HasSubstr("not proven"));
}

TEST_F(LogCommandsTest, WhatIsExportedCanBeImported) {
  const std::string file = directory_ / "export.jsonl";
  EXPECT_EQ(Output<LogExportArgs>(LogExportCommand, {.log = log_, .filter = {}, .output = file}),
            file + ": 5 records of " + log_ + "\n");
  const std::string copy = directory_ / "copy.db";
  EXPECT_THAT(Output<LogImportArgs>(LogImportCommand, {.log = copy, .inputs = {file, file}}),
              HasSubstr("0 records added to " + copy + ", 5 known already"));
  EXPECT_EQ(Output<LogExportArgs>(LogExportCommand, {.log = copy, .filter = {}}), ReadBytes(file));
  EXPECT_EQ(json::parse(Output<LogExportArgs>(LogExportCommand,
                                              {.log = copy, .filter = {}, .format = "t4"}))["results"]
                .size(),
            5u);
  EXPECT_EQ(Snapshot(directory_.path()).size(), 3u);
}

TEST_F(LogCommandsTest, AnExportGoesWhereItWasAsked) {
  std::filesystem::create_directory(directory_ / "elsewhere");
  std::filesystem::create_symlink("elsewhere/export.jsonl", directory_ / "link");
  Output<LogExportArgs>(LogExportCommand, {.log = log_, .filter = {}, .output = directory_ / "link"});
  const std::string data = Output<LogExportArgs>(LogExportCommand, {.log = log_, .filter = {}});
  EXPECT_EQ(ReadBytes(directory_ / "elsewhere/export.jsonl"), data);
  EXPECT_TRUE(std::filesystem::is_symlink(directory_ / "link"));
  for (const char* output : {"-", "/dev/stdout"})
    EXPECT_EQ(Output<LogExportArgs>(LogExportCommand, {.log = log_, .filter = {}, .output = output}), data);
  EXPECT_EQ(Output<LogExportArgs>(LogExportCommand, {.log = log_, .filter = {}, .output = "/dev/null"}),
            "/dev/null: 5 records of " + log_ + "\n");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  std::ostringstream out;
  const absl::Status full = LogExportCommand({.log = log_, .filter = {}, .output = "/dev/full"}, out);
  EXPECT_THAT(std::string(full.message()), HasSubstr("No space left on device"));
}

TEST_F(LogCommandsTest, ARecordForWhatIsNoTargetIsNotImported) {
  const std::string path = MakeLog(directory_, "from.db", 1, kWholeTarget), file = directory_ / "one.jsonl";
  Output<LogExportArgs>(LogExportCommand, {.log = path, .output = file});
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::ofstream(file) << absl::StrReplaceAll(text.str(), {{"mcpu=", "mcpu=no-such-"}});
  std::ostringstream out;
  const absl::Status status = LogImportCommand({.log = directory_ / "into.db", .inputs = {file}}, out);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("one.jsonl:2: key \"target\": target: unknown mcpu"));
}

TEST_F(LogCommandsTest, AnImportThatFailsLeavesNoLogThatItHasMade) {
  const std::string file = directory_ / "export.jsonl", fresh = directory_ / "fresh.db";
  Output<LogExportArgs>(LogExportCommand, {.log = log_, .filter = {}, .output = file});
  WriteBytes(directory_ / "bad.jsonl", "not a line\n");
  std::ostringstream out;
  for (const std::string& input : {directory_ / "bad.jsonl", directory_ / "none.jsonl", directory_.path()}) {
    EXPECT_FALSE(LogImportCommand({.log = fresh, .inputs = {input}}, out).ok());
    EXPECT_FALSE(std::filesystem::exists(fresh)) << input;
  }
  // Records of the first file stay, and so does a log that was there.
  EXPECT_FALSE(LogImportCommand({.log = fresh, .inputs = {file, directory_ / "bad.jsonl"}}, out).ok());
  EXPECT_EQ(TuningLog::Open(fresh, OpenMode::kRead).value()->List({})->size(), 5u);
  const std::string empty = MakeLog(directory_, "empty.db", 0);
  EXPECT_FALSE(LogImportCommand({.log = empty, .inputs = {directory_ / "bad.jsonl"}}, out).ok());
  EXPECT_TRUE(std::filesystem::exists(empty));
}

TEST_F(LogCommandsTest, AnExportThatFailsLeavesNothing) {
  std::ostringstream out;
  EXPECT_EQ(LogExportCommand({.log = log_, .filter = {}, .format = "csv"}, out).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(
      LogExportCommand({.log = log_, .filter = {}, .output = directory_ / "no/such.jsonl"}, out).ok());
  std::filesystem::create_directory(directory_ / "folder");
  EXPECT_FALSE(LogExportCommand({.log = log_, .filter = {}, .output = directory_ / "folder"}, out).ok());
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(Snapshot(directory_.path()).size(), 1u);
}

TEST_F(LogCommandsTest, MergeJoinsLogsAndTouchesNoneOfThem) {
  const std::string other = directory_ / "other.db";
  {
    auto log = TuningLog::Open(other, OpenMode::kCreate);
    ASSERT_TRUE((*log)
                    ->Append({MakeRecord({.index = 0, .target = kWholeTarget}),
                              MakeRecord({.index = 70, .target = kWholeTarget, .seconds = 1e-5})})
                    .ok());
  }
  const auto before = Snapshot(directory_.path());
  const std::string all = directory_ / "all.db";
  const std::string text = Output<LogMergeArgs>(LogMergeCommand, {.log = all, .inputs = {log_, other}});
  EXPECT_THAT(text, HasSubstr(log_ + ": 5 records added"));
  EXPECT_THAT(text, HasSubstr(other + ": 1 record added to " + all + ", 1 known already"));
  auto after = Snapshot(directory_.path());
  after.erase("all.db");
  EXPECT_EQ(after, before);
  std::ostringstream out;
  WriteBytes(directory_ / "not.db", "not a log");
  EXPECT_FALSE(
      LogMergeCommand({.log = directory_ / "fresh.db", .inputs = {log_, directory_ / "not.db"}}, out).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "fresh.db"));
}

TEST_F(LogCommandsTest, MergeSaysHowManyNamesCameTwice) {
  const std::string other = directory_ / "other.db";
  {
    auto log = TuningLog::Open(other, OpenMode::kCreate);
    ASSERT_TRUE((*log)
                    ->Append({MakeRecord({.index = 0, .target = kWholeTarget}),
                              MakeRecord({.index = 1, .target = kWholeTarget, .trace = "v1 elsewhere"})})
                    .ok());
  }
  EXPECT_THAT(
      Output<LogMergeArgs>(LogMergeCommand, {.log = log_, .inputs = {other}}),
      HasSubstr(other + ": 1 record added to " + log_ + ", 1 known already, 0 pins and bans taken over; " +
                "1 of those added have the name of another result, and are kept beside it\n"));
}

TEST_F(LogCommandsTest, PinsAndBansNeedAReason) {
  std::ostringstream out;
  EXPECT_EQ(LogOverrideCommand({.log = log_, .record = "3"}, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      Output<LogOverrideArgs>(LogOverrideCommand, {.log = log_, .record = "3", .reason = "steady \xff"}),
      "record 3 of add_one is now pinned\n");
  EXPECT_THAT(Output<LogListArgs>(LogListCommand, {.log = log_, .filter = {}}), HasSubstr("pinned"));
  EXPECT_THAT(Output<LogShowArgs>(LogShowCommand, {.log = log_, .record = "3", .json = true}),
              HasSubstr("steady \xef\xbf\xbd"));
  Output<LogOverrideArgs>(LogOverrideCommand,
                          {.log = log_, .record = "1", .kind = OverrideKind::kBan, .reason = "hangs"});
  EXPECT_THAT(Output<LogShowArgs>(LogShowCommand, {.log = log_, .record = "1"}),
              HasSubstr("by record 1: hangs"));
  EXPECT_EQ(Output<LogOverrideArgs>(LogOverrideCommand,
                                    {.log = log_, .record = "1", .kind = OverrideKind::kBan, .clear = true}),
            "record 1 of add_one is now neither pinned nor banned\n");
  EXPECT_THAT(Output<LogShowArgs>(LogShowCommand, {.log = log_, .record = "1"}), Not(HasSubstr("hangs")));
  EXPECT_EQ(LogOverrideCommand({.log = log_, .record = "4", .reason = "x"}, out).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Snapshot(directory_.path()).size(), 1u);
}

TEST_F(LogCommandsTest, BackupAndGcSayWhatTheyDid) {
  const std::string backup = directory_ / "backup.db";
  EXPECT_EQ(Output<LogBackupArgs>(LogBackupCommand, {.log = log_, .output = backup}),
            backup + ": a backup of " + log_ + "\n");
  std::ostringstream out;
  EXPECT_EQ(LogBackupCommand({.log = log_, .output = backup}, out).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Output<LogGcArgs>(LogGcCommand, {.log = log_, .policy = {.keep_best = 1, .dry_run = true}}),
              HasSubstr("2 records, 0 ended jobs, 0 models and 0 keys would be forgotten"));
  EXPECT_THAT(Output<LogGcArgs>(LogGcCommand, {.log = log_, .policy = {.keep_best = 1}}),
              HasSubstr("2 records"));
  EXPECT_THAT(Output<LogStatsArgs>(LogStatsCommand, {.log = log_}), HasSubstr(": 3 records"));
  EXPECT_THAT(Output<LogStatsArgs>(LogStatsCommand, {.log = backup}), HasSubstr(": 5 records"));
}

TEST_F(LogCommandsTest, EveryCommandRefusesWhatIsNoLog) {
  const std::string path = directory_ / "text";
  WriteBytes(path, "not a log at all");
  std::ostringstream out;
  const auto expect_refused = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not a SQLite file"));
  };
  expect_refused(LogStatsCommand({.log = path}, out));
  expect_refused(LogListCommand({.log = path, .filter = {}}, out));
  expect_refused(LogShowCommand({.log = path, .record = "1"}, out));
  expect_refused(LogExportCommand({.log = path, .filter = {}}, out));
  expect_refused(LogImportCommand({.log = path, .inputs = {}}, out));
  expect_refused(LogMergeCommand({.log = log_, .inputs = {path}}, out));
  expect_refused(LogVerifyCommand({.log = path, .filter = {}}, nullptr, out));
  expect_refused(LogOverrideCommand({.log = path, .record = "1", .reason = "x"}, out));
  expect_refused(LogBackupCommand({.log = path, .output = directory_ / "b"}, out));
  expect_refused(LogGcCommand({.log = path, .policy = {}}, out));
  EXPECT_EQ(out.str(), "");
  EXPECT_EQ(ReadBytes(path), "not a log at all");
}

}  // namespace
}  // namespace mycc
