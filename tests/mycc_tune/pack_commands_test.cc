// Signed packs by the commands that people use: keys, export, import, list.
#include "mycc_tune/pack_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_split.h"
#include "db/tuning_log.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class PackCommandsTest : public testing::Test {
 protected:
  PackCommandsTest() { EXPECT_TRUE(LogKeygenCommand({.output = directory_ / "ann"}, out_).ok()); }

  absl::Status Export() {
    return LogExportCommand(
        {.log = theirs_, .filter = {}, .output = pack_, .sign = directory_ / "ann", .signer = "ann"}, out_);
  }
  absl::Status Import(const std::string& keys = "ann.pub") {
    return LogImportCommand({.log = own_, .inputs = {pack_}, .verify = directory_ / keys}, out_);
  }
  std::string Text() {
    const std::string text = out_.str();
    out_.str("");
    return text;
  }

  TempDir directory_;
  std::ostringstream out_;
  const std::string theirs_ = MakeMixedLog(directory_, "theirs.db", kWholeTarget);
  const std::string own_ = directory_ / "own.db", pack_ = directory_ / "pack.jsonl";
};

TEST_F(PackCommandsTest, FromOneLogToAnother) {
  EXPECT_THAT(Text(), HasSubstr("ann.pub: its public key "));
  ASSERT_TRUE(Export().ok());
  EXPECT_THAT(Text(), HasSubstr("pack.jsonl: 4 records of " + theirs_ + ", signed by ann with key "));
  ASSERT_TRUE(Import().ok());
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(": 4 foreign records added to " + own_ + ", 0 known already\n"));
  EXPECT_THAT(text,
              HasSubstr("4 foreign records wait to be measured here: mycc-tune reverify --log " + own_));

  ASSERT_TRUE(LogListCommand({.log = own_}, out_).ok());
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(Text(), '\n', absl::SkipEmpty())).size(), 2u)
      << "the log's own records are none";
  ASSERT_TRUE(LogListCommand({.log = own_, .foreign = true}, out_).ok());
  EXPECT_THAT(Text(), HasSubstr("1.000 ms  warm    add_one"));
  ASSERT_TRUE(LogListCommand({.log = own_, .foreign = true, .json = true}, out_).ok());
  const std::vector<std::string> lines = absl::StrSplit(Text(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u);
  const json first = json::parse(lines[0]);
  EXPECT_EQ(first["foreign"], 1);
  EXPECT_EQ(first["signer"], "ann");
  EXPECT_EQ(first["waits"], true);
  EXPECT_EQ(first["result"]["timing"]["seconds"], 1e-3);
  ASSERT_TRUE(LogStatsCommand({.log = own_}, out_).ok());
  EXPECT_THAT(Text(), HasSubstr("4 foreign records; 4 to be measured here\n"));
  ASSERT_TRUE(LogStatsCommand({.log = own_, .json = true}, out_).ok());
  const json stats = json::parse(Text());
  EXPECT_EQ(stats["foreign_waiting"], 4);
  EXPECT_TRUE(stats["keys"].empty()) << "no workload has an own record";
}

TEST_F(PackCommandsTest, ABadPackLeavesNoLogBehind) {
  ASSERT_TRUE(Export().ok());
  ASSERT_TRUE(LogKeygenCommand({.output = directory_ / "bob"}, out_).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Import("bob.pub")));
  WriteBytes(pack_, ReadBytes(pack_).substr(5));
  EXPECT_TRUE(absl::IsInvalidArgument(Import()));
  EXPECT_FALSE(Snapshot(directory_.path()).contains("own.db"));
  EXPECT_TRUE(absl::IsNotFound(Import("eve.pub")));
}

// An export that goes wrong leaves the earlier pack as it was.
TEST_F(PackCommandsTest, AKeyThatOthersReadSignsNothing) {
  WriteBytes(pack_, "before");
  WriteBytes(directory_ / "open", ReadBytes(directory_ / "ann"));
  const absl::Status refused =
      LogExportCommand({.log = theirs_, .filter = {}, .output = pack_, .sign = directory_ / "open"}, out_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReadBytes(pack_), "before");
}

}  // namespace
}  // namespace mycc
