// The doctor's checks of processors, memory, limits, folders and the log's disk, on hosts that the tests
// describe.
#include <cstdlib>

#include "db/log_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/doctor/fake_host.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

auto IsOk(const std::string& words) {
  return AllOf(Field(&Finding::verdict, Verdict::kOk), Field(&Finding::found, HasSubstr(words)));
}
auto IsWarning(const std::string& words, const std::string& remedy) {
  return AllOf(Field(&Finding::verdict, Verdict::kWarning), Field(&Finding::found, HasSubstr(words)),
               Field(&Finding::remedy, HasSubstr(remedy)));
}
auto IsFault(const std::string& words, const std::string& remedy) {
  return AllOf(Field(&Finding::verdict, Verdict::kFault), Field(&Finding::found, HasSubstr(words)),
               Field(&Finding::remedy, HasSubstr(remedy)));
}

class HostChecksTest : public ::testing::Test {
 protected:
  FakeHost host_;
  Installation& installation_ = host_.installation;
};

TEST_F(HostChecksTest, HealthyHostHasNoFault) {
  installation_.log = host_.Path("farm.db");
  installation_.listen = "127.0.0.1:7070";
  const Findings findings = Examine(installation_);
  EXPECT_THAT(findings, Each(Field(&Finding::verdict, Verdict::kOk)));
  EXPECT_THAT(findings, Each(Field(&Finding::check, Not(IsEmpty()))));
  EXPECT_GE(findings.size(), 15u);
}

TEST_F(HostChecksTest, EveryCheckBearsAHostThatTellsNothing) {
  installation_.root = host_.Path("nothing");
  installation_.log = host_.Path("farm.db");
  for (const NamedCheck& each : Checks()) {
    SCOPED_TRACE(each.name);
    for (const Finding& finding : each.check(installation_)) EXPECT_NE(finding.verdict, Verdict::kFault);
  }
}

TEST_F(HostChecksTest, Governor) {
  host_.SetGovernor(2, "powersave");
  EXPECT_THAT(CheckGovernor(installation_), ElementsAre(IsOk("performance on 3 of 4 CPUs"),
                                                        IsWarning("powersave on 1 of 4 CPUs", "cpupower")));
  installation_.devices = {"cuda:0"};
  EXPECT_THAT(CheckGovernor(installation_), IsEmpty());
}

TEST_F(HostChecksTest, Turbo) {
  EXPECT_THAT(CheckTurbo(installation_), ElementsAre(IsOk("does not tell")));
  host_.Write("/sys/devices/system/cpu/cpufreq/boost", "1");
  EXPECT_THAT(CheckTurbo(installation_), ElementsAre(IsOk("on: ")));
  host_.Write("/sys/devices/system/cpu/intel_pstate/no_turbo", "1");
  EXPECT_THAT(CheckTurbo(installation_), ElementsAre(IsOk("off: ")));
}

TEST_F(HostChecksTest, Cpus) {
  host_.Write("/sys/devices/system/cpu/online", "0-3,8,10-11");
  EXPECT_THAT(CheckCpus(installation_), ElementsAre(IsOk("4 of 7 CPUs")));
  host_.Write("/sys/devices/system/cpu/smt/active", "1");
  EXPECT_THAT(CheckCpus(installation_), ElementsAre(IsOk("two hardware threads")));
  installation_.system.usable_cpus = [] { return 1; };
  EXPECT_THAT(CheckCpus(installation_), ElementsAre(IsWarning("1 of 7", "at least 2")));
}

TEST_F(HostChecksTest, QuotaOfAGroupAbove) {
  EXPECT_THAT(CheckQuota(installation_), ElementsAre(IsOk("none")));
  host_.Write("/sys/fs/cgroup/farm.slice/worker/cpu.max", "max 100000");
  host_.Write("/sys/fs/cgroup/farm.slice/cpu.max", "150000 100000");
  EXPECT_THAT(CheckQuota(installation_), ElementsAre(IsWarning("1.5 CPUs' time for 4 CPUs", "cpuset")));
  host_.Write("/sys/fs/cgroup/farm.slice/cpu.max", "400000 100000");
  EXPECT_THAT(CheckQuota(installation_), ElementsAre(IsOk("4 CPUs' time")));
}

TEST_F(HostChecksTest, QuotaOfVersionOne) {
  host_.Write("/proc/self/cgroup", "3:cpu,cpuacct:/job\n1:name=systemd:/\n0::/");
  host_.Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1");
  EXPECT_THAT(CheckQuota(installation_), ElementsAre(IsOk("none")));
  host_.Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000");
  host_.Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000");
  EXPECT_THAT(CheckQuota(installation_), ElementsAre(IsWarning("0.5 CPUs' time", "cpuset")));
}

TEST_F(HostChecksTest, Memory) {
  EXPECT_THAT(CheckMemory(installation_), ElementsAre(IsOk("61.0 GiB available")));
  host_.Write("/sys/fs/cgroup/farm.slice/memory.max", "2147483648");
  EXPECT_THAT(CheckMemory(installation_),
              ElementsAre(IsWarning("limited to 2.0 GiB by the control group", "--builders 2")));
}

TEST_F(HostChecksTest, Limits) {
  EXPECT_THAT(CheckLimits(installation_), ElementsAre(IsOk("suffice")));
  host_.Write("/proc/self/limits", "Max processes   100   100 processes\nMax open files  1024  4096 files");
  EXPECT_THAT(CheckLimits(installation_), ElementsAre(IsWarning("1024 open files", "LimitNOFILE"),
                                                      IsWarning("100 processes", "TasksMax")));
  host_.Write("/proc/self/limits",
              "Max processes   unlimited unlimited processes\nMax open files  64 64 files");
  EXPECT_THAT(CheckLimits(installation_), ElementsAre(IsFault("64 open files", "LimitNOFILE")));
}

TEST_F(HostChecksTest, ScratchFolder) {
  EXPECT_THAT(CheckScratch(installation_), ElementsAre(IsOk("100.0 GiB free")));
  installation_.system.free_bytes = [](const std::string&) { return int64_t{1} << 30; };
  EXPECT_THAT(CheckScratch(installation_), ElementsAre(IsWarning("1.0 GiB free", "TMPDIR")));
  host_.Write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / " +
                                          std::filesystem::temp_directory_path().string() +
                                          " rw,noexec - tmpfs tmpfs rw");
  EXPECT_THAT(CheckScratch(installation_), ElementsAre(IsFault("noexec", "TMPDIR")));
}

TEST_F(HostChecksTest, Confinement) {
  installation_.system.make_namespaces = [] { return absl::PermissionDeniedError("no namespaces"); };
  EXPECT_THAT(CheckConfinement(installation_), ElementsAre(IsWarning("no namespaces", "seccomp profile")));
  host_.Write("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1");
  EXPECT_THAT(CheckConfinement(installation_), ElementsAre(IsWarning("confined less", "AppArmor")));
  host_.Write("/proc/sys/user/max_user_namespaces", "0");
  EXPECT_THAT(CheckConfinement(installation_),
              ElementsAre(IsWarning("confined less", "max_user_namespaces=")));
}

TEST_F(HostChecksTest, Clock) {
  installation_.system.clock_is_kept = [] { return false; };
  EXPECT_THAT(CheckClock(installation_), ElementsAre(IsWarning("no time service", "set-ntp")));
}

TEST_F(HostChecksTest, FileSystemOfTheLog) {
  installation_.log = host_.Path("farm.db");
  const auto mount = [this](const std::string& line) {
    host_.Write("/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n" + line);
    return CheckFileSystem(installation_);
  };
  const std::string place = installation_.root;
  EXPECT_THAT(mount(""), ElementsAre(IsOk("ext4 at /")));
  EXPECT_THAT(mount("2 1 0:9 / " + place + " rw - nfs4 nas:/farm rw"),
              ElementsAre(IsFault("nfs4 at " + place, "local disk")));
  EXPECT_THAT(mount("2 1 0:9 / " + place + " rw - overlay overlay rw"),
              ElementsAre(IsWarning("goes with its container", "local disk")));
  EXPECT_THAT(mount("2 1 0:9 / " + place + " ro - xfs /dev/sdb rw"),
              ElementsAre(IsFault("read-only", "mount")));
  // A mount of a folder with a like name is another one, and a later mount hides an earlier one.
  EXPECT_THAT(mount("2 1 0:9 / " + place.substr(0, place.size() - 1) + " rw - nfs4 nas:/ rw"),
              ElementsAre(IsOk("ext4")));
  EXPECT_THAT(
      mount("2 1 0:9 / " + place + " rw - nfs4 nas:/ rw\n3 2 0:9 / " + place + " rw - xfs /dev/sdb rw"),
      ElementsAre(IsOk("xfs")));
}

TEST_F(HostChecksTest, SpaceAndDiskOfTheLog) {
  EXPECT_THAT(CheckSpace(installation_), IsEmpty()) << "there is no log";
  installation_.log = host_.Path("farm.db");
  EXPECT_THAT(CheckSpace(installation_), ElementsAre(IsOk("102400 MiB free")));
  installation_.system.free_bytes = [](const std::string&) { return int64_t{10} << 20; };
  EXPECT_THAT(CheckSpace(installation_), ElementsAre(IsFault("10 MiB free", "enlarge")));
  EXPECT_THAT(CheckSync(installation_), ElementsAre(IsOk("takes 2.0 ms, 4.0 ms at most")));
  installation_.system.sync_seconds = [](const std::string&) {
    return std::vector<double>{0.001, 0.05, 0.06};
  };
  EXPECT_THAT(CheckSync(installation_), ElementsAre(IsWarning("50.0 ms", "SSD")));
}

TEST_F(HostChecksTest, LogItself) {
  installation_.log = host_.Path("none/farm.db");
  EXPECT_THAT(CheckLog(installation_), ElementsAre(IsFault("folder does not exist", "make")));
  installation_.log = host_.Path("farm.db");
  EXPECT_THAT(CheckLog(installation_), ElementsAre(IsOk("made by the first")));
  installation_.log = "no-such-log.db";
  EXPECT_THAT(CheckLog(installation_), ElementsAre(IsOk("made by the first"))) << "in the current folder";
  installation_.log = host_.Path("farm.db");
  host_.Write("/farm.db", "no log, but long enough to be looked at as one");
  EXPECT_THAT(CheckLog(installation_), ElementsAre(IsFault("farm.db", "operating.md")));
}

TEST_F(HostChecksTest, LogIsReadWhole) {
  installation_.log = host_.Path("farm.db");
  ASSERT_TRUE(LogFile::Open(installation_.log, OpenMode::kCreate)->Close().ok());
  EXPECT_THAT(CheckLog(installation_), ElementsAre(IsOk("farm.db is whole")));
  // The last page of the file: opening the log does not look at it.
  std::fstream file(installation_.log, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-4096, std::ios::end);
  file << std::string(100, '\xff');
  file.close();
  EXPECT_THAT(CheckLog(installation_), ElementsAre(IsFault("damaged", "newest backup")));
}

TEST_F(HostChecksTest, RealSystemAnswers) {
  const System system = System::Real();
  EXPECT_GE(system.usable_cpus(), 1);
  (void)system.clock_is_kept();
  (void)system.make_namespaces();
  EXPECT_GT(*system.free_bytes(installation_.root), 0);
  EXPECT_FALSE(system.free_bytes("/no/such/folder").ok());
  EXPECT_EQ(system.sync_seconds(installation_.root)->size(), 15u);
  EXPECT_FALSE(system.sync_seconds("/proc").ok());
  EXPECT_TRUE(system.bind("127.0.0.1", "0").ok());
  EXPECT_FALSE(system.bind("192.0.2.1", "0").ok()) << "an address of no host";
}

}  // namespace
}  // namespace mycc
