// `mycc-tune simulate` on small files that the test writes: its tables, JSON and curves, and what it refuses.
#include "mycc_tune/simulate_command.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "command/misuse.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A cache file as Kernel Tuner writes it: x of 8 values, y of 6; x * y of more than 600 is no part of the
// space, and y of 32 fails with z.
std::string CacheFile(const std::string& device, double best_x) {
  const int xs[] = {1, 2, 4, 8, 16, 32, 64, 128}, ys[] = {1, 2, 4, 8, 16, 32};
  nlohmann::ordered_json file = {{"device_name", device},
                                 {"kernel_name", "scale"},
                                 {"tune_params_keys", {"x", "y", "z"}},
                                 {"tune_params", {{"x", xs}, {"y", ys}, {"z", {0, 1}}}},
                                 {"cache", nlohmann::ordered_json::object()}};
  for (const int x : xs) {
    for (const int y : ys) {
      for (const int z : {0, 1}) {
        if (x * y > 600) continue;
        const double off = std::log2(x / best_x), off_y = std::log2(y / 4.0);
        const double ms = (1 + 0.2 * off * off + 0.1 * off_y * off_y) * (z == 1 ? 1 : 1.25);
        nlohmann::ordered_json entry = {{"x", x}, {"y", y}, {"z", z}, {"compile_time", 200.0}};
        if (y == 32 && z == 1) {
          entry["time"] = "CompilationFailedConfig";
        } else {
          entry["time"] = ms;
          entry["times"] = {0.98 * ms, ms, 1.02 * ms};
        }
        file["cache"][absl::StrCat(x, ",", y, ",", z)] = entry;
      }
    }
  }
  return file.dump();
}

class SimulateCommandTest : public ::testing::Test {
 protected:
  SimulateCommandTest() : folder_(TemporaryFolder::Create().value()) {
    options_.config.budgets = {10, 30};
    options_.config.seeds = 8;
    options_.config.generation_size = 5;
  }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(folder_.path(), "/", name);
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }
  // The output, or the error after "error: ".
  std::string Run() {
    std::ostringstream out;
    status_ = SimulateCommand(options_, out);
    return status_.ok() ? out.str() : absl::StrCat("error: ", status_.message());
  }

  const TemporaryFolder folder_;
  SimulateOptions options_;
  absl::Status status_;
};

TEST_F(SimulateCommandTest, PrintsTablesOfEvaluationsAndSeconds) {
  options_.results = {Write("a.json", CacheFile("gpu a", 16))};
  options_.config.strategies = {"evolutionary", "random"};
  options_.config.noise = true;
  const std::string text = Run();
  EXPECT_THAT(text, HasSubstr("medians of 8 seeds with their 95 % confidence intervals"));
  EXPECT_THAT(text, HasSubstr("scale on gpu a\n  84 configurations of 96, 3 parameters; 5 fail"));
  for (const char* name : {"\nevolutionary  ", "\nevolutionary, noise  ", "\nrandom  ", "\nrandom, noise  ",
                           "\nuniform draws, exact  "})
    EXPECT_THAT(text, HasSubstr(name));
  EXPECT_THAT(text, HasSubstr("evaluations to 0.95"));
  EXPECT_THAT(text, HasSubstr("time to 0.95"));
  EXPECT_THAT(text, Not(HasSubstr("all 1 spaces")));
}

TEST_F(SimulateCommandTest, EachDeviceIsWarmStartedFromTheOthers) {
  options_.results = {Write("a.json", CacheFile("a", 16)), Write("b.json", CacheFile("b", 32)),
                      Write("c.json", CacheFile("c", 8))};
  options_.leave_one_out = true;
  options_.json = true;
  const auto json = nlohmann::json::parse(Run());
  ASSERT_EQ(json["spaces"].size(), 3u);
  for (const auto& space : json["spaces"]) {
    ASSERT_EQ(space["results"].size(), 2u);
    EXPECT_EQ(space["results"][1]["warm"], true);
    EXPECT_EQ(space["results"][0]["curve"].size(), 30u);
    EXPECT_EQ(space["exact_random"].size(), 2u);
  }
  // The others' tastes lie on both sides of the first device's.
  const auto& first = json["spaces"][0]["results"];
  EXPECT_GE(first[1]["by_evaluations"][0]["fraction"]["median"],
            first[0]["by_evaluations"][0]["fraction"]["median"]);
  ASSERT_EQ(json["geometric_means"].size(), 2u);
  EXPECT_EQ(json["geometric_means"][0]["by_evaluations"].size(), 2u);
  // The option --warm names the others.
  options_.warm = {options_.results[1], options_.results[2]};
  options_.results = {options_.results[0]};
  options_.leave_one_out = false;
  const auto named = nlohmann::json::parse(Run());
  EXPECT_EQ(named["spaces"][0], json["spaces"][0]);
}

TEST_F(SimulateCommandTest, SaysWhatTheResultsLack) {
  const char kSpace[] =
      R"({"General": {"BenchmarkName": "a \"b\""}, "ConfigurationSpace": {"TuningParameters": [
    {"Name": "x", "Values": "[2**i for i in range(8)]"}, {"Name": "y", "Values": "[1, 2, 4, 8, 16, 32]"},
    {"Name": "z", "Values": "[0, 1]"}], "Conditions": [{"Expression": "x * y <= 1024"}]}})";
  options_.space = Write("t1.json", kSpace);
  options_.json = true;
  EXPECT_EQ(nlohmann::json::parse(Run()),
            nlohmann::json({{"space", "a \"b\""}, {"raw_size", 96}, {"configurations", 86 + 4}}));
  options_.results = {Write("a.json", CacheFile("a", 16))};
  options_.json = false;
  EXPECT_THAT(Run(), HasSubstr("6 of 90 configurations have no result; the search does not see them\n"));
  options_.json = true;
  const auto json = nlohmann::json::parse(Run());
  EXPECT_EQ(json["spaces"][0]["valid_configurations"], 90);
  EXPECT_EQ(json["spaces"][0]["objective"], "time");
}

TEST_F(SimulateCommandTest, ACountThatFailsNamesTheFile) {
  options_.space = Write("t1.json", R"({"ConfigurationSpace": {"TuningParameters": [
    {"Name": "x", "Values": "[0, 1]"}], "Conditions": [{"Expression": "4 % x == 0"}]}})");
  EXPECT_EQ(Run(),
            absl::StrCat("error: ", options_.space,
                         ": constraint 1, \"4 % x == 0\": column 3: `%` by zero; expected another divisor "
                         "at x = 0"));
}

// The optimum of a rate is the highest one.
TEST_F(SimulateCommandTest, PrintsAnOptimumInTheObjectivesUnit) {
  options_.results = {Write("a.json", R"({"device_name": "d", "kernel_name": "k", "objective": "GFLOP/s",
    "tune_params": {"x": [1, 2, 3]}, "cache": {"1": {"x": 1, "GFLOP/s": 50}, "2": {"x": 2, "GFLOP/s": 80},
    "3": {"x": 3, "GFLOP/s": "RuntimeFailedConfig"}}})")};
  EXPECT_THAT(Run(), HasSubstr("1 fail (33.3 %); optimum 80 GFLOP/s;"));
  options_.json = true;
  const auto space = nlohmann::json::parse(Run())["spaces"][0];
  EXPECT_EQ(space["optimum"], 80);
  EXPECT_TRUE(space["optimum_seconds"].is_null());
}

TEST_F(SimulateCommandTest, WritesCurves) {
  options_.results = {Write("a.json", CacheFile("a & b", 16))};
  options_.plot = absl::StrCat(folder_.path(), "/curves.svg");
  EXPECT_THAT(Run(), Not(HasSubstr("error: ")));
  const auto svg = ReadFile(options_.plot);
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, HasSubstr(">scale on a &amp; b</text>"));
  EXPECT_THAT(*svg, HasSubstr(">simulated seconds</text>"));
}

// It is known before the searches, whose results would be lost.
TEST_F(SimulateCommandTest, APlotThatCannotBeWrittenIsRefusedAtOnce) {
  options_.results = {Write("a.json", CacheFile("a", 16))};
  for (const std::string& plot : {std::string("/nowhere/curves.svg"), folder_.path()}) {
    options_.plot = plot;
    std::ostringstream out, drawn;
    double now = 0;
    SimulationView view(&drawn, 80, [&now] { return now += 1; });
    EXPECT_THAT(std::string(SimulateCommand(options_, out, &view).message()), HasSubstr(plot));
    EXPECT_EQ(out.str(), "");
    EXPECT_EQ(drawn.str(), "");
  }
  const std::string kept = Write("old.svg", "old");
  options_.plot = kept;
  options_.results = {absl::StrCat(folder_.path(), "/none.json")};
  EXPECT_THAT(Run(), HasSubstr("/none.json"));
  EXPECT_EQ(ReadFile(kept).value(), "old");
}

// Nothing can be evaluated after the last configuration.
TEST_F(SimulateCommandTest, BudgetsEndWithTheSpace) {
  options_.results = {Write("a.json", CacheFile("gpu a", 16))};
  options_.config.strategies = {"random"};
  options_.config.budgets = {10, 500, 1000000};
  options_.json = true;
  ::testing::internal::CaptureStderr();
  const auto json = nlohmann::json::parse(Run());
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      "mycc-tune: warning: the space has 84 configurations, and searches end there; left out: the budget "
      "of 500 and of 1000000 evaluations\n");
  EXPECT_EQ(json["budgets"], nlohmann::json({10, 84}));
  const auto& at = json["spaces"][0]["results"][0]["by_evaluations"];
  ASSERT_EQ(at.size(), 2u);
  EXPECT_EQ(at[1]["mean_evaluations"], 84);
  EXPECT_EQ(at[1]["fraction"]["median"], 1);
  options_.config.budgets = {84};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(nlohmann::json::parse(Run())["budgets"], nlohmann::json({84}));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(SimulateCommandTest, AViewShowsHowFarItIs) {
  SimulationProgress progress{.space = "scale",
                              .device = "gpu\x1b[31m",
                              .strategy = "evolutionary",
                              .manner = {.warm = false, .noise = true},
                              .ended = 1,
                              .searches = 8,
                              .evaluations = 1};
  const std::string text = SimulationProgressText(progress);
  EXPECT_THAT(text, HasSubstr("12 %  1 of 8 searches, 1 evaluation; now scale on gpu"));
  EXPECT_THAT(text, HasSubstr(": evolutionary, noise"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  std::ostringstream drawn;
  double now = 5;
  SimulationView view(&drawn, 20, [&now] { return now; });
  view.Update(progress);
  EXPECT_EQ(drawn.str(), text.substr(0, 19));
  view.Update(progress);
  EXPECT_EQ(drawn.str(), text.substr(0, 19)) << "too soon";
  now += 1;
  view.Update(progress);
  EXPECT_EQ(drawn.str(), text.substr(0, 19) + "\r\x1b[K" + text.substr(0, 19));
  view.Clear();
  EXPECT_THAT(drawn.str(), ::testing::EndsWith("\r\x1b[K"));
}

TEST_F(SimulateCommandTest, RefusesWhatDoesNotFitTogether) {
  EXPECT_THAT(Run(), HasSubstr("no RESULT; expected files of results"));
  EXPECT_EQ(ExitStatus(status_), kMisuseExitStatus);
  options_.results = {Write("a.json", CacheFile("a", 16))};
  options_.config.strategies = {"lucky"};
  EXPECT_THAT(Run(), HasSubstr("unknown strategy \"lucky\"; expected evolutionary"));
  EXPECT_EQ(ExitStatus(status_), kMisuseExitStatus);
  options_.config.strategies = {"all"};
  options_.leave_one_out = true;
  EXPECT_THAT(Run(), HasSubstr("--leave-one-device-out with one RESULT"));
  options_.results.push_back(Write("b.json", [] {
    std::string other = CacheFile("b", 16);
    return other.replace(other.find("\"scale\""), 7, "\"shift\"");
  }()));
  EXPECT_THAT(Run(), HasSubstr("is the only result of space \"scale\""));
  options_.leave_one_out = false;
  options_.target = "host";
  EXPECT_THAT(Run(), HasSubstr("expected them with --workload"));
  options_.target.clear();
  options_.results = {Write("tuning.db", "SQLite format 3 and more")};
  EXPECT_THAT(Run(), HasSubstr("tuning.db: a tuning log; expected --workload"));
  options_.results = {absl::StrCat(folder_.path(), "/none.json")};
  EXPECT_THAT(Run(), HasSubstr("/none.json"));
  EXPECT_EQ(ExitStatus(status_), 1);
}

}  // namespace
}  // namespace mycc
