// The mycc-tune command as a user meets it: what it prints, and its exit status.
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class CliTest : public ::testing::Test {
 protected:
  CliTest() { std::ofstream(gemm_) << kTestWorkload; }

  // One line that begins with the program's name.
  static void ExpectError(const Ran& ran, int exit_status, const std::string& words) {
    EXPECT_EQ(ran.exit_status, exit_status) << ran.output;
    EXPECT_THAT(ran.output, AllOf(StartsWith("mycc-tune: "), HasSubstr(words)));
    EXPECT_EQ(std::count(ran.output.begin(), ran.output.end(), '\n'), 1) << ran.output;
  }

  TestFolder folder_;
  const std::string gemm_ = folder_.Path("gemm.te"), log_ = folder_.Path("tuning.db");
};

TEST_F(CliTest, MisuseEndsWithTwo) {
  ExpectError(RunMyccTune({}), 2, "see mycc-tune --help");
  ExpectError(RunMyccTune({"guess"}), 2, "see mycc-tune --help");
  ExpectError(RunMyccTune({"tune"}), 2, "FILE");
  ExpectError(RunMyccTune({"tune", gemm_, "--budget", "soon"}), 2, "\"soon\" is no duration");
  ExpectError(RunMyccTune({"tune", gemm_, "--cache", "hot"}), 2, "expected warm or cold");
  ExpectError(RunMyccTune({"tune", gemm_, "--target", "v1 cpu mcpu=abacus"}), 2, "abacus");
  ExpectError(RunMyccTune({"log", "list", "--log", log_, "--status", "fine"}), 2, "unknown status");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--strategy", "guess"}), 2, "--strategy");
  ExpectError(RunMyccTune({"serve", "--log", log_, "--listen", "somewhere"}), 2, "is no address");
  ExpectError(RunMyccTune({"log", "ban", "1", "--log", log_}), 2, "expected --reason");
  EXPECT_EQ(RunMyccTune({"--help"}).exit_status, 0);
  EXPECT_FALSE(std::filesystem::exists(log_)) << "nothing was begun";
}

TEST_F(CliTest, BadFilesAreOneLineAndStayAsTheyAre) {
  ExpectError(RunMyccTune({"tune", folder_.Path("none.te"), "--log", log_}), 1, "none.te");
  std::ofstream(folder_.Path("bad.te")) << "workload (";
  ExpectError(RunMyccTune({"tune", folder_.Path("bad.te"), "--log", log_}), 1, "bad.te:1:");
  EXPECT_FALSE(std::filesystem::exists(log_)) << "nothing was begun";
  std::ofstream(folder_.Path("text.db"))
      << "not a log at all, but long enough to look at: " << std::string(200, 'x');
  ExpectError(RunMyccTune({"tune", gemm_, "--log", folder_.Path("text.db")}), 1, "text.db");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", folder_.Path("no/such/folder.db")}), 1, "folder.db");
  ExpectError(RunMyccTune({"best", gemm_, "--log", folder_.Path("none.db")}), 1, "none.db");
}

TEST_F(CliTest, TargetOfAnotherMachineIsRefusedWithoutAServer) {
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--target",
                           "v1 cpu mcpu=haswell l1d=32K l2=256K threads=4096"}),
              1, "this machine cannot run");
}

TEST_F(CliTest, ServerThatIsAwayIsNamed) {
  for (const char* command : {"jobs", "devices"}) {
    ExpectError(RunMyccTune({command, "--server", "127.0.0.1:1"}), 1, "no server answers at 127.0.0.1:1");
  }
  ExpectError(RunMyccTune({"jobs", "--server", "somewhere"}), 2, "is no address");
}

TEST_F(CliTest, ServerThatCannotListenSaysWhy) {
  ExpectError(RunMyccTune({"serve", "--log", log_, "--listen", "0.0.0.0:0"}), 1, "--insecure-allow-remote");
  EXPECT_FALSE(std::filesystem::exists(log_)) << "nothing was begun";
  const std::string nowhere = "unix:" + folder_.Path("no/such/socket");
  ExpectError(RunMyccTune({"serve", "--log", log_, "--listen", nowhere}), 1,
              "cannot listen on " + nowhere + ": No such file or directory");
}

// The limit on a file's size stands for a full disk.
TEST_F(CliTest, FullDiskEndsATuneAndLosesNothing) {
  const std::string tune = "mycc-tune tune " + gemm_ + " --log " + log_ + " --trials 200";
  const Ran full = RunInBash("trap '' XFSZ; ulimit -f 200; " + tune);
  EXPECT_EQ(full.exit_status, 1) << full.output;
  EXPECT_THAT(full.output, HasSubstr("a limit on space or file size is reached"));
  const size_t id = full.output.find("the same command continues job j");
  ASSERT_NE(id, std::string::npos) << full.output;
  const std::string job = full.output.substr(full.output.find("job j", id), 21);
  const Ran more = RunInBash(tune);
  EXPECT_EQ(more.exit_status, 0) << more.output;
  EXPECT_THAT(more.output, AllOf(HasSubstr(job), HasSubstr("100 %  200 trials")));
}

TEST_F(CliTest, TuneThenBestThenMeasure) {
  const Ran tune = RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "6"});
  ASSERT_EQ(tune.exit_status, 0) << tune.output;
  EXPECT_THAT(tune.output,
              AllOf(HasSubstr("started job j"), HasSubstr("100 %  6 trials (6 ok)"), HasSubstr("speed-up")));
  EXPECT_THAT(tune.output, Not(HasSubstr("\r"))) << "a pipe gets plain lines";
  EXPECT_THAT(tune.output, Not(HasSubstr("waiting for a worker"))) << "it has one of its own";
  EXPECT_FALSE(std::filesystem::exists(log_ + "-wal")) << "one self-contained file is left";

  const Ran best = RunMyccTune({"best", gemm_, "--log", log_});
  EXPECT_EQ(best.exit_status, 0) << best.output;
  EXPECT_THAT(best.output, AllOf(HasSubstr("gemm"), HasSubstr("v1\n")));
  EXPECT_THAT(RunMyccTune({"best", gemm_, "--log", log_, "--json", "--top", "3"}).output, StartsWith("{"));

  std::ofstream(folder_.Path("trace")) << best.output.substr(best.output.find("\nv1\n") + 1);
  const Ran measured = RunMyccTune({"measure", gemm_, "--trace", folder_.Path("trace")});
  EXPECT_EQ(measured.exit_status, 0) << measured.output;
  EXPECT_THAT(measured.output, AllOf(StartsWith("ok  "), HasSubstr("verified: yes, 4096 elements")));

  const Ran again = RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "6"});
  EXPECT_EQ(again.exit_status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("nothing to tune"));
  const Ran fewer = RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "5", "--seed", "9", "--json"});
  EXPECT_EQ(fewer.exit_status, 0) << fewer.output;
  EXPECT_THAT(fewer.output, HasSubstr("\"reused\":true"));
}

// What a server and its worker decide in turn is what everything that reads the log goes by, also after a
// move.
TEST_F(CliTest, FinalRoundDecidesWhatIsBest) {
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  Background worker({"worker", "--server", address, "--name", "w", "--builders", "2"}, output);
  const Ran tune = RunMyccTune({"tune", gemm_, "--server", address, "--trials", "32"});
  EXPECT_EQ(tune.exit_status, 0) << tune.output;
  EXPECT_THAT(tune.output, AllOf(HasSubstr("final rounds are over"), HasSubstr("100 %  32 trials"),
                                 HasSubstr(" in the final round")));
  const Ran served = RunMyccTune({"best", gemm_, "--server", address});
  EXPECT_THAT(served.output, HasSubstr("final round\n"));
  EXPECT_EQ(worker.Terminate(), 0);
  EXPECT_EQ(server.Terminate(), 0);

  const std::string lines = folder_.Path("log.jsonl"), moved = folder_.Path("moved.db");
  ASSERT_EQ(RunInBash("mycc-tune log export --log " + log_ + " > " + lines).exit_status, 0);
  ASSERT_EQ(RunMyccTune({"log", "import", lines, "--log", moved}).exit_status, 0);
  for (const std::string& log : {log_, moved})
    EXPECT_EQ(RunMyccTune({"best", gemm_, "--log", log}).output, served.output);
  EXPECT_THAT(RunMyccTune({"log", "list", "--log", log_}).output, HasSubstr("superseded"))
      << "the first times are kept";
}

TEST_F(CliTest, CandidateThatDoesNotReplayIsABuildError) {
  std::ofstream(folder_.Path("trace")) << "v1\nsplit(t9.a0, [3, 5])\n";
  const Ran ran = RunMyccTune({"measure", gemm_, "--trace", folder_.Path("trace")});
  EXPECT_EQ(ran.exit_status, 1) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("build_error"), HasSubstr("t9.a0")));
}

TEST_F(CliTest, InputsThatDoNotFitAreOutOfMemory) {
  std::ofstream(folder_.Path("huge.te"))
      << "workload huge(x: f32[100000,100000]) -> (y: f32[100000,100000]) {\n"
         "  y[i,j] = x[i,j] * 2.0\n}\n";
  std::ofstream(folder_.Path("trace")) << "v1\n";
  const Ran ran = RunMyccTune({"measure", folder_.Path("huge.te"), "--trace", folder_.Path("trace")});
  EXPECT_EQ(ran.exit_status, 1) << ran.output;
  EXPECT_THAT(ran.output,
              HasSubstr("out_of_memory: no reference to verify against: the run ran out of memory"));
}

TEST_F(CliTest, WhatIsNoTraceIsRefused) {
  std::ofstream(folder_.Path("trace")) << "\x9b\xff no trace";
  ExpectError(RunMyccTune({"measure", gemm_, "--trace", folder_.Path("trace")}), 1,
              folder_.Path("trace") + ": ");
}

TEST_F(CliTest, InterruptedTuneKeepsTheBestSoFar) {
  const std::string output = folder_.Path("output");
  Background tune({"tune", gemm_, "--log", log_, "--budget", "10m"}, output);
  ASSERT_TRUE(WaitForText(output, " ok)", 120));
  EXPECT_EQ(tune.Terminate(), 0);
  EXPECT_TRUE(WaitForText(output, "the best so far is kept", 1));
  EXPECT_EQ(RunMyccTune({"best", gemm_, "--log", log_}).exit_status, 0);
}

TEST_F(CliTest, ServedLogIsNotServedTwice) {
  const std::string output = folder_.Path("output");
  Background server({"serve", "--log", log_, "--listen", "unix:" + folder_.Path("socket")}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "4"}), 1, "tuning.db");
  EXPECT_EQ(RunMyccTune({"jobs", "--server", "unix:" + folder_.Path("socket")}).exit_status, 0);
  const Ran devices = RunMyccTune({"devices", "--server", "unix:" + folder_.Path("socket")});
  EXPECT_THAT(devices.output, HasSubstr("worker"));
  EXPECT_EQ(server.Terminate(), 0);
}

}  // namespace
}  // namespace mycc
