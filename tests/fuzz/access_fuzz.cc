// Any text is refused in words that name the file, or is a list of callers that survives being printed and
// read again. Each of its secrets is its own caller's, and nobody is known by nothing.
#include <string>

#include "base/check.h"
#include "server/access.h"

namespace {

constexpr int64_t kNow = 1'800'000'000;

void CheckKnown(const mycc::AccessList& list, const mycc::Principal& principal, const mycc::Shown& shown,
                int64_t expires) {
  const auto caller = list.CallerOf(shown, kNow);
  const bool counts = !principal.revoked && (expires == 0 || expires > kNow);
  MYCC_CHECK(caller.ok() == counts) << principal.name;
  MYCC_CHECK(!caller.ok() || caller->name == principal.name) << principal.name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto list = mycc::AccessList::Parse({reinterpret_cast<const char*>(data), size}, "access.json");
  if (!list.ok()) {
    MYCC_CHECK(absl::IsInvalidArgument(list.status())) << list.status();
    MYCC_CHECK(list.status().message().substr(0, 13) == "`access.json`") << list.status();
    return 0;
  }
  const std::string text = list->Print();
  const auto again = mycc::AccessList::Parse(text, "access.json");
  MYCC_CHECK(again.ok()) << again.status() << "\n" << text;
  MYCC_CHECK(again->Print() == text) << text;
  MYCC_CHECK(!list->CallerOf({}, kNow).ok());
  for (const mycc::Principal& principal : list->principals()) {
    MYCC_CHECK(!principal.roles.empty()) << principal.name;
    for (const mycc::KnownSecret& token : principal.tokens)
      CheckKnown(*list, principal, {.token_sha256 = token.sha256}, token.expires_unix_seconds);
    for (const mycc::KnownSecret& certificate : principal.certificates)
      CheckKnown(*list, principal, {.certificate_sha256 = certificate.sha256},
                 certificate.expires_unix_seconds);
    for (const uid_t uid : principal.uids) CheckKnown(*list, principal, {.uid = uid}, 0);
  }
  return 0;
}
