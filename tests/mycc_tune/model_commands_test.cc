// `mycc-tune log model`: a model's way from one log into another, what is shown of it, and what is refused.
#include "mycc_tune/model_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "tests/db/test_log.h"
#include "tests/tuner/samples.h"
#include "tuner/cost/learner.h"

namespace mycc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ModelCommandsTest : public testing::Test {
 protected:
  std::string NewLog(const std::string& name, const std::vector<std::string>& kinds,
                     const std::string& bytes) {
    const std::string path = MakeLog(directory_, name, 0);
    const auto log = TuningLog::Open(path, OpenMode::kCreate).value();
    for (const std::string& kind : kinds)
      EXPECT_TRUE(ModelStore(log.get()).Save(kind, "after job 1", absl::StrCat(bytes)).ok());
    EXPECT_TRUE(log->Close().ok());
    return path;
  }
  static std::string Trained(uint64_t seed) {
    Learner learner;
    EXPECT_TRUE(learner.Add(MakeSamples(4, 20, seed, FunctionFeatureSlots().size())).ok());
    return learner.Save().value();
  }
  template <typename Args>
  std::string Output(absl::Status (*command)(const Args&, std::ostream&), const Args& args) {
    std::ostringstream out;
    const absl::Status status = command(args, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }
  template <typename Args>
  std::string Refusal(absl::Status (*command)(const Args&, std::ostream&), const Args& args) {
    std::ostringstream out;
    return std::string(command(args, out).message());
  }
  std::string WriteFile(const std::string& contents) {
    const std::string path = directory_.path() + "/other.model";
    std::ofstream(path, std::ios::binary) << contents;
    return path;
  }

  TempDir directory_;
};

TEST_F(ModelCommandsTest, AModelMovesFromOneLogIntoAnother) {
  const std::string bytes = Trained(1), from = NewLog("from.db", {"cost-avx2"}, bytes);
  const std::string to = NewLog("to.db", {}, ""), file = directory_.path() + "/avx2.model";
  EXPECT_THAT(Output<ModelExportArgs>(ModelExportCommand, {.log = from, .kind = "", .output = file}),
              HasSubstr("the model cost-avx2 of"));
  Output<ModelImportArgs>(ModelImportCommand, {.log = to, .input = file});
  const auto log = TuningLog::Open(to, OpenMode::kRead).value();
  const ModelStore store(log.get());
  EXPECT_EQ(store.Load(store.NewestId("cost-avx2").value())->bytes, bytes);
}

TEST_F(ModelCommandsTest, TooFewCandidatesAreSaidToBe) {
  const std::string log = NewLog("untaught.db", {"cost-avx2"}, Learner().Save().value());
  EXPECT_THAT(Output<ModelShowArgs>(ModelShowCommand, {.log = log, .features = 1, .json = false}),
              HasSubstr("  0 valid and 0 failed candidates; 0 kept for later jobs\n"
                        "  too few candidates to learn from; expected at least 12 valid ones\n"));
}

TEST_F(ModelCommandsTest, AnExportSaysWhatIsWorthNothing) {
  const std::string file = directory_.path() + "/a.model";
  const auto said = [&](const std::string& name, const std::string& bytes) {
    const std::string log = NewLog(name, {"cost-avx2"}, bytes);
    return Output<ModelExportArgs>(ModelExportCommand, {.log = log, .kind = "", .output = file});
  };
  EXPECT_THAT(said("taught.db", Trained(1)), ::testing::EndsWith("taught.db\n"));
  EXPECT_THAT(
      said("untaught.db", Learner().Save().value()),
      ::testing::EndsWith("untaught.db; it has no trees, so it knows no more than the analytic model\n"));
  EXPECT_THAT(said("odd.db", "of another build"), HasSubstr("odd.db; this build cannot use it: "));
}

// Back to the model from before a job that went wrong.
TEST_F(ModelCommandsTest, AnImportedModelIsTheNewestWhateverTheLogHad) {
  const std::string old = Trained(1), path = NewLog("log.db", {"cost-avx2"}, old);
  const std::string file = directory_.path() + "/avx2.model";
  Output<ModelExportArgs>(ModelExportCommand, {.log = path, .kind = "", .output = file});
  const auto newest = [&] {
    const auto log = TuningLog::Open(path, OpenMode::kRead).value();
    return ModelStore(log.get()).NewestId("cost-avx2").value();
  };
  const std::string first = newest();
  {
    const auto log = TuningLog::Open(path, OpenMode::kWrite).value();
    ASSERT_TRUE(ModelStore(log.get()).Save("cost-avx2", "after job 2", Trained(2)).ok());
    ASSERT_TRUE(log->Close().ok());
  }
  ASSERT_NE(newest(), first);
  Output<ModelImportArgs>(ModelImportCommand, {.log = path, .input = file});
  EXPECT_EQ(newest(), first);
  EXPECT_THAT(Refusal<ModelImportArgs>(
                  ModelImportCommand, {.log = path, .input = WriteFile("mycc-model 1 cpu cost-sse\n" + old)}),
              HasSubstr("has this model as cost-avx2; expected another one for cost-sse"));
}

TEST_F(ModelCommandsTest, ShowSaysFromWhatAndHowWell) {
  const std::string log = NewLog("log.db", {"cost-sm_90a"}, Trained(1));
  const json shown =
      json::parse(Output<ModelShowArgs>(ModelShowCommand, {.log = log, .features = 3, .json = true}))[0];
  EXPECT_EQ(shown["kind"], "cost-sm_90a");
  EXPECT_EQ(shown["samples"], 80);
  EXPECT_EQ(shown["tasks"], 4);
  EXPECT_EQ(shown["held_out"], "tasks");
  EXPECT_GT(shown["corrected"]["pairwise_accuracy"], shown["analytic"]["pairwise_accuracy"]);
  ASSERT_EQ(shown["features"].size(), 3u);
  EXPECT_EQ(shown["features"][0]["name"], FunctionFeatureSlots()[0].name);
  EXPECT_GT(shown["features"][0]["share_of_gain"], 0.2);
  const std::string text =
      Output<ModelShowArgs>(ModelShowCommand, {.log = log, .features = 1, .json = false});
  EXPECT_THAT(text, HasSubstr("80 valid and 0 failed candidates of 4 tasks"));
  EXPECT_THAT(text, HasSubstr(FunctionFeatureSlots()[0].meaning));
}

TEST_F(ModelCommandsTest, AModelOfAnotherBuildIsShownWithTheReason) {
  const std::string log = NewLog("log.db", {"cost-cpu"}, "old bytes");
  EXPECT_THAT(Output<ModelShowArgs>(ModelShowCommand, {.log = log, .features = 1, .json = false}),
              HasSubstr("this build cannot use it: these bytes are not a cost model of format"));
}

TEST_F(ModelCommandsTest, WhichOneMustBeClear) {
  const std::string none = NewLog("none.db", {}, ""), file = directory_.path() + "/out.model";
  EXPECT_THAT(Refusal<ModelShowArgs>(ModelShowCommand, {.log = none, .features = 1, .json = false}),
              HasSubstr("no cost model"));
  EXPECT_THAT(Refusal<ModelExportArgs>(ModelExportCommand, {.log = none, .kind = "", .output = file}),
              HasSubstr("no cost model"));
  const std::string two = NewLog("two.db", {"cost-amx"}, Trained(1));
  const auto log = TuningLog::Open(two, OpenMode::kWrite).value();
  ASSERT_TRUE(ModelStore(log.get()).Save("cost-avx2", "", Trained(2)).ok());
  ASSERT_TRUE(log->Close().ok());
  EXPECT_THAT(Refusal<ModelExportArgs>(ModelExportCommand, {.log = two, .kind = "", .output = file}),
              HasSubstr("expected --kind with one of cost-amx, cost-avx2"));
  EXPECT_THAT(Refusal<ModelExportArgs>(ModelExportCommand, {.log = two, .kind = "cost-sse", .output = file}),
              HasSubstr("no cost model of kind cost-sse"));
}

TEST_F(ModelCommandsTest, WhatIsNoModelOfThisBuildIsRefusedAndTheLogStays) {
  const std::string to = NewLog("to.db", {}, ""), bytes = Trained(1);
  const auto refusal = [&](const std::string& contents) {
    return Refusal<ModelImportArgs>(ModelImportCommand, {.log = to, .input = WriteFile(contents)});
  };
  EXPECT_THAT(refusal(""), HasSubstr("this is no cost model"));
  EXPECT_THAT(refusal("mycc-model 9 cpu cost-avx2\n" + bytes), HasSubstr("format 9; expected 1"));
  EXPECT_THAT(refusal("mycc-model 1 cpu cost-toaster\n" + bytes), HasSubstr("does not know"));
  EXPECT_THAT(refusal("mycc-model 1 cuda cost-sm_90a\x1b[2J\n" + bytes), HasSubstr("this is no cost model"));
  EXPECT_THAT(refusal("mycc-model 1 cuda cost-avx2\n" + bytes), HasSubstr("the other sort of device"));
  std::string damaged = bytes;
  damaged[damaged.size() / 2] ^= 1;
  EXPECT_THAT(refusal("mycc-model 1 cpu cost-avx2\n" + damaged), HasSubstr("damaged"));
  EXPECT_THAT(refusal("mycc-model 1 cpu cost-avx2\n" + bytes.substr(0, 100)), HasSubstr("other.model: "));
  const auto log = TuningLog::Open(to, OpenMode::kRead).value();
  EXPECT_TRUE(ModelStore(log.get()).ListNewest()->empty());
}

TEST_F(ModelCommandsTest, AFilesNameMayBeNoText) {
  const std::string path = NewLog("log.db", {"cost-avx2"}, Trained(1)),
                    file = directory_.path() + "/\xff\x1b.model", to = NewLog("to.db", {}, "");
  Output<ModelExportArgs>(ModelExportCommand, {.log = path, .kind = "", .output = file});
  Output<ModelImportArgs>(ModelImportCommand, {.log = to, .input = file});
  const json shown =
      json::parse(Output<ModelShowArgs>(ModelShowCommand, {.log = to, .features = 1, .json = true}))[0];
  EXPECT_THAT(shown["info"].get<std::string>(), HasSubstr(".model"));
  EXPECT_THAT(Output<ModelShowArgs>(ModelShowCommand, {.log = to, .features = 1, .json = false}),
              HasSubstr("/\\xff\\x1b.model\n"));
}

TEST_F(ModelCommandsTest, TheStandardOutputGetsTheFilesBytesAlone) {
  const std::string from = NewLog("from.db", {"cost-avx2"}, Trained(1)),
                    file = directory_.path() + "/a.model";
  Output<ModelExportArgs>(ModelExportCommand, {.log = from, .kind = "", .output = file});
  EXPECT_EQ(Output<ModelExportArgs>(ModelExportCommand, {.log = from, .kind = "", .output = "-"}),
            ReadFile(file, 1 << 24).value());
}

}  // namespace
}  // namespace mycc
