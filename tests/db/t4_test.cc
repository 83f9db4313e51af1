// The export in the T4 format.
#include "db/t4.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/db/test_log.h"

namespace mycc {
namespace {

using nlohmann::json;

// Checks what the published schema of T4 results 1.0.0 demands of a result.
void ExpectResult(const json& result) {
  ASSERT_TRUE(result.is_object());
  EXPECT_TRUE(result["timestamp"].is_string());
  EXPECT_TRUE(result["configuration"].is_object());
  EXPECT_TRUE(result["objectives"].is_array());
  ASSERT_TRUE(result["times"].is_object());
  EXPECT_TRUE(result["times"]["compilation_time"].is_number());
  EXPECT_TRUE(result["times"]["runtimes"].is_array());
  EXPECT_TRUE(result["correctness"].is_number());
  const json words = {"timeout", "compile", "runtime", "correctness", "constraints", "correct"};
  EXPECT_NE(std::ranges::find(words, result["invalidity"]), words.end()) << result["invalidity"];
  ASSERT_TRUE(result["measurements"].is_array());
  for (const json& measurement : result["measurements"]) {
    EXPECT_TRUE(measurement["name"].is_string() && measurement["unit"].is_string());
    EXPECT_TRUE(measurement["value"].is_number());
  }
}

TEST(T4Test, EveryOutcomeHasItsWordAndLostDevicesAreLeftOut) {
  TempDir directory;
  auto log = TuningLog::Open(directory / "tuning.db", OpenMode::kCreate);
  for (int status = v1::MEASURE_STATUS_OK; status <= v1::MEASURE_STATUS_WORKER_UNFIT; ++status) {
    v1::Record record =
        MakeRecord({.index = status, .status = static_cast<v1::MeasureStatus>(status), .seconds = 2e-3});
    record.mutable_result()->mutable_verification()->set_max_abs_error(1.0 / 0.0);
    ASSERT_TRUE((*log)->Append({record}).ok());
  }
  std::ostringstream out;
  auto count = ExportT4(**log, {}, out);
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(*count, 7);
  const json document = json::parse(out.str());
  EXPECT_EQ(document["schema_version"], "1.0.0");
  ASSERT_EQ(document["results"].size(), 7u);
  std::vector<std::string> words;
  for (const json& result : document["results"]) {
    ExpectResult(result);
    words.push_back(result["invalidity"]);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"correct", "compile", "timeout", "runtime", "timeout",
                                             "correctness", "runtime"}));
  const json& ok = document["results"][0];
  EXPECT_EQ(ok["timestamp"], "2023-11-14T22:13:21+00:00");
  EXPECT_EQ(ok["configuration"]["trace"], "v1\nsplit(i, 1)\n");
  EXPECT_EQ(ok["configuration"]["target"], kTarget);
  EXPECT_EQ(ok["correctness"], 1);
  EXPECT_EQ(document["results"][1]["correctness"], 0);
  EXPECT_EQ(ok["times"]["compilation_time"], 250.0);  // milliseconds
  EXPECT_EQ(ok["times"]["runtimes"][1], 2.0);
  EXPECT_EQ(ok["measurements"][0]["name"], "time");
  EXPECT_EQ(ok["measurements"][0]["value"], 2.0);
  EXPECT_EQ(ok["measurements"][0]["unit"], "ms");
}

TEST(T4Test, AnEmptyLogIsAnEmptyDocument) {
  TempDir directory;
  auto log = TuningLog::Open(directory / "tuning.db", OpenMode::kCreate);
  std::ostringstream out;
  EXPECT_EQ(*ExportT4(**log, {}, out), 0);
  EXPECT_TRUE(json::parse(out.str())["results"].empty());
}

}  // namespace
}  // namespace mycc
