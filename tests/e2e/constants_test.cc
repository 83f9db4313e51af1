// The constants of this host's CPU, as programs measure, keep and use them.
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kMeasured[] = "cpu: its constants are measured";

class ConstantsE2eTest : public ::testing::Test {
 protected:
  ConstantsE2eTest() {
    std::ofstream(gemm_) << kTestWorkload;
    std::ofstream(other_) << kOtherWorkload;
    setenv("MYCC_TUNE_NO_CALIBRATION", "0", 1);  // tests that are about something else set it
  }

  Ran Devices() { return RunMyccTune({"log", "devices", "--log", log_, "--json"}); }

  TestFolder folder_;
  const std::string gemm_ = folder_.Path("gemm.te"), other_ = folder_.Path("other.te"),
                    log_ = folder_.Path("tuning.db"), address_ = "unix:" + folder_.Path("socket");
};

TEST_F(ConstantsE2eTest, TheFirstTuneMeasuresThemAndTheNextDoesNot) {
  ASSERT_EQ(RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "2"}).exit_status, 0);
  const Ran first = Devices();
  ASSERT_EQ(first.exit_status, 0) << first.output;
  const json device = json::parse(first.output);
  EXPECT_EQ(device["device"], "cpu");
  EXPECT_GT(device["constants"]["peak_flops_per_second_one_thread"], 1e8);
  EXPECT_GT(device["constants"]["memory_bytes_per_second_one_thread"], 1e7);
  ASSERT_EQ(RunMyccTune({"tune", other_, "--log", log_, "--trials", "2"}).exit_status, 0);
  EXPECT_EQ(Devices().output, first.output) << "also the time when they were measured";
  const Ran table = RunMyccTune({"log", "devices", "--log", log_});
  EXPECT_THAT(table.output, HasSubstr("peak_flops_per_second_one_thread"));

  // Without a search nothing depends on them.
  const std::string without = folder_.Path("without.db");
  ASSERT_EQ(RunMyccTune({"tune", gemm_, "--log", without, "--trials", "2", "--no-calibration"}).exit_status,
            0);
  const Ran none = RunMyccTune({"log", "devices", "--log", without});
  EXPECT_EQ(none.exit_status, 1);
  EXPECT_THAT(none.output, HasSubstr("has no device's constants"));
}

TEST_F(ConstantsE2eTest, AWorkersFirstStartMeasuresThemAndTheNextDoesNot) {
  const std::string served = folder_.Path("served");
  Background server({"serve", "--log", log_, "--listen", address_}, served);
  ASSERT_TRUE(WaitForText(served, "serving", 60));
  for (const char* const start : {"first", "second"}) {
    const std::string output = folder_.Path(start);
    Background worker({"worker", "--server", address_}, output);  // named after its process
    const bool is_first = start == std::string("first");
    if (is_first) ASSERT_TRUE(WaitForText(output, kMeasured, 60));
    const Ran tune = RunMyccTune({"tune", is_first ? gemm_ : other_, "--server", address_, "--trials", "2"});
    EXPECT_EQ(tune.exit_status, 0) << tune.output;
    EXPECT_EQ(worker.Terminate(), 0);
    if (!is_first) EXPECT_THAT(ReadAll(output), Not(HasSubstr("constants")));
  }
  EXPECT_EQ(server.Terminate(), 0);
  EXPECT_EQ(Devices().exit_status, 0);
}

}  // namespace
}  // namespace mycc
