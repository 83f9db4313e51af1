// A request of a browser or a scraper, and the answer to it, without the protocol around them. Thread rule:
// values.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mycc {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // "/api/v1/jobs", decoded
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // those that are asked about, by their names in lower case
  int socket = -1;                             // the connection's, for as long as the handler is called

  // Empty where there is none.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
  std::string Query(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Called once, by any thread.
using HttpReply = std::function<void(HttpResponse)>;
// Answers now or later; it must not block.
using HttpHandler = std::function<void(const HttpRequest& request, HttpReply reply)>;

}  // namespace mycc
