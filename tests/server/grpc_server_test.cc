// The server's side of a connection: addresses and sockets, tokens, messages of strangers, and many clients.
#include "server/grpc_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mycc_tune/tuning_client.h"
#include "server/server_loop.h"
#include "tests/server/fake_server.h"
#include "tests/server/judged.h"
#include "worker/grpc_link.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class GrpcServerTest : public ::testing::Test {
 protected:
  GrpcServerTest() {
    auto log = TuningLog::Open(folder_.Path("test.db"), OpenMode::kServe);
    EXPECT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    loop_ = std::make_unique<ServerLoop>(ServerLoopOptions(), log_.get(), &SystemTime());
    EXPECT_TRUE(loop_->Start().ok());
  }
  void SetUp() override {
    if (!kGrpcCanBeJudged) GTEST_SKIP() << "gRPC is not instrumented";
  }
  absl::Status ListWith(const ServerAddress& address) {
    const auto client = TuningClient::Connect(address);
    return client.ok() ? (*client)->ListJobs(1).status() : client.status();
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.Path(name)) << text;
    return folder_.Path(name);
  }

  TestFolder folder_;
  std::unique_ptr<TuningLog> log_;
  std::unique_ptr<ServerLoop> loop_;
};

TEST_F(GrpcServerTest, PortInUseIsOneClearLine) {
  const auto first = GrpcServer::Start({.address = "127.0.0.1:0"}, loop_.get());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(ListWith({.address = (*first)->address()}).ok());
  const absl::Status second = GrpcServer::Start({.address = (*first)->address()}, loop_.get()).status();
  EXPECT_TRUE(absl::IsUnavailable(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr("Address already in use"));
}

TEST_F(GrpcServerTest, SocketHasOneServerAtATime) {
  const std::string address = "unix:" + folder_.Path("socket");
  auto first = GrpcServer::Start({.address = address}, loop_.get());
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = GrpcServer::Start({.address = address}, loop_.get()).status();
  EXPECT_TRUE(absl::IsUnavailable(second));
  EXPECT_EQ(second.message(), "cannot listen on " + address + ": another server listens there");
  EXPECT_TRUE(ListWith({.address = address}).ok());
  (*first).reset();
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("socket.lock")));
  const auto third = GrpcServer::Start({.address = address}, loop_.get());
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_TRUE(ListWith({.address = address}).ok());
}

// A program that takes no lock: an older server.
class PlainListener {
 public:
  explicit PlainListener(const std::string& path) : descriptor_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(descriptor_, 1), 0);
  }
  void Close() {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));  // the socket's file stays
  }
  ~PlainListener() { Close(); }

 private:
  int descriptor_;
};

TEST_F(GrpcServerTest, SocketThatNobodyServesIsReplaced) {
  const std::string path = folder_.Path("socket"), address = "unix:" + path;
  PlainListener other(path);
  const absl::Status served = GrpcServer::Start({.address = address}, loop_.get()).status();
  EXPECT_EQ(served.message(), "cannot listen on " + address + ": another server listens there");
  other.Close();
  ASSERT_TRUE(std::filesystem::exists(path));
  const auto server = GrpcServer::Start({.address = "unix://" + path}, loop_.get());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(ListWith({.address = address}).ok());
}

TEST_F(GrpcServerTest, AddressOthersCanReachNeedsProtection) {
  const absl::Status open = GrpcServer::Start({.address = "0.0.0.0:0"}, loop_.get()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(open)) << open;
  EXPECT_THAT(std::string(open.message()), HasSubstr("--insecure-allow-remote"));
  EXPECT_TRUE(GrpcServer::Start({.address = "0.0.0.0:0", .insecure_allow_remote = true}, loop_.get()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(GrpcServer::Start({.address = "nowhere"}, loop_.get()).status()));
}

TEST_F(GrpcServerTest, TokenIsAskedFor) {
  const std::string token = Write("token", "sesame\n"), wrong = Write("wrong", "please");
  const auto server = GrpcServer::Start({.address = "127.0.0.1:0", .token_file = token}, loop_.get());
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(ListWith({.address = (*server)->address(), .token_file = token}).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(ListWith({.address = (*server)->address(), .token_file = wrong})));
  EXPECT_TRUE(absl::IsUnauthenticated(ListWith({.address = (*server)->address()})));
  EXPECT_TRUE(absl::IsFailedPrecondition(ListWith({.address = "example.org:1", .token_file = token})))
      << "in the clear";
}

// The token is looked at when the message is in memory.
TEST_F(GrpcServerTest, LargeMessagesWithoutATokenDoNotFillTheMemory) {
  constexpr int kCalls = 24, kMessageBytes = 8 << 20;
  const std::string token = Write("token", "sesame\n");
  const auto server = GrpcServer::Start(
      {.address = "127.0.0.1:0", .token_file = token, .message_bytes = size_t{2 * kMessageBytes}},
      loop_.get());
  ASSERT_TRUE(server.ok()) << server.status();
  v1::RegisterRequest request;
  request.set_worker(std::string(kMessageBytes, 'w'));
  std::vector<std::thread> strangers;
  std::atomic<int> refused = 0, read = 0;
  for (int i = 0; i < kCalls; ++i) {
    strangers.emplace_back([&] {
      const auto link = ConnectToServer({.address = (*server)->address()});
      const absl::Status status = (*link)->Register(request).status();
      refused += absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
      read += absl::IsUnauthenticated(status);
    });
  }
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_EQ(refused + read, kCalls);
  EXPECT_GT(refused, 0) << "all messages were in memory at the same time";
  EXPECT_TRUE(ListWith({.address = (*server)->address(), .token_file = token}).ok());
}

TEST_F(GrpcServerTest, ServerThatIsAwayIsNamed) {
  const absl::Status status = ListWith({.address = "127.0.0.1:1"});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no server answers at 127.0.0.1:1"));
}

// They submit five jobs, each of them often, and see the same ones.
TEST_F(GrpcServerTest, ManyClientsAtOnce) {
  constexpr int kClients = 100, kJobs = 5;
  const auto server = GrpcServer::Start({.address = "127.0.0.1:0"}, loop_.get());
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<std::string> submitted(kClients), watched(kClients);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const auto client = TuningClient::Connect({.address = (*server)->address()});
      v1::SubmitJobRequest request;
      *request.mutable_spec() = MakeSpec({kOtherWorkload}, 8, /*seed=*/i % kJobs);
      request.set_submission(std::to_string(i % kJobs));
      const auto job = (*client)->Submit(request);
      ASSERT_TRUE(job.ok()) << job.status();
      submitted[i] = job->job();
      const auto seen = (*client)->Watch(job->job(), 0, 0);
      ASSERT_TRUE(seen.ok()) << seen.status();
      watched[i] = seen->job();
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(watched, submitted);
  for (int i = 0; i < kClients; ++i) EXPECT_EQ(submitted[i], submitted[i % kJobs]);
  const auto jobs = (*TuningClient::Connect({.address = (*server)->address()}))->ListJobs(kClients);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  std::set<std::string> listed;
  for (const v1::JobProgress& job : *jobs) EXPECT_TRUE(listed.insert(job.job()).second) << job.job();
  EXPECT_EQ(listed, std::set<std::string>(submitted.begin(), submitted.begin() + kJobs));
  EXPECT_EQ(listed.size(), size_t{kJobs});
}

}  // namespace
}  // namespace mycc
