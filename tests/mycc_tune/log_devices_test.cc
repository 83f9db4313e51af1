// `log devices`: what it prints of a log's constants.
#include "mycc_tune/log_devices.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "db/constants_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/device_constants.h"
#include "tests/db/tuning_log_fixture.h"

namespace mycc {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LogDevicesTest : public TuningLogTest {
 protected:
  // The device has memory that is too slow to be true.
  void Keep(uint32_t version, const std::string& host = "farm-1") {
    StoredConstants made;
    made.host = host;
    made.device = "cpu";
    made.model = "A processor";
    made.target = "v1 cpu mcpu=sapphirerapids l1d=48K l2=2M threads=2";
    made.worker = "w";
    made.constants.set_version(version);
    (*made.constants.mutable_values())[kClockConstant] = 2.5e9;
    (*made.constants.mutable_values())[kMemoryOfThread] = 2e8;
    made.measured_unix_micros = 1'767'225'600'000'000;
    ASSERT_TRUE(ConstantsStore(log_.get()).Save(made).ok());
  }
  std::string Output(bool json) {
    std::ostringstream out;
    const absl::Status status = LogDevicesCommand({.log = log_->path(), .json = json}, out);
    EXPECT_TRUE(status.ok()) << status;
    return out.str();
  }
};

TEST_F(LogDevicesTest, EachConstantHasItsUnitAndWhatIsNotUsedItsReason) {
  Keep(kConstantsVersion);
  EXPECT_THAT(Output(false),
              AllOf(HasSubstr("cpu of farm-1, A processor, measured 2026-01-01 00:00:00Z by worker w\n"),
                    HasSubstr("clock_cycles_per_second"), HasSubstr("2.5e+09"), HasSubstr("1/s"),
                    HasSubstr("not used: bytes a cycle from memory of 0.08; expected 0.5 to 32"),
                    Not(HasSubstr("peak"))));
  const json shown = json::parse(Output(true));
  EXPECT_EQ(shown["host"], "farm-1");
  EXPECT_EQ(shown["version"], kConstantsVersion);
  EXPECT_EQ(shown["measured_unix_micros"], 1'767'225'600'000'000);
  EXPECT_EQ(shown["constants"], json({{kClockConstant, 2.5e9}, {kMemoryOfThread, 2e8}}));
  EXPECT_EQ(shown["ignored"].size(), 1u);
}

TEST_F(LogDevicesTest, ThoseOfAnotherVersionAreNotUsed) {
  Keep(kConstantsVersion + 1);
  EXPECT_THAT(Output(false), HasSubstr("not used: all: they are of version"));
}

// A host's name is what its worker says.
TEST_F(LogDevicesTest, NamesDoNotSteerTheTerminal) {
  Keep(kConstantsVersion, "\x1b]0;all is well\x07");
  EXPECT_THAT(Output(false), AllOf(Not(HasSubstr("\x1b")), HasSubstr("cpu of \\x1b]0;all is well\\x07, ")));
}

TEST_F(LogDevicesTest, TheyAreForgottenOnRequest) {
  Keep(kConstantsVersion);
  const std::string path = log_->path();
  ASSERT_TRUE(log_->Close().ok());
  std::ostringstream out;
  ASSERT_TRUE(LogDevicesCommand({.log = path, .forget = true}, out).ok());
  EXPECT_EQ(out.str(), path + ": the constants of 1 device are forgotten\n");
  EXPECT_EQ(LogDevicesCommand({.log = path}, out).code(), absl::StatusCode::kNotFound);
}

TEST_F(LogDevicesTest, ALogWithoutAnyIsSaidToHaveNone) {
  std::ostringstream out;
  const absl::Status none = LogDevicesCommand({.log = log_->path(), .json = false}, out);
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(none.message()), HasSubstr("has no device's constants"));
}

}  // namespace
}  // namespace mycc
