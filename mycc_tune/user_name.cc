#include "mycc_tune/user_name.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr size_t kMostEntryBytes = 16384;

}  // namespace

std::string UserName() {
  std::vector<char> buffer(kMostEntryBytes);
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? std::string(found->pw_name) : absl::StrCat("user ", getuid());
}

std::string UserAtHost() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(UserName(), "@", host);
}

bool IsOwn(const std::string& owner, const std::string& caller) {
  return caller.empty() ? owner == UserAtHost() || owner == UserName() : owner == caller;
}

}  // namespace mycc
