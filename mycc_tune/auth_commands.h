// `mycc-tune auth ...`: makes and changes a farm's credentials (credential_folder.h), and prints what to do
// with them. Thread rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mycc {

inline constexpr char kDefaultCredentials[] = "mycc-tune-auth";

struct AuthArgs {
  std::string folder = kDefaultCredentials;
  std::string name;
  std::vector<std::string> hosts;  // of the server
  std::vector<std::string> roles;  // words
  std::vector<uint32_t> uids;
  std::vector<std::string> common_names;
  bool token = false, no_secret = false;
  bool drop_old = false;  // of `rotate ca`
  int days = 365;
  double overlap_hours = 0;
  bool json = false;
};

absl::Status AuthInit(const AuthArgs& args, std::ostream& out);
absl::Status AuthAdd(const AuthArgs& args, std::ostream& out);
absl::Status AuthGrant(const AuthArgs& args, std::ostream& out);
// Without roles, the caller is refused altogether.
absl::Status AuthRevoke(const AuthArgs& args, std::ostream& out);
// The secret of a caller, the certificate of `server`, or the authority, `ca`.
absl::Status AuthRotate(const AuthArgs& args, std::ostream& out);
absl::Status AuthList(const AuthArgs& args, std::ostream& out);

}  // namespace mycc
