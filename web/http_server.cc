#include "web/http_server.h"

#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"
#include "web/connection_watch.h"
#include "web/listen_socket.h"

namespace mycc {
namespace {

constexpr unsigned kThreads = 2;
constexpr unsigned kSilentSeconds = 30;                 // of a connection between two requests
constexpr auto kLastAnswers = std::chrono::seconds(1);  // for answers on their way when the server ends
constexpr auto kWatchPause = std::chrono::milliseconds(500);

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int SocketOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

MHD_Result TakeQuery(void* query, MHD_ValueKind, const char* key, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(query))[key] = value == nullptr ? "" : value;
  return MHD_YES;
}
MHD_Result TakeHeader(void* headers, MHD_ValueKind, const char* key, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(headers))[absl::AsciiStrToLower(key)] =
      value == nullptr ? "" : value;
  return MHD_YES;
}

HttpRequest RequestOf(MHD_Connection* connection, const char* method, const char* path) {
  HttpRequest request{.method = method, .path = path};
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, TakeQuery, &request.query);
  MHD_get_connection_values(connection, MHD_HEADER_KIND, TakeHeader, &request.headers);
  request.socket = SocketOf(connection);
  return request;
}

MHD_Result Send(MHD_Connection* connection, HttpResponse response) {
  auto* const body = new std::string(std::move(response.body));
  MHD_Response* const sent = MHD_create_response_from_buffer_with_free_callback_cls(
      body->size(), body->data(), [](void* cls) { delete static_cast<std::string*>(cls); }, body);
  MHD_add_response_header(sent, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  for (const auto& [name, value] : response.headers)
    MHD_add_response_header(sent, name.c_str(), value.c_str());
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(response.status), sent);
  MHD_destroy_response(sent);
  return queued;
}

// One request, from its first line to the end of its answer.
struct Exchange {
  MHD_Connection* connection = nullptr;
  bool has_body = false;
  bool is_asked = false;
  HttpResponse response;
};

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& options, HttpHandler handler)
      : handler(std::move(handler)), watch(options.receive_seconds, options.send_seconds) {}

  static MHD_Result OnRequest(void* cls, MHD_Connection* connection, const char* path, const char* method,
                              const char*, const char*, size_t* upload_bytes, void** state);
  static void OnCompleted(void* cls, MHD_Connection* connection, void** state, MHD_RequestTerminationCode);
  static void OnConnection(void* cls, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode code);

  // Puts the request aside and asks the handler.
  MHD_Result Ask(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request);
  void Answer(const std::shared_ptr<Exchange>& exchange, HttpResponse response);
  void WatchConnections();
  void Stop();

  const HttpHandler handler;
  ConnectionWatch watch;
  std::weak_ptr<Impl> self;
  std::string address, tls_cert, tls_key;
  MHD_Daemon* daemon = nullptr;
  std::thread watcher;
  Mutex mutex;
  CondVar changed;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  std::set<std::shared_ptr<Exchange>> aside ABSL_GUARDED_BY(mutex);
  std::set<const Exchange*> last ABSL_GUARDED_BY(mutex);  // that are told of the end, and not yet over
};

MHD_Result HttpServer::Impl::OnRequest(void* cls, MHD_Connection* connection, const char* path,
                                       const char* method, const char*, const char*, size_t* upload_bytes,
                                       void** state) {
  auto* const impl = static_cast<Impl*>(cls);
  if (*state == nullptr) {  // the head of the request is there
    auto exchange = std::make_shared<Exchange>();
    exchange->connection = connection;
    *state = new std::shared_ptr<Exchange>(std::move(exchange));
    return MHD_YES;
  }
  const std::shared_ptr<Exchange>& exchange = *static_cast<std::shared_ptr<Exchange>*>(*state);
  if (*upload_bytes > 0) {
    exchange->has_body = true;
    *upload_bytes = 0;
    return MHD_YES;
  }
  if (exchange->is_asked) {
    impl->watch.OnSending(SocketOf(connection), Now());
    const MutexLock lock(&impl->mutex);
    return Send(connection, std::move(exchange->response));
  }
  exchange->is_asked = true;
  if (exchange->has_body) return Send(connection, {.status = 413, .body = "a request has no body here\n"});
  return impl->Ask(exchange, RequestOf(connection, method, path));
}

MHD_Result HttpServer::Impl::Ask(const std::shared_ptr<Exchange>& exchange, const HttpRequest& request) {
  {
    const MutexLock lock(&mutex);
    if (stopping) return Send(exchange->connection, {.status = 503, .body = "the server is stopping\n"});
    watch.OnAnswering(SocketOf(exchange->connection));
    MHD_suspend_connection(exchange->connection);
    aside.insert(exchange);
  }
  handler(request, [impl = self.lock(), exchange](HttpResponse response) {
    impl->Answer(exchange, std::move(response));
  });
  return MHD_YES;
}

void HttpServer::Impl::Answer(const std::shared_ptr<Exchange>& exchange, HttpResponse response) {
  const MutexLock lock(&mutex);
  if (aside.erase(exchange) == 0) return;  // the server has stopped
  exchange->response = std::move(response);
  MHD_resume_connection(exchange->connection);
}

void HttpServer::Impl::OnCompleted(void* cls, MHD_Connection* connection, void** state,
                                   MHD_RequestTerminationCode) {
  auto* const impl = static_cast<Impl*>(cls);
  impl->watch.OnReceiving(SocketOf(connection), Now());
  auto* const exchange = static_cast<std::shared_ptr<Exchange>*>(*state);
  if (exchange != nullptr) {
    const MutexLock lock(&impl->mutex);
    if (impl->last.erase(exchange->get()) > 0) impl->changed.NotifyAll();
  }
  delete exchange;
  *state = nullptr;
}

void HttpServer::Impl::OnConnection(void* cls, MHD_Connection* connection, void**,
                                    MHD_ConnectionNotificationCode code) {
  auto* const impl = static_cast<Impl*>(cls);
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    impl->watch.OnReceiving(SocketOf(connection), Now());
  } else {
    impl->watch.Remove(SocketOf(connection));
  }
}

void HttpServer::Impl::WatchConnections() {
  while (true) {
    {
      const MutexLock lock(&mutex);
      if (!stopping) changed.WaitUntil(&mutex, std::chrono::steady_clock::now() + kWatchPause);
      if (stopping) return;
    }
    watch.EndOverdue(Now(), [](int socket) { shutdown(socket, SHUT_RDWR); });
  }
}

void HttpServer::Impl::Stop() {
  {
    const MutexLock lock(&mutex);
    stopping = true;
    changed.NotifyAll();
    for (const std::shared_ptr<Exchange>& exchange : aside) {
      exchange->response = {.status = 503, .body = "the server is stopping\n"};
      last.insert(exchange.get());
      MHD_resume_connection(exchange->connection);
    }
    aside.clear();
    // The library ends connections whatever is left to be sent on them.
    const auto by = std::chrono::steady_clock::now() + kLastAnswers;
    while (!last.empty() && std::chrono::steady_clock::now() < by) changed.WaitUntil(&mutex, by);
  }
  watcher.join();
  MHD_stop_daemon(daemon);
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const HttpServerOptions& options,
                                                              HttpHandler handler) {
  auto impl = std::make_shared<Impl>(options, std::move(handler));
  impl->self = impl;
  impl->tls_cert = options.tls_cert;
  impl->tls_key = options.tls_key;
  MYCC_ASSIGN_OR_RETURN(const int listening, ListenOn(options.address));
  MYCC_ASSIGN_OR_RETURN(impl->address, AddressOf(listening, options.address));
  std::vector<MHD_OptionItem> items = {
      {MHD_OPTION_LISTEN_SOCKET, listening, nullptr},
      {MHD_OPTION_THREAD_POOL_SIZE, kThreads, nullptr},
      {MHD_OPTION_CONNECTION_LIMIT, static_cast<intptr_t>(options.connections), nullptr},
      {MHD_OPTION_PER_IP_CONNECTION_LIMIT, static_cast<intptr_t>(options.connections_of_one), nullptr},
      {MHD_OPTION_CONNECTION_MEMORY_LIMIT, static_cast<intptr_t>(options.connection_bytes), nullptr},
      {MHD_OPTION_CONNECTION_TIMEOUT, kSilentSeconds, nullptr},
      {MHD_OPTION_NOTIFY_COMPLETED, reinterpret_cast<intptr_t>(&Impl::OnCompleted), impl.get()},
      {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<intptr_t>(&Impl::OnConnection), impl.get()},
  };
  unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
  if (!impl->tls_cert.empty()) {
    flags |= MHD_USE_TLS;
    items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, impl->tls_cert.data()});
    items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, impl->tls_key.data()});
  }
  items.push_back({MHD_OPTION_END, 0, nullptr});
  impl->daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &Impl::OnRequest, impl.get(), MHD_OPTION_ARRAY,
                                  items.data(), MHD_OPTION_END);
  if (impl->daemon == nullptr) {
    close(listening);
    return absl::UnavailableError(
        absl::StrCat("cannot serve pages on ", options.address,
                     ": libmicrohttpd does not start; expected a certificate and a key that GnuTLS takes"));
  }
  impl->watcher = std::thread([impl = impl.get()] { impl->WatchConnections(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() { impl_->Stop(); }

const std::string& HttpServer::address() const { return impl_->address; }

}  // namespace mycc
