// The status that each end of a child process means.
#include "worker/outcome.h"

#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::ForkReply Signalled(int signal, const std::string& output = "") {
  v1::ForkReply reply;
  reply.set_signal(signal);
  reply.set_output(output);
  return reply;
}

TEST(OutcomeTest, CrashIsTheCandidates) {
  const Ending run = EndingOf(Phase::kRun, Signalled(SIGSEGV, "some words\n"), 10);
  EXPECT_EQ(run.status, v1::MEASURE_STATUS_RUN_ERROR);
  EXPECT_EQ(run.error, "the run died of SIGSEGV: some words");
  EXPECT_EQ(EndingOf(Phase::kBuild, Signalled(SIGABRT), 10).status, v1::MEASURE_STATUS_BUILD_ERROR);
}

TEST(OutcomeTest, LimitsHaveTheirOwnStatuses) {
  v1::ForkReply late = Signalled(SIGKILL);
  late.set_timed_out(true);
  EXPECT_EQ(EndingOf(Phase::kRun, late, 2.5).status, v1::MEASURE_STATUS_RUN_TIMEOUT);
  EXPECT_THAT(EndingOf(Phase::kRun, late, 2.5).error, HasSubstr("2.5 s"));
  EXPECT_EQ(EndingOf(Phase::kBuild, late, 2.5).status, v1::MEASURE_STATUS_BUILD_TIMEOUT);
  EXPECT_EQ(EndingOf(Phase::kBuild, Signalled(SIGXCPU), 2.5).status, v1::MEASURE_STATUS_BUILD_TIMEOUT);
}

TEST(OutcomeTest, MemoryHasItsOwnStatus) {
  v1::ForkReply reply;
  reply.set_exit_code(77);
  reply.set_out_of_memory(true);
  EXPECT_EQ(EndingOf(Phase::kBuild, reply, 1).status, v1::MEASURE_STATUS_OUT_OF_MEMORY);
  EXPECT_EQ(EndingOf(Phase::kBuild, Signalled(SIGABRT, "LLVM ERROR: out of memory"), 1).status,
            v1::MEASURE_STATUS_OUT_OF_MEMORY);
}

TEST(OutcomeTest, WhatTheHostLacksIsTheWorkersFailure) {
  v1::ForkReply reply;
  reply.set_unmade(true);
  reply.set_output("Resource temporarily unavailable");
  const Ending unmade = EndingOf(Phase::kBuild, reply, 1);
  EXPECT_EQ(unmade.status, v1::MEASURE_STATUS_WORKER_UNFIT);
  EXPECT_EQ(unmade.error, "no process can be made for the build: Resource temporarily unavailable");
  EXPECT_EQ(EndingOf(Phase::kRun, absl::ResourceExhaustedError("killed")).status,
            v1::MEASURE_STATUS_WORKER_UNFIT);
}

TEST(OutcomeTest, ThreadsThatTheHostRefusesAreTheWorkersFailure) {
  v1::ForkReply reply;
  reply.set_exit_code(1);
  reply.set_output("\nlibgomp: Thread creation failed: Resource temporarily unavailable\n");
  const Ending run = EndingOf(Phase::kRun, reply, 1);
  EXPECT_EQ(run.status, v1::MEASURE_STATUS_WORKER_UNFIT);
  EXPECT_EQ(run.error,
            "this host gave the run no threads: libgomp: Thread creation failed: Resource temporarily "
            "unavailable");
  const std::string thrown = "  what():  Resource temporarily unavailable\n";
  EXPECT_EQ(EndingOf(Phase::kRun, Signalled(SIGABRT, thrown), 1).status, v1::MEASURE_STATUS_WORKER_UNFIT);
  EXPECT_EQ(EndingOf(Phase::kRun, Signalled(SIGABRT, "other words"), 1).status, v1::MEASURE_STATUS_RUN_ERROR);
}

TEST(OutcomeTest, StrangersKillIsNobodysFault) {
  EXPECT_EQ(EndingOf(Phase::kRun, Signalled(SIGKILL), 1).status, v1::MEASURE_STATUS_WORKER_LOST);
  EXPECT_EQ(EndingOf(Phase::kRun, absl::UnavailableError("gone")).status, v1::MEASURE_STATUS_WORKER_LOST);
}

TEST(OutcomeTest, OutputNeedNotBeText) {
  EXPECT_THAT(EndingOf(Phase::kRun, Signalled(SIGSEGV, "bad \xff byte"), 1).error, Not(HasSubstr("\xff")));
}

}  // namespace
}  // namespace mycc
