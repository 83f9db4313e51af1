// The folder of a farm's credentials, which `mycc-tune auth` keeps:
//
//   ca.pem, ca.key        the authority, and its key: who has the key can make callers that access.json names
//                         by their common names
//   access.json           the callers (server/access.h); the server reads it again when it changes
//   server/               cert.pem, key.pem: the server's
//   NAME/                 ca.pem, and token, or cert.pem and key.pem: all that this caller needs
//
// Files with secrets are readable by their owner alone from the moment they exist. Each is replaced as a
// whole. Thread rule: thread-compatible; a lock of the folder keeps other processes from changing it
// meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mycc_tune/certificate_maker.h"
#include "server/access.h"

namespace mycc {

enum class SecretKind { kToken, kCertificate, kNone };

struct NewCaller {
  std::string name;
  std::vector<Role> roles;
  SecretKind secret = SecretKind::kCertificate;
  std::vector<uid_t> uids;
  std::vector<std::string> common_names;
  int days = 0;  // until a token or certificate expires; a token's 0: never
};

class CredentialFolder {
 public:
  // Makes a folder with the callers `admin` and `worker`. AlreadyExists when there is something already.
  static absl::Status Init(const std::string& path, const std::vector<std::string>& hosts, int days);
  // NotFound when it is none. Waits for other processes that change it.
  static absl::StatusOr<CredentialFolder> Open(const std::string& path);
  CredentialFolder(CredentialFolder&& other) noexcept;
  CredentialFolder& operator=(CredentialFolder&&) = delete;
  ~CredentialFolder();

  const AccessList& callers() const { return callers_; }

  // Each is complete, or has changed nothing that a server reads.
  absl::Status Add(const NewCaller& caller);
  // Adds roles, or takes them away.
  absl::Status Grant(const std::string& name, const std::vector<Role>& roles);
  absl::Status Deny(const std::string& name, const std::vector<Role>& roles);
  // The caller is refused from now on.
  absl::Status Revoke(const std::string& name);
  // A new token, or a new certificate; the earlier one counts for `overlap_seconds` more. A revoked caller is
  // one again.
  absl::Status Rotate(const std::string& name, int64_t overlap_seconds, int days);
  // A new certificate of the server, for the hosts; for those of the earlier one when none is given.
  absl::Status RotateServer(const std::vector<std::string>& hosts, int days);
  // A new authority. ca.pem also has the earlier one, so that nothing stops counting, until DropOldAuthority:
  // FailedPrecondition names the certificates that the earlier one alone has signed.
  absl::Status RotateAuthority();
  absl::Status DropOldAuthority();

  std::string FolderOf(const std::string& caller) const { return path_ + "/" + caller; }
  // Seconds since 1970; 0: there is none.
  int64_t ServerExpiry() const;

 private:
  CredentialFolder(std::string path, int lock, AccessList callers);

  absl::StatusOr<MadeCertificate> Authority() const;
  // Writes the secret's files, and gives its hash.
  absl::StatusOr<KnownSecret> MakeSecret(const std::string& name, SecretKind kind, int days) const;
  absl::Status WriteCallers(const AccessList& callers);
  absl::Status Change(const std::string& name, const std::function<void(Principal*)>& change);
  absl::Status WriteAuthority(const std::string& certificates) const;

  const std::string path_;
  int lock_;
  AccessList callers_;
};

}  // namespace mycc
