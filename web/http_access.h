// Decides who may read the page and the metrics: the callers that the RPCs know, by the same files
// (server/access_files.h). Thread rule: thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access_files.h"
#include "web/http_message.h"

namespace mycc {

class HttpAccess {
 public:
  virtual ~HttpAccess() = default;
  // OK for a caller with the role read. Unauthenticated: the caller shows no credentials, or wrong ones;
  // PermissionDenied: they are right, and may not read. Both say what is expected. Must not block.
  virtual absl::Status MayRead(const HttpRequest& request) const = 0;
};

// The user of this host at the other end of a connection.
using UserOfSocket = std::function<absl::StatusOr<uid_t>(int socket)>;

// Lets in those that show a token of a caller with the role: "Authorization: Bearer TOKEN". Without a token,
// the users of this host whom the files name; where the files ask nobody for anything, the server's own user
// and root. A request without a token must name this host by a local name: a page of another site whose name
// was made to lead here names that site (DNS rebinding). `files` outlives it.
std::unique_ptr<HttpAccess> CallerAccess(const AccessFiles* files, UserOfSocket user_of);

// Lets in everybody: for an operator who said so.
std::unique_ptr<HttpAccess> OpenAccess();

}  // namespace mycc
