// The callers that the server knows, and its own certificate, from files that are read again when they
// change: a caller is added, revoked or given another token without a restart. A file that is broken, or half
// of a pair that is being replaced, leaves the earlier state as it is, and a log line says so once.
// Thread rule: thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "server/access.h"

namespace mycc {

struct AccessFileNames {
  std::string access_file;  // access.json
  std::string token_file;   // one token that all callers share, in place of access.json
  std::string tls_cert_file, tls_key_file;
  std::string tls_client_ca_file;  // signs the certificates of callers; empty: none is asked for
};

// The server's side of TLS, in PEM; empty without it.
struct TlsTexts {
  std::string certificates, key, client_ca;

  friend bool operator==(const TlsTexts&, const TlsTexts&) = default;
};

class AccessFiles {
 public:
  // The errors of Open, without keeping anything.
  static absl::Status Check(const AccessFileNames& names);
  // Reads the files. InvalidArgument, NotFound or PermissionDenied name the file. `log` gets a line for
  // people whenever something was read again or could not be; it may be null.
  static absl::StatusOr<std::unique_ptr<AccessFiles>> Open(AccessFileNames names,
                                                           std::function<void(const std::string&)> log);
  ~AccessFiles();
  AccessFiles(const AccessFiles&) = delete;
  AccessFiles& operator=(const AccessFiles&) = delete;

  // Looks at the files once a second, in a thread, until StopWatching. `changed` is called on it whenever
  // what counts is another.
  void Watch(std::function<void()> changed);
  void StopWatching();
  // Looks at the files now. True when what counts is another.
  bool Refresh();

  // Whether callers are asked for anything: there is an access.json or a token.
  bool asks() const { return !names_.access_file.empty() || !names_.token_file.empty(); }
  absl::StatusOr<Caller> CallerOf(const Shown& shown, int64_t now_unix_seconds) const;
  bool NamesUsers() const;
  TlsTexts tls() const;
  // Grows when anything changes, and when the texts of TLS do.
  uint64_t version() const;
  uint64_t tls_version() const;

 private:
  AccessFiles(AccessFileNames names, std::function<void(const std::string&)> log)
      : names_(std::move(names)), log_(std::move(log)) {}

  static absl::StatusOr<AccessList> ReadCallers(const AccessFileNames& names);
  static absl::StatusOr<TlsTexts> ReadTls(const AccessFileNames& names);
  // Tells a trouble of files of this kind; only once while it stays the same. OK ends it.
  void Tell(const std::string& kind, const absl::Status& trouble) ABSL_EXCLUSIVE_LOCKS_REQUIRED(refreshing_);
  void Say(const std::string& line) const;

  const AccessFileNames names_;
  const std::function<void(const std::string&)> log_;
  Mutex refreshing_;  // one refresh at a time
  std::map<std::string, std::string> told_ ABSL_GUARDED_BY(refreshing_);

  mutable Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const AccessList> callers_ ABSL_GUARDED_BY(mutex_);
  std::string printed_ ABSL_GUARDED_BY(mutex_);  // the callers, as text
  TlsTexts tls_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1, tls_version_ ABSL_GUARDED_BY(mutex_) = 1;
  std::thread watcher_;
};

}  // namespace mycc
