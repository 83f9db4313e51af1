// A race of the kind that a handler could have: a call's thread writes what the deciding thread reads, and
// one of the two has no lock. The test `planted_race` demands that ThreadSanitizer reports it.
#include <thread>

#include "server/open_calls.h"

int main() {
  mycc::OpenCalls calls(mycc::CallBounds{});
  int answered = 0;  // without a lock
  const auto begin = [&calls, &answered] {
    return *calls.Begin("Lease", {"ann", {mycc::Role::kWork}}, 10,
                        {[] { return false; },
                         [] {
                           return mycc::Caller{"ann", {mycc::Role::kWork}};
                         },
                         [&answered](const absl::Status&) { ++answered; }});
  };
  const auto end = [&calls](const std::shared_ptr<mycc::OpenCall>& call) {
    if (!call->Claim()) return;
    calls.End(*call);
    call->Finish(absl::OkStatus());
  };
  const auto first = begin(), second = begin();
  std::thread other([&] { end(first); });
  end(second);
  other.join();
  return answered == 2 ? 0 : 1;
}
