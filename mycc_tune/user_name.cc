#include "mycc_tune/user_name.h"

#include <pwd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace mycc {

std::string UserAtHost() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const passwd* const user = getpwuid(getuid());
  return absl::StrCat(user != nullptr ? std::string(user->pw_name) : absl::StrCat("user ", getuid()), "@",
                      host);
}

}  // namespace mycc
