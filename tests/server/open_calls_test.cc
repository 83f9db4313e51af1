// Calls that are answered, cancelled and refused by several threads at the same time, without a network: what
// ThreadSanitizer can judge of the gate before it.
#include "server/open_calls.h"

#include <atomic>
#include <thread>

#include "base/check.h"

namespace mycc {
namespace {

// A line that must not be used after its end, as a connection's context must not.
struct FakeLine {
  std::unique_ptr<int> context = std::make_unique<int>(0);
  std::atomic<int> finished = 0;
};

CallLine LineOf(FakeLine* line, const std::atomic<bool>* revoked) {
  return {[line] { return *line->context < 0; },
          [line, revoked]() -> absl::StatusOr<Caller> {
            ++*line->context;
            if (*revoked) return absl::PermissionDeniedError("revoked");
            return Caller{"ann", {Role::kWork}};
          },
          [line](const absl::Status&) {
            line->context.reset();
            ++line->finished;
          }};
}

TEST(OpenCallsTest, ACallEndsOnceWhoeverEndsIt) {
  constexpr int kCalls = 200;
  OpenCalls calls(CallBounds{});
  std::vector<FakeLine> lines(kCalls);
  std::atomic<bool> revoked = false;
  std::vector<std::shared_ptr<OpenCall>> open;
  for (FakeLine& line : lines)
    open.push_back(*calls.Begin("Lease", {"ann", {Role::kWork}}, 10, LineOf(&line, &revoked)));
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (const auto& call : open) {
      if (!call->Claim()) continue;
      calls.End(*call);
      call->Finish(absl::OkStatus());
    }
  });
  threads.emplace_back([&] {
    for (int i = 0; i < 5; ++i) calls.CheckAgain();
    revoked = true;
    calls.CheckAgain();
  });
  threads.emplace_back([&] {
    for (int i = 0; i < 5; ++i) {
      for (const auto& call : open) (void)call->IsAlive();
    }
  });
  for (std::thread& thread : threads) thread.join();
  for (const FakeLine& line : lines) EXPECT_EQ(line.finished, 1);
  EXPECT_EQ(calls.ledger().calls(), 0);
  EXPECT_EQ(calls.ledger().bytes(), 0);
  for (const auto& call : open) EXPECT_FALSE(call->IsAlive());
}

TEST(OpenCallsTest, ACallWhoseCallerLosesTheRoleEnds) {
  OpenCalls calls(CallBounds{});
  Caller now{"ann", {Role::kWork}};
  std::vector<absl::Status> ends;
  const auto line = [&] {
    return CallLine{[] { return false; }, [&]() -> absl::StatusOr<Caller> { return now; },
                    [&](const absl::Status& status) { ends.push_back(status); }};
  };
  const auto call = *calls.Begin("Lease", now, 10, line());
  calls.CheckAgain();
  EXPECT_TRUE(call->IsAlive());
  now.roles = {Role::kRead};
  calls.CheckAgain();
  EXPECT_FALSE(call->IsAlive());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_TRUE(absl::IsPermissionDenied(ends[0]));
  EXPECT_FALSE(call->Claim()) << "its answer comes too late";
  now.roles = {Role::kWork};
  const auto other = *calls.Begin("Lease", now, 10, line());
  now.name = "bob";
  calls.CheckAgain();
  EXPECT_TRUE(absl::IsUnauthenticated(ends.back())) << "the credential is another's";
}

}  // namespace
}  // namespace mycc
