// Answers of every kind: JSON, errors, the page's files; and the headers that all of them have. Pure
// functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "web/http_message.h"

namespace mycc {

// Compressed where the client takes that; 304 where it has the same already.
HttpResponse JsonAnswer(const HttpRequest& request, std::string json);
// {"error": MESSAGE}.
HttpResponse ErrorAnswer(int status, const std::string& message);
HttpResponse StatusAnswer(const absl::Status& status);
// A file of the page; none where the path is no file's.
std::optional<HttpResponse> AssetAnswer(const HttpRequest& request);
// With the headers by which a browser neither loads anything from elsewhere nor shows this inside another
// page.
HttpResponse Protected(HttpResponse response);

}  // namespace mycc
