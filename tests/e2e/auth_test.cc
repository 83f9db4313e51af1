// The credentials of a farm as its users meet them: the programs, real users of this host, and a worker that
// works, is revoked, and works again.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "tests/e2e/mycc_tune.h"
#include "tests/server/fake_server.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class AuthTest : public ::testing::Test {
 protected:
  AuthTest() { EXPECT_EQ(Auth({"init", "--host", "farm.example.org"}).exit_status, 0); }

  Ran Auth(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "auth");
    arguments.insert(arguments.end(), {"--dir", Path("auth")});
    return RunMyccTune(arguments);
  }
  // A server at the address; its own address, with the port that was chosen.
  std::string Serve(const std::string& address, std::vector<std::string> options) {
    server_.reset();
    std::filesystem::remove(Path("serve.txt"));
    std::vector<std::string> arguments = {"serve", "--log", Path("log.db"), "--listen", address};
    arguments.insert(arguments.end(), options.begin(), options.end());
    server_ = std::make_unique<Background>(arguments, Path("serve.txt"));
    EXPECT_TRUE(WaitForText(Path("serve.txt"), " on ", 30)) << ReadAll(Path("serve.txt"));
    const std::string said = ReadAll(Path("serve.txt"));
    const size_t at = said.find(" on ") + 4;
    return said.substr(at, said.find('\n', at) - at);
  }
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  Ran Jobs(const std::string& server, const std::string& caller) {
    return RunMyccTune({"jobs", "--server", server, "--credentials", Path("auth/" + caller)});
  }

  const TestFolder folder_;
  std::unique_ptr<Background> server_;
};

TEST_F(AuthTest, OneCommandMakesAFarm) {
  const std::string server = Serve("127.0.0.1:0", {"--credentials", Path("auth")});
  const Background worker({"worker", "--server", server, "--credentials", Path("auth/worker"), "--name", "w"},
                          Path("worker.txt"));
  ASSERT_TRUE(WaitForText(Path("worker.txt"), "registered as w", 60)) << ReadAll(Path("worker.txt"));
  const Ran devices =
      RunMyccTune({"devices", "--json", "--server", server, "--credentials", Path("auth/admin")});
  EXPECT_THAT(devices.output, HasSubstr("\"owner\":\"worker\""));
  EXPECT_EQ(Auth({"revoke", "worker"}).exit_status, 0);
  EXPECT_TRUE(WaitForText(Path("worker.txt"), "the access of worker was revoked", 30))
      << ReadAll(Path("worker.txt"));
  EXPECT_EQ(Auth({"rotate", "worker"}).exit_status, 0);
}

TEST_F(AuthTest, EachCallerHasItsRole) {
  const std::string server = Serve("127.0.0.1:0", {"--credentials", Path("auth")});
  EXPECT_EQ(Jobs(server, "admin").exit_status, 0);
  const Ran worker = Jobs(server, "worker");
  EXPECT_EQ(worker.exit_status, 1);
  EXPECT_EQ(worker.output,
            "mycc-tune: ListJobs needs the role read, and worker has work; an admin gives it: mycc-tune auth "
            "grant worker --role read\n");
  const Ran nobody = RunMyccTune({"jobs", "--server", server, "--tls-ca", Path("auth/ca.pem")});
  EXPECT_THAT(nobody.output, HasSubstr("neither a certificate nor a token was shown"));
  EXPECT_EQ(RunMyccTune({"jobs", "--server", server}).exit_status, 1);
  EXPECT_EQ(Auth({"add", "reader", "--role", "read", "--token"}).exit_status, 0);
  ASSERT_TRUE(WaitForText(Path("serve.txt"), "access.json again", 10));
  EXPECT_EQ(Jobs(server, "reader").exit_status, 0);
}

TEST_F(AuthTest, OtherUsersOfTheHostStayOutUnlessTheyAreNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "to be another user takes root";
  if (std::system("setpriv --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no setpriv";
  // The program and the socket, where another user finds them.
  std::filesystem::copy_file(MyccTunePath(), Path("mycc-tune"));
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  const auto jobs_as_other = [this](const std::string& server) {
    return RunInBash("setpriv --reuid=65533 --regid=65533 --clear-groups " + Path("mycc-tune") +
                     " jobs --server " + server);
  };
  EXPECT_EQ(Auth({"add", "bob", "--role", "read", "--no-secret", "--uid", "65533"}).exit_status, 0);
  for (const std::string& address :
       {std::string("127.0.0.1:0"), std::string("[::1]:0"), "unix:" + Path("socket")}) {
    const std::string closed = Serve(address, {});
    EXPECT_EQ(RunMyccTune({"jobs", "--server", closed}).exit_status, 0) << address;
    const Ran refused = jobs_as_other(closed);
    EXPECT_EQ(refused.exit_status, 1) << address;
    EXPECT_THAT(refused.output,
                HasSubstr(address[0] == 'u' ? "Permission denied"
                                            : "user 65533 of this host may not use the server of user 0"));
    const std::string open = Serve(address, {"--access", Path("auth/access.json")});
    EXPECT_EQ(jobs_as_other(open).exit_status, 0) << jobs_as_other(open).output;
    EXPECT_EQ(server_->Terminate(), 0);
  }
}

}  // namespace
}  // namespace mycc
