// The callers that a server knows, what each may do, and the role that each call needs. access.json holds the
// callers (docs/security.md); `mycc-tune auth` writes it. No secret is in it: a token stands there as its
// SHA-256. Thread rule: values.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mycc {

enum class Role { kRead, kSubmit, kWork, kAdmin };

std::string RoleName(Role role);  // "submit"
// InvalidArgument, with the words that exist, for another word.
absl::StatusOr<Role> ParseRole(absl::string_view word);

class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(std::initializer_list<Role> roles) {
    for (const Role role : roles) Add(role);
  }

  constexpr void Add(Role role) { bits_ |= BitOf(role); }
  constexpr bool Has(Role role) const { return (bits_ & BitOf(role)) != 0; }
  // Whether these roles are enough where `role` is needed: an admin may do everything, and a submitter reads
  // also. A worker's role allows no more than a worker's calls.
  constexpr bool Allow(Role role) const {
    return Has(role) || Has(Role::kAdmin) || (role == Role::kRead && Has(Role::kSubmit));
  }
  constexpr bool empty() const { return bits_ == 0; }
  std::string Words() const;  // "submit, work"

 private:
  static constexpr unsigned BitOf(Role role) { return 1U << static_cast<unsigned>(role); }

  unsigned bits_ = 0;
};

// The one who calls. The name is empty where many share a credential, or nobody is asked for one.
struct Caller {
  std::string name;
  Roles roles;
};

// The evidence that comes with a call. A token counts before a certificate, and both before a user id: who
// shows a wrong token is refused, whatever else there is.
struct Shown {
  std::string token_sha256;                     // 64 hexadecimal digits; empty: no token
  std::string certificate_sha256, common_name;  // of a certificate that the authority has signed; empty: none
  std::optional<uid_t> uid;                     // of the process at the other end, where the kernel told it
};

// A hash that a caller's token or certificate has.
struct KnownSecret {
  std::string sha256;
  int64_t expires_unix_seconds = 0;  // 0: never

  friend bool operator==(const KnownSecret&, const KnownSecret&) = default;
};

struct Principal {
  std::string name;
  Roles roles;
  std::vector<KnownSecret> tokens, certificates;
  // The common names of certificates that an authority of one's own renews. A holder of such a
  // certificate is this caller, so the authority must give the name to nobody else.
  std::vector<std::string> common_names;
  std::vector<uid_t> uids;  // users of the server's host, without a token
  bool revoked = false;     // the name stays, so that a refusal can say why
};

class AccessList {
 public:
  AccessList() = default;
  // The text of access.json. InvalidArgument names `path`, the entry, and what was expected: unknown keys, a
  // name, a secret or a user id that stands twice, and words that are none are refused.
  static absl::StatusOr<AccessList> Parse(absl::string_view text, const std::string& path);
  // Adds a principal, under the same rules.
  absl::Status Add(Principal principal);
  // Replaces the principal of this name, under the same rules; NotFound when there is none.
  absl::Status Replace(Principal principal);
  std::string Print() const;

  // Unauthenticated where nothing that is known was shown; PermissionDenied where it has expired or was
  // revoked.
  absl::StatusOr<Caller> CallerOf(const Shown& shown, int64_t now_unix_seconds) const;

  const std::vector<Principal>& principals() const { return principals_; }
  const Principal* Find(const std::string& name) const;
  // Whether a user of this host besides the server's own is among them.
  bool NamesUsers() const { return !by_uid_.empty(); }

 private:
  // A secret's place: the principal, and its expiry.
  struct Place {
    size_t principal;
    int64_t expires_unix_seconds;
  };

  absl::Status Index();
  absl::StatusOr<Caller> Admit(const Place& place, const char* what, int64_t now_unix_seconds) const;

  std::vector<Principal> principals_;
  std::map<std::string, size_t> by_name_, by_common_name_;
  std::map<std::string, Place> by_token_, by_certificate_;
  std::map<uid_t, size_t> by_uid_;
};

// Names that a caller can have: letters, digits and ._@- ; 64 at most.
absl::Status CheckCallerName(const std::string& name);

// One row for each call of the services: "SubmitJob" needs kSubmit. Everything that is no row needs kAdmin.
struct CallRole {
  absl::string_view call;
  Role role;
};
const std::vector<CallRole>& CallRoles();

// OK, or PermissionDenied, which names the role that is needed and how a caller gets it.
absl::Status CheckRole(const Caller& caller, absl::string_view call);
absl::Status CheckRole(const Caller& caller, absl::string_view what, Role needed);

}  // namespace mycc
