// Locks of devices and names between processes, stopped ones among them.
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/host_lock.h"
#include "process/lock_file.h"
#include "process/name_lock.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Lock files of the test's own.
class LockTest : public ::testing::Test {
 protected:
  LockTest() { setenv("XDG_RUNTIME_DIR", folder_->path().c_str(), 1); }
  ~LockTest() override { unsetenv("XDG_RUNTIME_DIR"); }

  const absl::StatusOr<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

// A process that holds the lock of a device and is stopped.
class StoppedHolder {
 public:
  explicit StoppedHolder(HostLock::Mode mode) : pid_(fork()) {
    if (pid_ == 0) {
      const HostLock lock(mode, "gpu-7");
      raise(SIGSTOP);
      _exit(0);
    }
    waitpid(pid_, nullptr, WUNTRACED);
  }
  ~StoppedHolder() { End(); }

  void End() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST_F(LockTest, AStoppedProcessThatHoldsADevicesLockIsNamed) {
  for (const HostLock::Mode mode : {HostLock::Mode::kTiming, HostLock::Mode::kWorking}) {
    StoppedHolder holder(mode);
    EXPECT_THAT(StoppedHolderOf("gpu-7"),
                HasSubstr(absl::StrCat("gpu-7-", getuid(), ".lock is held by process ", holder.pid(), " (")));
    EXPECT_THAT(StoppedHolderOf("gpu-7"),
                HasSubstr("which is stopped; expected that it goes on (kill -CONT"));
    EXPECT_EQ(StoppedHolderOf("gpu-8"), "");
    holder.End();
    EXPECT_EQ(StoppedHolderOf("gpu-7"), "");
  }
}

TEST_F(LockTest, AWaitForALockIsGivenUpOnRequest) {
  StoppedHolder holder(HostLock::Mode::kTiming);
  for (const HostLock::Mode mode : {HostLock::Mode::kTiming, HostLock::Mode::kWorking}) {
    int asked = 0;
    const HostLock lock(mode, "gpu-7", [&asked] { return ++asked == 2; });
    EXPECT_TRUE(lock.gave_up());
  }
  holder.End();
  const HostLock lock(HostLock::Mode::kTiming, "gpu-7", [] { return false; });
  EXPECT_FALSE(lock.gave_up());
}

TEST_F(LockTest, AHolderThatWorksIsNoTrouble) {
  const HostLock lock(HostLock::Mode::kTiming, "gpu-7");
  ASSERT_EQ(HoldersOf(LockPath("gpu-7")).size(), 1u);
  EXPECT_EQ(HoldersOf(LockPath("gpu-7"))[0].pid, getpid());
  EXPECT_EQ(StoppedHolderOf("gpu-7"), "");
}

TEST_F(LockTest, TheSystemsListIsReadAsFarAsItIsUnderstood) {
  const std::string locks =
      "1: FLOCK  ADVISORY  WRITE 71 fe:00:4711 0 EOF\n"
      "1: -> FLOCK  ADVISORY  WRITE 72 fe:00:4711 0 EOF\n"
      "2: POSIX  ADVISORY  WRITE 73 fe:00:4711 0 EOF\n"
      "3: FLOCK  ADVISORY  READ 74 fe:00:4712 0 EOF\n"
      "4: FLOCK  ADVISORY  READ 75 08:01:4711 0 EOF\n"
      "5: FLOCK  ADVISORY  WRITE 0 fe:00:4711 0 EOF\n"
      "nonsense\n\n";
  EXPECT_THAT(PidsInLocks(locks, 4711), ElementsAre(71, 75));
  EXPECT_THAT(PidsInLocks(locks, 1), IsEmpty());
}

TEST_F(LockTest, ANameIsOneProcessesAtATime) {
  {
    const absl::StatusOr<NameLock> first = NameLock::Take("farm:7070", "w1");
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = NameLock::Take("farm:7070", "w1").status();
    EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
    EXPECT_THAT(std::string(second.message()),
                HasSubstr(absl::StrCat("a worker w1 of farm:7070 runs on this host as process ", getpid())));
    EXPECT_TRUE(NameLock::Take("farm:7070", "w2").ok());
    EXPECT_TRUE(NameLock::Take("other:7070", "w1").ok());
  }
  EXPECT_TRUE(NameLock::Take("farm:7070", "w1").ok()) << "the first has gone";
}

TEST_F(LockTest, TheNextProcessOfANameKnowsWhichOneEnded) {
  std::string first;
  {
    const absl::StatusOr<NameLock> lock = NameLock::Take("farm:7070", "w1");
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_EQ(lock->replaces(), "");
    first = lock->instance();
    EXPECT_EQ(first.size(), 32u);
  }
  const absl::StatusOr<NameLock> next = NameLock::Take("farm:7070", "w1");
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->replaces(), first);
  EXPECT_NE(next->instance(), first);
}

TEST_F(LockTest, WithoutALockFileAWorkerWorksAllTheSame) {
  setenv("XDG_RUNTIME_DIR", "/proc", 1);  // where nobody can make a file, root included
  if (LockPath("x").rfind("/proc/", 0) != 0) GTEST_SKIP() << "/proc is known to take no files";
  const absl::StatusOr<NameLock> lock = NameLock::Take("farm:7070", "w1");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(lock->replaces(), "");
  EXPECT_EQ(lock->instance().size(), 32u);
}

// The work stands for a search whose process is stopped.
TEST_F(LockTest, WorkThatDoesNotEndLetsOthersTime) {
  std::promise<void> timed;
  std::future<void> is_timed = timed.get_future();
  std::thread timer;
  std::future_status seen = std::future_status::timeout;
  WorkQuietly(
      [&] {
        timer = std::thread([&timed] {
          const HostLock alone(HostLock::Mode::kTiming, "gpu-7");
          timed.set_value();
        });
        seen = is_timed.wait_for(std::chrono::seconds(10));
      },
      /*most_seconds=*/0.1, "gpu-7");
  timer.join();
  EXPECT_EQ(seen, std::future_status::ready) << "nothing was timed while the work went on";
}

TEST_F(LockTest, WorkKeepsOthersFromTimingUntilItIsDone) {
  const auto can_time = [] {
    const int fd = OpenLockFile(LockPath("gpu-7"));
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return locked;
  };
  bool during = true;
  WorkQuietly([&] { during = can_time(); }, /*most_seconds=*/600, "gpu-7");
  EXPECT_FALSE(during);
  EXPECT_TRUE(can_time());
}

}  // namespace
}  // namespace mycc
