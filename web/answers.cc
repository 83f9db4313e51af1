#include "web/answers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "web/assets.h"
#include "web/gzip.h"

namespace mycc {
namespace {

constexpr size_t kWorthCompressing = 1000;
constexpr char kJson[] = "application/json";

constexpr std::pair<const char*, const char*> kProtection[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};

bool TakesGzip(const HttpRequest& request) {
  return absl::StrContains(request.Header("accept-encoding"), "gzip");
}

// A client that has the answer already.
std::optional<HttpResponse> NotModified(const HttpRequest& request, const std::string& tag) {
  if (request.Header("if-none-match") != tag) return std::nullopt;
  return HttpResponse{.status = 304, .headers = {{"ETag", tag}}};
}

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument: return 400;
    case absl::StatusCode::kUnauthenticated: return 401;
    case absl::StatusCode::kPermissionDenied: return 403;
    case absl::StatusCode::kNotFound: return 404;
    case absl::StatusCode::kUnavailable: return 503;
    default: return 500;
  }
}

}  // namespace

HttpResponse JsonAnswer(const HttpRequest& request, std::string json) {
  const std::string tag = absl::StrCat("\"", Sha256Hex(json).substr(0, 24), "\"");
  if (std::optional<HttpResponse> same = NotModified(request, tag)) return *std::move(same);
  HttpResponse response{
      .type = kJson, .headers = {{"ETag", tag}, {"Cache-Control", "no-cache"}, {"Vary", "Accept-Encoding"}}};
  if (TakesGzip(request) && json.size() >= kWorthCompressing) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    json = Gzip(json);
  }
  response.body = std::move(json);
  return response;
}

HttpResponse ErrorAnswer(int status, const std::string& message) {
  const nlohmann::json json = {{"error", message}};
  HttpResponse response{.status = status,
                        .type = kJson,
                        .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                        .headers = {{"Cache-Control", "no-store"}}};
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"mycc-tune\"");
  if (status == 405) response.headers.emplace_back("Allow", "GET, HEAD");
  return response;
}

HttpResponse StatusAnswer(const absl::Status& status) {
  return ErrorAnswer(HttpStatusOf(status.code()), std::string(status.message()));
}

std::optional<HttpResponse> AssetAnswer(const HttpRequest& request) {
  for (const Asset& asset : Assets()) {
    if (asset.path != request.path) continue;
    const std::string tag = absl::StrCat("\"", std::string(asset.digest), "\"");
    if (std::optional<HttpResponse> same = NotModified(request, tag)) return same;
    // Every file but the page has its digest in its name.
    const bool is_page = asset.path == "/";
    HttpResponse response{
        .type = std::string(asset.type),
        .headers = {{"ETag", tag},
                    {"Cache-Control", is_page ? "no-cache" : "public, max-age=31536000, immutable"},
                    {"Vary", "Accept-Encoding"}}};
    if (TakesGzip(request)) {
      response.headers.emplace_back("Content-Encoding", "gzip");
      response.body = std::string(asset.gzip);
    } else {
      response.body = Gunzip(asset.gzip);
    }
    return response;
  }
  return std::nullopt;
}

HttpResponse Protected(HttpResponse response) {
  for (const auto& [name, value] : kProtection) response.headers.emplace_back(name, value);
  return response;
}

}  // namespace mycc
