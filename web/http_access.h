// Decides who may read the page and the metrics. Thread rule: thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "web/http_message.h"

namespace mycc {

class HttpAccess {
 public:
  virtual ~HttpAccess() = default;
  // OK for a caller with the role read. Unauthenticated: the caller shows no credentials, or wrong ones;
  // PermissionDenied: they are right, and may not read. Both say what is expected. Must not block.
  virtual absl::Status MayRead(const HttpRequest& request) const = 0;
};

// Lets in callers that show a token, as of gRPC's calls: "Authorization: Bearer TOKEN". With an empty token,
// callers that name this host by a local name: a page of another site whose name was made to lead here names
// that site (DNS rebinding).
std::unique_ptr<HttpAccess> TokenAccess(const std::string& token);

// Any caller: for an operator who said so.
std::unique_ptr<HttpAccess> OpenAccess();

}  // namespace mycc
