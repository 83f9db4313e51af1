// A fork server's requests: crashes, hangs and limits, each the request's own.
#include "process/fork_server.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/fork_server_main.h"
#include "process/limits.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

volatile char* leak_here = nullptr;
volatile unsigned spins;

// The fork server of these tests does what the payload says.
std::string Misbehave(const std::string& payload) {
  static int calls = 0;
  ++calls;
  if (payload == "crash") {
    std::cerr << "about to crash" << std::endl;
    std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would make an exit of it
    raise(SIGSEGV);
  }
  if (payload == "hang") {
    for (;;) pause();
  }
  if (payload == "spin") {
    for (;;) spins = spins + 1;
  }
  if (payload == "exit") exit(3);
  if (payload == "killed") raise(SIGKILL);
  if (payload == "allocate") {
    for (;;) {
      leak_here = new char[16 << 20];
      std::memset(const_cast<char*>(leak_here), 1, 16 << 20);
    }
  }
  if (payload == "print") {
    for (int i = 0; i < 100000; ++i) std::cout << "line " << i << "\n";
    std::cout << std::flush;
  }
  if (payload == "kill fork_server") kill(getppid(), SIGKILL), sleep(1);
  if (payload == "orphan") {
    if (fork() == 0) {
      for (;;) pause();
    }
  }
  if (payload == "environment") {
    const char* const value = getenv("MYCC_FORK_SERVER_TEST");
    return value != nullptr ? value : "not set";
  }
  if (payload == "large") return std::string(3 << 20, 'x');
  return payload + " #" + std::to_string(calls);
}

v1::ForkRequest Request(const std::string& payload, double wall_seconds = 20) {
  v1::ForkRequest request;
  request.set_payload(payload);
  request.set_wall_seconds(wall_seconds);
  return request;
}

v1::ForkReply Call(ForkServer& fork_server, const v1::ForkRequest& request) {
  absl::StatusOr<v1::ForkReply> reply = fork_server.Call(request);
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.ok() ? *reply : v1::ForkReply();
}

TEST(ForkServerTest, EachRequestBeginsUntouched) {
  ForkServer fork_server("internal-test");
  for (int i = 0; i < 3; ++i) {
    const v1::ForkReply reply = Call(fork_server, Request("hello"));
    EXPECT_TRUE(reply.answered());
    EXPECT_EQ(reply.payload(), "hello #1") << "the counter of another request was seen";
  }
}

TEST(ForkServerTest, LargeAnswerAndManyWordsPass) {
  ForkServer fork_server("internal-test");
  EXPECT_EQ(Call(fork_server, Request("large")).payload().size(), size_t{3} << 20);
  const v1::ForkReply reply = Call(fork_server, Request("print"));
  EXPECT_THAT(reply.output(), HasSubstr("line 99999\n"));
  EXPECT_LE(reply.output().size(), 4096u);
}

TEST(ForkServerTest, CrashIsTheRequestsOwn) {
  ForkServer fork_server("internal-test");
  const v1::ForkReply crash = Call(fork_server, Request("crash"));
  EXPECT_FALSE(crash.answered());
  EXPECT_EQ(crash.signal(), SIGSEGV);
  EXPECT_THAT(crash.output(), HasSubstr("about to crash"));
  EXPECT_EQ(Call(fork_server, Request("exit")).exit_code(), 3);
  EXPECT_TRUE(Call(fork_server, Request("hello")).answered());
}

TEST(ForkServerTest, HangEndsAtTheLimit) {
  ForkServer fork_server("internal-test");
  const v1::ForkReply reply = Call(fork_server, Request("hang", 0.05));
  EXPECT_TRUE(reply.timed_out());
  EXPECT_FALSE(reply.answered());
  EXPECT_LT(reply.seconds(), 5);
  EXPECT_TRUE(Call(fork_server, Request("hello")).answered());
}

TEST(ForkServerTest, CpuTimeIsLimited) {
  ForkServer fork_server("internal-test");
  v1::ForkRequest request = Request("spin");
  request.set_cpu_seconds(1);
  const v1::ForkReply reply = Call(fork_server, request);
  EXPECT_EQ(reply.signal(), SIGXCPU);
  EXPECT_FALSE(reply.timed_out());
}

TEST(ForkServerTest, MemoryIsLimited) {
#ifdef ABSL_HAVE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer's operator new ends the process where another would call the handler";
#endif
  ForkServer fork_server("internal-test");
  v1::ForkRequest request = Request("allocate");
  request.set_address_space_bytes(256 << 20);
  const v1::ForkReply reply = Call(fork_server, request);
  EXPECT_TRUE(reply.out_of_memory());
  EXPECT_EQ(reply.exit_code(), kExitOutOfMemory);
}

TEST(ForkServerTest, StrangersKillIsNotTheRequests) {
  ForkServer fork_server("internal-test");
  const v1::ForkReply reply = Call(fork_server, Request("killed"));
  EXPECT_EQ(reply.signal(), SIGKILL);
  EXPECT_FALSE(reply.timed_out());
  EXPECT_FALSE(reply.out_of_memory());
}

TEST(ForkServerTest, LostForkServerIsReportedAndReplaced) {
  ForkServer fork_server("internal-test");
  const absl::StatusOr<v1::ForkReply> lost = fork_server.Call(Request("kill fork_server"));
  EXPECT_TRUE(absl::IsUnavailable(lost.status())) << lost.status();
  EXPECT_TRUE(Call(fork_server, Request("hello")).answered());
}

TEST(ForkServerTest, LeftoversAreKilledWithTheirGroup) {
  ForkServer fork_server("internal-test");
  const v1::ForkReply reply = Call(fork_server, Request("orphan", 5));
  EXPECT_TRUE(reply.answered());
  EXPECT_LT(reply.seconds(), 4) << "waited for what the request left behind";
}

TEST(ForkServerTest, EnvironmentIsAdded) {
  setenv("MYCC_FORK_SERVER_TEST", "inherited", 1);
  ForkServer plain("internal-test");
  ForkServer other("internal-test", {"MYCC_FORK_SERVER_TEST=own"});
  EXPECT_EQ(Call(plain, Request("environment")).payload(), "inherited");
  EXPECT_EQ(Call(other, Request("environment")).payload(), "own");
}

bool IsAlive(pid_t pid) { return kill(pid, 0) == 0; }

TEST(ForkServerTest, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    ForkServer fork_server("internal-test");
    Call(fork_server, Request("hello"));
    pid = fork_server.pid();
    EXPECT_TRUE(IsAlive(pid));
  }
  EXPECT_FALSE(IsAlive(pid));
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "internal-test") == 0) {
    if (!mycc::DieWithParent(std::atoi(argv[2]))) return 1;
    return mycc::ForkServerMain(mycc::Misbehave);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
