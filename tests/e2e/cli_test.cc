// The mycc-tune command as a user meets it: what it prints, and its exit status.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/log_of_others.h"
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
    EXPECT_EQ(std::ranges::count(ran.output, '\n'), 1) << ran.output;
  }

  TestFolder folder_;
  const std::string gemm_ = folder_.Path("gemm.te"), log_ = folder_.Path("tuning.db");
};

TEST_F(CliTest, MisuseEndsWithTwo) {
  ExpectError(RunMyccTune({}), 2, "see mycc-tune --help");
  ExpectError(RunMyccTune({"guess"}), 2, "see mycc-tune --help");
  ExpectError(RunMyccTune({"tune"}), 2, "FILE");
  ExpectError(RunMyccTune({"tune", gemm_, "--budget", "soon"}), 2, "\"soon\" is no duration");
  ExpectError(RunMyccTune({"tune", gemm_, "--cache", "hot"}), 2,
              "--cache: `hot`; expected one of warm, cold");
  ExpectError(RunMyccTune({"tune", gemm_, "--target", "v1 cpu mcpu=abacus"}), 2, "abacus");
  ExpectError(RunMyccTune({"tune", gemm_, "--dtype", "bf16", "--log", log_}), 2, "--dtype is for models");
  ExpectError(RunMyccTune({"best", gemm_, "--dtype", "i8"}), 2, "expected one of bf16, f16");
  ExpectError(RunMyccTune({"log", "list", "--log", log_, "--status", "fine"}), 2,
              "--status: `fine`; expected one of ok, build_error");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--strategy", "guess"}), 2, "--strategy");
  ExpectError(RunMyccTune({"serve", "--log", log_, "--listen", "somewhere"}), 2, "is no address");
  ExpectError(RunMyccTune({"log", "ban", "1", "--log", log_}), 2, "expected --reason");
  EXPECT_EQ(RunMyccTune({"--help"}).exit_status, 0);
  EXPECT_THAT(RunMyccTune({"--version"}).output, StartsWith("mycc-tune 0."));
  EXPECT_FALSE(std::filesystem::exists(log_)) << "nothing was begun";
}

TEST_F(CliTest, NumbersAreChecked) {
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--seed", "-1"}), 2,
              "--seed: `-1`; expected a whole number, 0 or more; see mycc-tune tune --help");
  ExpectError(RunMyccTune({"log", "list", "--log", log_, "--limit", "0"}), 2,
              "--limit: `0`; expected a whole number, 1 or more; see mycc-tune log list --help");
  ExpectError(RunMyccTune({"log", "gc", "--log", log_, "--keep-best", "-2"}), 2, "expected a whole number");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--seed", "18446744073709551616"}), 2,
              "expected a whole number, at most 18446744073709551615");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "0"}), 2,
              "--trials: `0`; expected a number from 1 to 16777216; see mycc-tune tune --help");
  ExpectError(RunMyccTune({"simulate", gemm_, "--budgets", "many"}), 2,
              "--budgets: `many`; expected a number; see mycc-tune simulate --help");
  ExpectError(RunMyccTune({"simulate", gemm_, "--reach", "2"}), 2,
              "--reach: `2`; expected a number from 0.01 to 1; see mycc-tune simulate --help");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--min-gain", "5"}), 2,
              "\"5\" is no share; expected more than 0 and less than 1");
  ExpectError(RunMyccTune({"jobs", "--limit", "-1"}), 2, "expected a whole number");
  EXPECT_FALSE(std::filesystem::exists(log_)) << "nothing was begun";
}

TEST_F(CliTest, WhatALogIsAskedForMustMakeSense) {
  std::ofstream(folder_.Path("empty.jsonl")) << "{\"mycc_tuning_log\":1}\n";
  ASSERT_EQ(RunMyccTune({"log", "import", folder_.Path("empty.jsonl"), "--log", log_}).exit_status, 0);
  ExpectError(RunMyccTune({"log", "list", "--log", log_, "--target", "nonsense"}), 2, "--target: ");
  EXPECT_EQ(RunMyccTune({"log", "list", "--log", log_, "--target", "haswell"}).exit_status, 0);
  ExpectError(RunMyccTune({"log", "verify", "--log", log_, "--workload", "nosuch"}), 1,
              "has no ok record that matches");
}

TEST_F(CliTest, ALogThatIsNotNamedIsTuningDb) {
  const std::string here = "cd " + folder_.Path("") + "; ";
  ExpectError(RunInBash(here + "mycc-tune log stats"), 1, "tuning.db");
  const Ran ran = RunInBash(here +
                            "echo '{\"mycc_tuning_log\":1}' > e.jsonl; mycc-tune log import e.jsonl; "
                            "mycc-tune log stats");
  EXPECT_EQ(ran.exit_status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("tuning.db: 0 records"));
}

TEST_F(CliTest, AServerThatCannotListenLeavesNoLog) {
  const std::string output = folder_.Path("output");
  Background server({"serve", "--log", log_, "--listen", "127.0.0.1:0"}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  std::stringstream text;
  text << std::ifstream(output).rdbuf();
  const std::string said = text.str(),
                    address = said.substr(said.rfind("127."), said.find('\n') - said.rfind("127."));
  const std::string other = folder_.Path("other.db");
  ExpectError(RunMyccTune({"serve", "--log", other, "--listen", address}), 1, "Address already in use");
  for (const char* end : {"", "-wal", "-lock"}) EXPECT_FALSE(std::filesystem::exists(other + end)) << end;
  EXPECT_EQ(server.Terminate(), 0);
}

TEST_F(CliTest, AWorkerMustBeToldItsServer) {
  ExpectError(RunMyccTune({"worker"}), 2, "--server is required; see mycc-tune worker --help");
  EXPECT_THAT(RunMyccTune({"worker", "--help"}).output, Not(HasSubstr("50917")));
  EXPECT_THAT(RunMyccTune({"jobs", "--help"}).output, HasSubstr("50917"));
}

TEST_F(CliTest, BestFindsWhatCompileFindsWhicheverCachesWereTimed) {
  ASSERT_EQ(RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "2", "--cache", "cold"}).exit_status, 0);
  const Ran best = RunMyccTune({"best", gemm_, "--log", log_});
  EXPECT_EQ(best.exit_status, 0) << best.output;
  EXPECT_THAT(best.output, HasSubstr("  cold  "));
  ExpectError(RunMyccTune({"best", gemm_, "--log", log_, "--cache", "warm", "--json"}), 1,
              "no verified record");
}

TEST_F(CliTest, BadFilesAreOneLineAndStayAsTheyAre) {
  ExpectError(RunMyccTune({"tune", folder_.Path("none.te"), "--log", log_}), 1, "none.te");
  std::ofstream(folder_.Path("bad.te")) << "workload (";
  const Ran refused = RunMyccTune({"tune", folder_.Path("bad.te"), "--log", log_});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("bad.te:1:10: error: "), HasSubstr("bad.te: 1 error\n")));
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
  const std::string job = JobIn(full.output.substr(id));
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

// Everything that reads the log goes by what a server and its worker decide in turn, also after a move.
TEST_F(CliTest, FinalRoundDecidesWhatIsBest) {
  // Its default schedule is nearly as fast as its best one, so that a round is held however the times fall.
  const std::string scale = folder_.Path("scale.te");
  std::ofstream(scale) << "workload scale(x: f32[512,512], s: f32[512]) -> (y: f32[512,512]) {\n"
                          "  y[i,j] = exp(x[i,j]) * s[j]\n}\n";
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  Background worker({"worker", "--server", address, "--name", "w", "--builders", "2"}, output);
  const Ran tune = RunMyccTune({"tune", scale, "--server", address, "--trials", "32"});
  EXPECT_EQ(tune.exit_status, 0) << tune.output;
  EXPECT_THAT(tune.output, AllOf(HasSubstr("100 %  "), HasSubstr(" in the final round")));
  const Ran served = RunMyccTune({"best", scale, "--server", address});
  EXPECT_THAT(served.output, HasSubstr("final round\n"));
  EXPECT_EQ(worker.Terminate(), 0);
  EXPECT_EQ(server.Terminate(), 0);

  const std::string lines = folder_.Path("log.jsonl"), moved = folder_.Path("moved.db");
  ASSERT_EQ(RunInBash("mycc-tune log export --log " + log_ + " > " + lines).exit_status, 0);
  ASSERT_EQ(RunMyccTune({"log", "import", lines, "--log", moved}).exit_status, 0);
  for (const std::string& log : {log_, moved})
    EXPECT_EQ(RunMyccTune({"best", scale, "--log", log}).output, served.output);
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

TEST_F(CliTest, InterruptedTuneIsContinuedByTheSameCommand) {
  const std::string output = folder_.Path("output");
  const std::vector<std::string> tune = {"tune", gemm_, "--log", log_, "--trials", "40"};
  Background first(tune, output);
  ASSERT_TRUE(WaitForText(output, "started job j", 60));
  ASSERT_TRUE(WaitForTrials(log_, kFinishedInLog, 1, 120));
  first.Interrupt();
  EXPECT_EQ(first.Wait(), 130);
  const std::string said = ReadAll(output);
  EXPECT_THAT(said, AllOf(HasSubstr("speed-up"), HasSubstr("mycc-tune: interrupted; job j"),
                          HasSubstr(" results are kept, and the same command continues it")));
  EXPECT_EQ(RunMyccTune({"best", gemm_, "--log", log_}).exit_status, 0) << "the best so far is kept";
  EXPECT_LT(TrialsInLog(log_, kFinishedInLog), 40) << "it was over before the interrupt";
  EXPECT_EQ(TrialsInLog(log_, kLeasedInLog), 0) << "what was not measured went back";

  const Ran second = RunMyccTune(tune);
  EXPECT_EQ(second.exit_status, 0) << second.output;
  EXPECT_THAT(second.output,
              AllOf(HasSubstr("continuing job " + JobIn(said)), HasSubstr("100 %  40 trials")));
}

TEST_F(CliTest, SecondInterruptEndsATuneAtOnce) {
  const std::string output = folder_.Path("output");
  Background tune({"tune", gemm_, "--log", log_, "--budget", "10m"}, output);
  ASSERT_TRUE(WaitForText(output, "started job j", 60));
  tune.Interrupt();
  ASSERT_TRUE(WaitForText(output, "another interrupt stops at once", 60));
  tune.Interrupt();
  EXPECT_EQ(tune.Wait(), 130);
  EXPECT_THAT(RunMyccTune({"tune", gemm_, "--log", log_, "--trials", "4"}).exit_status, 0)
      << "the log is nobody's";
}

// Two users, one command: the second joins the first's job. One goes, the job goes on; both go, it is
// cancelled; the same command continues it.
TEST_F(CliTest, CommandsShareAJobUntilTheLastOneGoes) {
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  const std::vector<std::string> tune = {"tune", gemm_, "--server", address, "--trials", "30"};
  const std::string ann_said = folder_.Path("ann"), bob_said = folder_.Path("bob");
  Background ann(tune, ann_said);
  ASSERT_TRUE(WaitForText(ann_said, "started job j", 60));
  const std::string job = JobIn(ReadAll(ann_said));
  Background bob(tune, bob_said);
  ASSERT_TRUE(WaitForText(bob_said, "joining job " + job + ", which 1 other waits for: ", 60));
  EXPECT_THAT(RunMyccTune({"jobs", "--server", address, "--json"}).output, HasSubstr("\"waiters\":2"));

  ann.Interrupt();
  EXPECT_EQ(ann.Wait(), 130);
  EXPECT_THAT(ReadAll(ann_said), HasSubstr("interrupted; job " + job + " goes on: 1 other waits for it"));
  EXPECT_THAT(RunMyccTune({"jobs", "--server", address}).output, HasSubstr(" running "));
  bob.Interrupt();
  EXPECT_EQ(bob.Wait(), 130);
  EXPECT_THAT(ReadAll(bob_said),
              HasSubstr("job " + job + " is cancelled, since nobody else waits for it; its "));
  EXPECT_THAT(RunMyccTune({"jobs", "--server", address}).output,
              HasSubstr("cancelled: the last command that waited for it was interrupted"));

  Background worker({"worker", "--server", address, "--name", "w", "--builders", "2"}, output);
  const Ran again = RunMyccTune(tune);
  EXPECT_EQ(again.exit_status, 0) << again.output;
  EXPECT_THAT(again.output, AllOf(HasSubstr(" job " + job), HasSubstr("100 %  30 trials")));
  EXPECT_EQ(worker.Terminate(), 0);
  EXPECT_EQ(server.Terminate(), 0);
}

// One command's cancellation cancels for all; a command that is killed cancels nothing.
TEST_F(CliTest, CancelledByOthersIsAFailureThatSaysWho) {
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  const std::vector<std::string> tune = {"tune", gemm_, "--server", address, "--trials", "30"};
  const std::string ann_said = folder_.Path("ann"), bob_said = folder_.Path("bob"),
                    eve_said = folder_.Path("eve");
  Background ann(tune, ann_said);
  ASSERT_TRUE(WaitForText(ann_said, "started job j", 60));
  const std::string job = JobIn(ReadAll(ann_said));
  Background bob(tune, bob_said), eve({"watch", job, "--server", address}, eve_said);
  ASSERT_TRUE(WaitForText(bob_said, "joining", 60));
  ASSERT_TRUE(WaitForText(eve_said, "waiting for a worker", 60));
  ann.Kill9();
  EXPECT_THAT(RunMyccTune({"jobs", "--server", address}).output, HasSubstr(" running "));
  const Ran cancel = RunMyccTune({"cancel", job, "--server", address});
  EXPECT_EQ(cancel.exit_status, 0) << cancel.output;
  EXPECT_THAT(cancel.output, HasSubstr("job " + job + " is cancelled by "));
  EXPECT_EQ(bob.Wait(), 1);
  EXPECT_THAT(ReadAll(bob_said), HasSubstr("mycc-tune: job " + job + " was cancelled by "));
  EXPECT_EQ(eve.Wait(), 1);
  EXPECT_EQ(server.Terminate(), 0);
}

TEST_F(CliTest, DetachedJobIsNobodysToInterrupt) {
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  ExpectError(RunMyccTune({"tune", gemm_, "--log", log_, "--detach"}), 2, "--server");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  const Ran detached = RunMyccTune({"tune", gemm_, "--server", address, "--trials", "30", "--detach"});
  EXPECT_EQ(detached.exit_status, 0) << detached.output;
  const std::string job = JobIn(detached.output), said = folder_.Path("said");
  EXPECT_THAT(detached.output, HasSubstr("mycc-tune watch " + job + " --server " + address));
  Background tune({"tune", gemm_, "--server", address, "--trials", "30"}, said);
  ASSERT_TRUE(WaitForText(said, "started job " + job, 60));
  tune.Interrupt();
  EXPECT_EQ(tune.Wait(), 130);
  EXPECT_THAT(ReadAll(said), HasSubstr("job " + job + " goes on, as somebody submitted it with --detach"));
  Background watch({"watch", job, "--server", address}, folder_.Path("watch"));
  ASSERT_TRUE(WaitForText(folder_.Path("watch"), "waiting for a worker", 60));
  watch.Interrupt();
  EXPECT_EQ(watch.Wait(), 130);
  EXPECT_THAT(RunMyccTune({"jobs", "--server", address}).output, HasSubstr(" running "));
  EXPECT_EQ(server.Terminate(), 0);
}

// Nothing is measured in vain, and nobody waits for what cannot come.
TEST_F(CliTest, AServedLogThatIsDeletedEndsItsJobs) {
  const std::string output = folder_.Path("output"), address = "unix:" + folder_.Path("socket");
  Background server({"serve", "--log", log_, "--listen", address}, output);
  ASSERT_TRUE(WaitForText(output, "serving", 60));
  Background worker({"worker", "--server", address, "--name", "w", "--builders", "2"}, output);
  const std::string said = folder_.Path("said");
  Background tune({"tune", gemm_, "--server", address, "--trials", "5000"}, said);
  ASSERT_TRUE(WaitForText(said, " ok)", 60));
  std::filesystem::remove(log_);
  EXPECT_EQ(tune.Wait(), 1);
  EXPECT_THAT(ReadAll(said), AllOf(HasSubstr(" failed: "), HasSubstr(log_)));
  const Ran next = RunMyccTune({"tune", gemm_, "--server", address, "--trials", "2", "--fresh"});
  EXPECT_EQ(next.exit_status, 1) << next.output;
  EXPECT_THAT(next.output, HasSubstr(log_));
  EXPECT_FALSE(std::filesystem::exists(log_)) << "nothing is written in its place";
}

TEST_F(CliTest, ALimitOnTheSizeOfFilesIsAnErrorLikeAFullDisk) {
  const Ran ran = RunInBash("ulimit -f 64; mycc-tune tune " + gemm_ + " --log " + log_ + " --trials 16");
  ExpectError(ran, 1, "a limit on space or file size is reached");
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
