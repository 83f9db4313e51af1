// Confined fork servers: what a hostile request tries fails, and costs no other request anything. As root,
// the tests run once more as a user without rights.
#include "process/confine.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/fork_server.h"
#include "process/fork_server_main.h"
#include "process/limits.h"

namespace mycc {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Errno(long result) { return result >= 0 ? "done" : strerrorname_np(errno); }

std::string Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "cannot be read";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Write(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return strerrorname_np(errno);
  const std::string result = Errno(write(fd, "words", 5));
  close(fd);
  return result;
}

std::string Connect(int family) {
  const int fd = socket(family, SOCK_STREAM, 0);
  if (fd < 0) return strerrorname_np(errno);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(22);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Errno(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

// Forks as often as the system lets it; each child goes on forking.
std::string ForkBomb() {
  int made = 0;
  for (int i = 0; i < 10000; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      while (true) {
        if (fork() < 0) pause();
      }
    }
    made += child > 0 ? 1 : 0;
  }
  return absl::StrCat(made, " made");
}

// The system call itself: the C library could refuse before the kernel does.
std::string ThreadBomb() {
  int made = 0;
  static volatile bool end = false;
  for (int i = 0; i < 10000; ++i) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    const int error = pthread_create(
        &thread, &small,
        [](void*) -> void* {
          while (!end) pause();
          return nullptr;
        },
        nullptr);
    if (error != 0) return absl::StrCat(made, " made, then ", strerrorname_np(error));
    ++made;
  }
  return absl::StrCat(made, " made");
}

std::string OwnProcesses() {
  int processes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    processes += isdigit(entry.path().filename().string()[0]) != 0 ? 1 : 0;
  return absl::StrCat(processes, " processes, ", getpid() == 2 ? "" : "not ", "the second");
}

std::string Allocate() {
  while (true) std::memset(new char[16 << 20], 1, 16 << 20);
}

// A request is a word, and perhaps a path.
std::string Misbehave(const std::string& payload) {
  const std::string what = payload.substr(0, payload.find(' ')),
                    path = payload.substr(std::min(payload.size(), what.size() + 1));
  if (what == "hello") return "hello";
  if (what == "read") return Read(path);
  if (what == "write") return Write(path);
  if (what == "unlink") return Errno(unlink(path.c_str()));
  if (what == "list") return std::filesystem::is_empty(path) ? "empty" : "not empty";
  if (what == "connect") return Connect(AF_INET);
  if (what == "unix") return Errno(socket(AF_UNIX, SOCK_STREAM, 0));
  if (what == "interfaces") return Read("/proc/self/net/dev");
  if (what == "fork") return Errno(fork());
  if (what == "bomb") return ForkBomb();
  if (what == "threads") return ThreadBomb();
  if (what == "exec") return Errno(execl("/bin/true", "true", nullptr));
  if (what == "kill") return Errno(kill(-1, SIGKILL));
  if (what == "kill_server") return Errno(kill(getppid(), SIGKILL));
  if (what == "ptrace") return Errno(ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr));
  if (what == "memory_of_server") return Read(absl::StrCat("/proc/", getppid(), "/mem"));
  if (what == "mount") return Errno(syscall(SYS_mount, "tmpfs", path.c_str(), "tmpfs", 0, nullptr));
  if (what == "unshare") return Errno(syscall(SYS_unshare, 0x10000000));  // a user namespace
  if (what == "setuid") return Errno(setuid(0)) + (geteuid() == 0 ? " and root" : "");
  if (what == "user") return absl::StrCat(geteuid());
  if (what == "processes") return OwnProcesses();
  if (what == "allocate") return Allocate();
  if (what == "crash") std::signal(SIGSEGV, SIG_DFL), raise(SIGSEGV);
  if (what == "abort") std::signal(SIGABRT, SIG_DFL), std::abort();
  if (what == "hang") {
    for (;;) pause();
  }
  if (what == "spin") {
    for (volatile unsigned spins = 0;;) spins = spins + 1;
  }
  return "unknown";
}

class ConfineTest : public ::testing::Test {
 protected:
  ConfineTest() {
    setenv("HOME", home_.path().c_str(), 1);
    std::ofstream(home_.path() + "/token") << "a secret";
    std::ofstream(other_.path() + "/key") << "a secret";
    chmod((other_.path() + "/key").c_str(), 0644);
    std::ofstream(scratch_.path() + "/input") << "an input";
    GiveToChildren(scratch_.path());
    confinement_.mode = ConfinementMode::kRequired;
    confinement_.writable = {scratch_.path()};
    confinement_.hidden = {other_.path()};
  }
  void SetUp() override {
#if defined(ABSL_HAVE_THREAD_SANITIZER)
    GTEST_SKIP() << "ThreadSanitizer's own thread keeps a process from user namespaces";
#endif
    const absl::StatusOr<std::vector<std::string>> missing = MissingMeasures(confinement_);
    ASSERT_TRUE(missing.ok()) << missing.status();
    if (!missing->empty()) GTEST_SKIP() << "the kernel refuses: " << absl::StrJoin(*missing, "; ");
    fork_server_ = std::make_unique<ForkServer>("internal-test", std::vector<std::string>(), confinement_);
  }

  v1::ForkReply Call(v1::ForkRequest request) {
    absl::StatusOr<v1::ForkReply> reply = fork_server_->Call(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *reply : v1::ForkReply();
  }
  static v1::ForkRequest Request(const std::string& payload, double wall_seconds = 20) {
    v1::ForkRequest request;
    request.set_payload(payload);
    request.set_wall_seconds(wall_seconds);
    return request;
  }
  std::string Answer(const std::string& payload, bool only_reads = false) {
    v1::ForkRequest request = Request(payload);
    request.set_only_reads(only_reads);
    const v1::ForkReply reply = Call(request);
    return reply.answered() ? reply.payload() : "no answer: " + reply.ShortDebugString();
  }
  void ExpectSound() { EXPECT_EQ(Answer("hello"), "hello"); }

  // In a folder that is not hidden by itself.
  const TemporaryFolder home_ = TemporaryFolder::CreateIn("/var/tmp").value(),
                        other_ = TemporaryFolder::CreateIn("/var/tmp").value(),
                        scratch_ = TemporaryFolder::Create().value();
  Confinement confinement_;
  std::unique_ptr<ForkServer> fork_server_;
};

TEST_F(ConfineTest, ThereIsNoNetwork) {
  EXPECT_EQ(Answer("connect"), "EACCES");
  EXPECT_EQ(Answer("unix"), "EACCES");
  const std::string interfaces = Answer("interfaces");
  EXPECT_THAT(interfaces, HasSubstr("lo:"));
  EXPECT_THAT(interfaces, Not(HasSubstr("eth")));
}

TEST_F(ConfineTest, NothingIsWrittenOutsideTheFolder) {
  EXPECT_EQ(Answer("write " + scratch_.path() + "/output"), "done");
  EXPECT_EQ(Read(scratch_.path() + "/output"), "words");
  for (const char* path :
       {"/output", "/usr/output", "/dev/shm/output", "/tmp/output", "/var/tmp/output", "/run/x"})
    EXPECT_THAT(Answer(absl::StrCat("write ", path)), AnyOf("EROFS", "ENOENT", "EACCES")) << path;
  EXPECT_EQ(Answer("write /dev/null"), "done");
}

TEST_F(ConfineTest, WhoOnlyReadsChangesNothing) {
  EXPECT_EQ(Answer("read " + scratch_.path() + "/input", /*only_reads=*/true), "an input");
  EXPECT_EQ(Answer("write " + scratch_.path() + "/more", /*only_reads=*/true), "EROFS");
  EXPECT_EQ(Answer("write " + scratch_.path() + "/input", /*only_reads=*/true), "EROFS");
  EXPECT_EQ(Answer("unlink " + scratch_.path() + "/input", /*only_reads=*/true), "EROFS");
  EXPECT_EQ(Answer("read " + scratch_.path() + "/input"), "an input");
}

TEST_F(ConfineTest, SecretsAreHidden) {
  EXPECT_EQ(Answer("read " + home_.path() + "/token"), "cannot be read");
  EXPECT_EQ(Answer("read " + other_.path() + "/key"), "cannot be read");
  EXPECT_EQ(Read(other_.path() + "/key"), "a secret") << "hidden from children alone";
  confinement_.hidden = {"/etc/hostname"};
  fork_server_ = std::make_unique<ForkServer>("internal-test", std::vector<std::string>(), confinement_);
  EXPECT_EQ(Answer("read /etc/hostname"), "");
}

// A program in ~/bin or in /tmp asks for folders there.
TEST_F(ConfineTest, AFolderThatIsHiddenDoesNotStayAndOneInItDoes) {
  std::filesystem::create_directory(home_.path() + "/bin");
  std::ofstream(home_.path() + "/bin/tool") << "a tool";
  confinement_.readable = {home_.path(), "/tmp", home_.path() + "/bin"};
  fork_server_ = std::make_unique<ForkServer>("internal-test", std::vector<std::string>(), confinement_);
  EXPECT_EQ(Answer("read " + home_.path() + "/token"), "cannot be read");
  EXPECT_EQ(Answer("read " + home_.path() + "/bin/tool"), "a tool");
  EXPECT_EQ(Answer("write " + home_.path() + "/bin/tool"), "EROFS");
  EXPECT_EQ(Answer("write " + scratch_.path() + "/output"), "done");
  ExpectSound();
}

TEST_F(ConfineTest, ProcessesAreNotMade) {
  EXPECT_EQ(Answer("fork"), "EPERM");
  EXPECT_EQ(Answer("exec"), "EPERM");
  EXPECT_EQ(Answer("bomb"), "0 made");
  ExpectSound();
}

TEST_F(ConfineTest, ThreadsAreBounded) {
  const std::string threads = Answer("threads");
  EXPECT_THAT(threads, HasSubstr(" made, then EAGAIN"));
  EXPECT_LT(std::atoi(threads.c_str()), 256 + 4 * static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GT(std::atoi(threads.c_str()), 128);
  ExpectSound();
}

TEST_F(ConfineTest, OthersAreNeitherSeenNorReached) {
  EXPECT_EQ(Answer("processes"), "2 processes, the second");
  EXPECT_THAT(Answer("kill"), AnyOf("ESRCH", "EPERM", "done"));
  EXPECT_EQ(Answer("ptrace"), "EPERM");
  EXPECT_EQ(Answer("memory_of_server"), "cannot be read");
  Answer("kill_server");
  EXPECT_EQ(Answer("hello"), "hello");
}

TEST_F(ConfineTest, RightsAreGoneForGood) {
  EXPECT_NE(Answer("user"), "0");
  EXPECT_EQ(Answer("setuid"), "EINVAL");
  EXPECT_EQ(Answer("mount /"), "EPERM");
  EXPECT_EQ(Answer("unshare"), "EPERM");
}

TEST_F(ConfineTest, EndingsAreToldAsWithoutConfinement) {
  EXPECT_EQ(Call(Request("crash")).signal(), SIGSEGV);
  EXPECT_EQ(Call(Request("abort")).signal(), SIGABRT);
  EXPECT_TRUE(Call(Request("hang", 0.1)).timed_out());
  v1::ForkRequest spin = Request("spin");
  spin.set_cpu_seconds(1);
  EXPECT_EQ(Call(spin).signal(), SIGXCPU);
  v1::ForkRequest allocate = Request("allocate");
  allocate.set_address_space_bytes(256 << 20);
  EXPECT_TRUE(Call(allocate).out_of_memory());
  ExpectSound();
}

// The only child of a process.
pid_t ChildOf(pid_t parent) {
  return std::atoi(Read(absl::StrCat("/proc/", parent, "/task/", parent, "/children")).c_str());
}

// Whether the process has ended, also where nobody has asked how.
bool HasEnded(pid_t pid) {
  const std::string stat = Read(absl::StrCat("/proc/", pid, "/stat"));
  const size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos || stat[name_end + 2] == 'Z';
}

bool EndsSoon(pid_t pid) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!HasEnded(pid) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return HasEnded(pid);
}

TEST_F(ConfineTest, KeeperAndForkServerEndTogether) {
  for (const bool kills_keeper : {false, true}) {
    ExpectSound();
    const pid_t keeper = fork_server_->pid(), server = ChildOf(keeper);
    ASSERT_GT(server, 0);
    kill(kills_keeper ? keeper : server, SIGKILL);
    EXPECT_TRUE(EndsSoon(server)) << Read(absl::StrCat("/proc/", server, "/status"));
    EXPECT_TRUE(absl::IsUnavailable(fork_server_->Call(Request("hello")).status())) << kills_keeper;
  }
  ExpectSound();  // one that was lost is replaced
  const pid_t last = ChildOf(fork_server_->pid());
  ASSERT_GT(last, 0);
  fork_server_.reset();
  EXPECT_TRUE(EndsSoon(last)) << Read(absl::StrCat("/proc/", last, "/status"));
}

TEST_F(ConfineTest, WhatIsMissingIsAnErrorWhereItIsRequired) {
  confinement_.writable.push_back("/nowhere");
  const absl::StatusOr<std::vector<std::string>> missing = MissingMeasures(confinement_);
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_THAT(absl::StrJoin(*missing, "; "), HasSubstr("files (finding the folder /nowhere"));
  ForkServer refuses("internal-test", {}, confinement_);
  EXPECT_TRUE(absl::IsUnavailable(refuses.Call(Request("hello")).status()));
  confinement_.mode = ConfinementMode::kWherePossible;
  ForkServer works("internal-test", {}, confinement_);
  EXPECT_TRUE(works.Call(Request("hello")).ok());
}

TEST(ConfinementTest, ArgumentsAreReadAsTheyWereWritten) {
  Confinement confinement;
  EXPECT_THAT(confinement.ToArguments(), IsEmpty());
  confinement.mode = ConfinementMode::kRequired;
  confinement.has_device = confinement.hides_current_folder = true;
  confinement.writable = {"/a b", "/c=d"};
  confinement.readable = {"/e"};
  confinement.hidden = {"/f"};
  const absl::StatusOr<Confinement> read = Confinement::FromArguments(confinement.ToArguments());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToArguments(), confinement.ToArguments());
  EXPECT_TRUE(absl::IsInvalidArgument(Confinement::FromArguments({"loosely"}).status()));
}

TEST(ConfineAsUserTest, TheSameHolds) {
  if (geteuid() != 0) GTEST_SKIP() << "it is not root that runs the tests: they are a user's already";
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kSomebody = 61183;
    if (setresgid(kSomebody, kSomebody, kSomebody) != 0 || setresuid(kSomebody, kSomebody, kSomebody) != 0)
      _exit(1);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("TMPDIR");
    execl("/proc/self/exe", "confine_test", "--gtest_filter=ConfineTest.*", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == "internal-test" || command == mycc::kConfineCommand) {
    const pid_t parent = std::atoi(argv[2]);
    if (!mycc::DieWithParent(parent)) return 1;
    const auto confinement = mycc::Confinement::FromArguments({argv + 3, argv + argc});
    if (!confinement.ok()) return 1;
    if (command == mycc::kConfineCommand) return mycc::ConfineMain(*confinement, parent);
    mycc::Confine(*confinement, parent);
    return mycc::ForkServerMain(mycc::Misbehave);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
