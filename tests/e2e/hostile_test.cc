// Candidates that attack: each attempt fails where candidates are confined, and the worker measures on as if
// nothing had been. The same attempts succeed where confinement is switched off, so that the test can fail.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"
#include "worker/local_worker.h"

namespace mycc {
namespace {

// A socket of a service of this host that nobody but its users should reach.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }
  int port() const { return port_; }

 private:
  int fd_, port_ = 0;
};

class HostileTest : public ::testing::TestWithParam<const char*> {
 protected:
  HostileTest() {
    std::ofstream(gemm_) << kTestWorkload;
    std::ofstream(folder_.Path("token")) << "secret\n";
  }
  void SetUp() override {
    if (UsableCpus() < 2) GTEST_SKIP() << "a kernel on one CPU starts no threads, where attempts are made";
  }

  // The thing that the attempt is aimed at.
  std::string Aim(const std::string& attempt) {
    if (attempt == "read") return folder_.Path("token");
    if (attempt == "write") return folder_.Path("planted");
    if (attempt == "port") return absl::StrCat(listener_.port());
    if (attempt == "socket") return folder_.Path("socket");
    return absl::StrCat(victim_->pid());
  }
  // The status of a candidate that makes the attempt.
  std::string StatusOf(const std::string& attempt, const std::vector<std::string>& flags) {
    const std::string log = folder_.Path(absl::StrCat("log", ++logs_)), output = folder_.Path("output"),
                      address = "unix:" + folder_.Path("socket");
    victim_ = std::make_unique<Background>("/bin/sleep", std::vector<std::string>{"600"}, output);
    Background server({"serve", "--log", log, "--listen", address}, output);
    EXPECT_TRUE(WaitForText(output, "serving", 60));
    std::vector<std::string> worker = {absl::StrCat("LD_PRELOAD=", HOSTILE_SHIM),
                                       absl::StrCat("MYCC_TEST_HOSTILE=", attempt),
                                       absl::StrCat("MYCC_TEST_AIM=", Aim(attempt)),
                                       "HOME=" + folder_.Path("."),
                                       MyccTunePath(),
                                       "worker",
                                       "--server",
                                       address,
                                       "--name",
                                       "w",
                                       "--builders",
                                       "1"};
    worker.insert(worker.end(), flags.begin(), flags.end());
    Background hostile("/usr/bin/env", worker, output);
    RunMyccTune({"tune", gemm_, "--server", address, "--trials", "1", "--quiet"});
    EXPECT_EQ(hostile.Terminate(), 0) << ReadAll(output);
    EXPECT_EQ(server.Terminate(), 0);
    const Ran list = RunMyccTune({"log", "list", "--log", log, "--json"});
    const auto record = nlohmann::json::parse(list.output.substr(0, list.output.find('\n')), nullptr,
                                              /*allow_exceptions=*/false);
    if (!record.is_object() || !record.contains("result")) return list.output + ReadAll(output);
    return record["result"].value("status", "");
  }

  TestFolder folder_;
  const std::string gemm_ = folder_.Path("gemm.te");
  const Listener listener_;
  std::unique_ptr<Background> victim_;
  int logs_ = 0;
};

TEST_P(HostileTest, FailsWhereCandidatesAreConfined) {
  if (RunInBash("unshare --user --mount --net --pid --fork true").exit_status != 0)
    GTEST_SKIP() << "the kernel grants no namespaces";
  EXPECT_EQ(StatusOf(GetParam(), {"--require-confinement"}), "ok");
  EXPECT_EQ(ReadAll(folder_.Path("planted")), "");
  EXPECT_EQ(waitpid(victim_->pid(), nullptr, WNOHANG), 0) << "somebody else's process has ended";
}

TEST_P(HostileTest, SucceedsWhereTheyAreNot) {
  if (GetParam() == std::string("bomb")) GTEST_SKIP() << "nothing would hold it back";
  EXPECT_EQ(StatusOf(GetParam(), {"--no-confinement"}), "wrong_result");
}

INSTANTIATE_TEST_SUITE_P(Attempts, HostileTest,
                         ::testing::Values("read", "write", "port", "socket", "fork", "bomb", "kill",
                                           "ptrace"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mycc
