// Each way in which a candidate can fail, provoked in the real program: the record has its status, and the
// record's line, pasted into bash, fails in the same way. A worker that is kept from its work says why.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"
#include "worker/local_worker.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Fault {
  const char* name;
  const char* fault;  // of fault_shim.c
  const char* status;
  const char* error;
};

// Programs that are started meet the fault.
class WithFault {
 public:
  explicit WithFault(const char* fault) {
    setenv("LD_PRELOAD", FAULT_SHIM, 1);
    setenv("MYCC_TEST_FAULT", fault, 1);
  }
  ~WithFault() {
    unsetenv("LD_PRELOAD");
    unsetenv("MYCC_TEST_FAULT");
  }
};

class FaultTest : public ::testing::TestWithParam<Fault> {
 protected:
  FaultTest() { std::ofstream(gemm_) << kTestWorkload; }

  const WithFault fault_{GetParam().fault};
  TestFolder folder_;
  const std::string gemm_ = folder_.Path("gemm.te"), log_ = folder_.Path("tuning.db");
};

TEST_P(FaultTest, HasItsStatusAndCanBeReproduced) {
  if (UsableCpus() < 2) GTEST_SKIP() << "a kernel on one CPU starts no threads, where the faults are met";
  const Ran tune = RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "1"});
  EXPECT_EQ(tune.exit_status, 1) << tune.output;
  EXPECT_THAT(tune.output,
              HasSubstr(std::string("gemm: no valid schedule in 1 trial: 1 ") + GetParam().status));

  const Ran list = RunMyccTune({"log", "list", "--log", log_, "--json"});
  const auto record = nlohmann::json::parse(list.output, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(record.is_object() && record.contains("result")) << list.output;
  EXPECT_EQ(record["result"].value("status", ""), GetParam().status);
  EXPECT_THAT(record["result"].value("error", ""), HasSubstr(GetParam().error));

  const std::string line = record["result"].value("reproduction", "");
  const Ran again = RunInBash(line);
  EXPECT_EQ(again.exit_status, 1) << line;
  EXPECT_THAT(again.output, StartsWith(GetParam().status)) << line;
  setenv("MYCC_TEST_FAULT", "", 1);
  EXPECT_THAT(RunInBash(line).output, StartsWith("ok  "))
      << "nothing is wrong with the candidate itself: " << line;
}

INSTANTIATE_TEST_SUITE_P(
    Faults, FaultTest,
    ::testing::Values(
        Fault{"BuildCrashes", "build crash", "build_error", "the build died of SIGSEGV"},
        Fault{"BuildHangs", "build hang", "build_timeout", "the build took longer than its limit of 20 s"},
        Fault{"BuildEatsMemory", "build memory", "out_of_memory", "the build ran out of memory"},
        Fault{"RunCrashes", "run crash", "run_error", "the run died of SIGSEGV"},
        Fault{"RunHangs", "run hang", "run_timeout", "the run took longer than its limit"},
        Fault{"RunEatsMemory", "run memory", "out_of_memory", "the run ran out of memory"},
        Fault{"RunComputesNothing", "run wrong", "wrong_result", "output t2: element 0 is nan"},
        Fault{"RunIsKilled", "run kill", "worker_lost", "the run was killed by somebody else"}),
    [](const auto& info) { return std::string(info.param.name); });

class WorkerFaultTest : public ::testing::Test {
 protected:
  WorkerFaultTest() { std::ofstream(gemm_) << kTestWorkload; }

  TestFolder folder_;
  const std::string gemm_ = folder_.Path("gemm.te"), log_ = folder_.Path("tuning.db");
};

TEST_F(WorkerFaultTest, AFullDiskIsNoCandidatesFault) {
  const std::string trace = folder_.Path("trace");
  std::ofstream(trace) << "v1\n";
  const WithFault full("build full");
  const Ran ran = RunMyccTune({"measure", gemm_, "--trace", trace});
  EXPECT_EQ(ran.exit_status, 1) << ran.output;
  EXPECT_THAT(ran.output, StartsWith("worker_unfit"));
  EXPECT_THAT(ran.output, HasSubstr("No space left on device"));
}

TEST_F(WorkerFaultTest, ASecondWorkerOfANameIsToldSo) {
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background worker({"worker", "--server", address, "--name", "w"}, output);  // its server comes later
  ASSERT_TRUE(WaitForText(output, "trying again", 60));
  const Ran second = RunMyccTune({"worker", "--server", address, "--name", "w"});
  EXPECT_EQ(second.exit_status, 1);
  EXPECT_THAT(second.output,
              HasSubstr("a worker w of " + address + " runs on this host as process " +
                        std::to_string(worker.pid()) + " (mycc-tune); expected another --name"));
}

// Nothing can be timed, and whoever waits is told why.
TEST_F(WorkerFaultTest, AStoppedProcessThatHoldsTheDeviceIsNamed) {
  setenv("XDG_RUNTIME_DIR", folder_.Path("").c_str(), 1);
  const std::string lock = folder_.Path("mycc-tune-cpu-" + std::to_string(getuid()) + ".lock");
  const pid_t holder = fork();
  if (holder == 0) {
    flock(open(lock.c_str(), O_RDWR | O_CREAT, 0600), LOCK_EX);
    raise(SIGSTOP);
    _exit(0);
  }
  waitpid(holder, nullptr, WUNTRACED);
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background server({"serve", "--log", log_, "--listen", address, "--lease-seconds", "1"}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  Background worker({"worker", "--server", address, "--name", "w", "--builders", "1"}, output);
  const std::string said = folder_.Path("said");
  Background tune({"tune", gemm_, "--server", address, "--trials", "2"}, said);
  EXPECT_TRUE(WaitForText(said, "nothing is measured: cpu of worker w: its lock ", 60));
  EXPECT_THAT(ReadAll(said), HasSubstr("is held by process " + std::to_string(holder)));
  kill(holder, SIGCONT);
  EXPECT_EQ(tune.Wait(), 0) << ReadAll(said);
  waitpid(holder, nullptr, 0);
  unsetenv("XDG_RUNTIME_DIR");
}

// A fault that takes a final round down takes nothing else: the job ends with its trials' results, and says
// so.
TEST(FinalRoundFaultTest, LeavesTheSingleTimings) {
  const TestFolder folder;
  const std::string file = folder.Path("gemm.te"), log = folder.Path("tuning.db");
  std::ofstream(file) << "workload gemm(x: f32[384,384], w: f32[384,384]) -> (y: f32[384,384]) {\n"
                         "  y[i,j] = sum[k:384](x[i,k] * w[k,j])\n}\n";
  const std::vector<std::string> tune = {"tune", file, "--log", log, "--trials", "24", "--fresh"};
  for (const auto& [fault, why] :
       {std::pair("round crash", "run_error: the run died of SIGSEGV"),
        std::pair("round kill", "quarantined: 3 workers were lost while they measured it")}) {
    const WithFault fails(fault);
    const Ran ran = RunMyccTune(tune);
    EXPECT_EQ(ran.exit_status, 0) << ran.output;
    EXPECT_THAT(ran.output,
                HasSubstr(std::string("no final round of gemm, its single timings stand: ") + why));
    const Ran best = RunMyccTune({"best", file, "--log", log});
    EXPECT_EQ(best.exit_status, 0) << best.output;
    EXPECT_THAT(best.output, ::testing::Not(HasSubstr("final round")));
  }
  const Ran sound = RunMyccTune(tune);
  EXPECT_EQ(sound.exit_status, 0) << sound.output;
  EXPECT_THAT(sound.output, HasSubstr(" in the final round"));
  EXPECT_THAT(RunMyccTune({"best", file, "--log", log}).output, HasSubstr("final round"));
}

}  // namespace
}  // namespace mycc
