#include "server/call_gate.h"

#include <grpc/grpc_security_constants.h>
#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"
#include "base/status.h"
#include "proto/channel.h"
#include "server/call_limits.h"

namespace mycc {
namespace {

// Certificates of clients that are remembered as verified, and for how long: one that expires, or whose
// authority does, is noticed within this time.
constexpr size_t kMostRemembered = 4096;
constexpr double kRememberSeconds = 30;

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int64_t UnixSecondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string FirstValue(const grpc::AuthContext& peer, const char* property) {
  const std::vector<grpc::string_ref> values = peer.FindPropertyValues(property);
  return values.empty() ? "" : std::string(values[0].data(), values[0].size());
}

// The name of a user of this host: "ann", or "uid-1000" where nobody has the id, or the name is none of ours.
std::string UserName(uid_t uid) {
  passwd entry = {}, *found = nullptr;
  char bytes[4096];
  const bool is_known = getpwuid_r(uid, &entry, bytes, sizeof(bytes), &found) == 0 && found != nullptr;
  const std::string name = is_known ? entry.pw_name : "";
  return CheckCallerName(name).ok() ? name : absl::StrCat("uid-", uid);
}

// The users that may read the server's memory and files anyway: its own, and root.
bool IsServersOwn(uid_t uid) { return uid == 0 || uid == geteuid(); }

absl::Status StrangerOnThisHost(uid_t uid) {
  return absl::PermissionDeniedError(absl::StrCat("user ", uid,
                                                  " of this host may not use the server of user ", geteuid(),
                                                  "; expected that it is started with --access, and this "
                                                  "user is added there: mycc-tune auth add NAME --uid ",
                                                  uid, " --role submit"));
}

}  // namespace

CallGate::CallGate(Options options, const AccessFiles* files, const PeerListener* listener)
    : options_(options), files_(files), listener_(listener), calls_(options.bounds) {}

absl::StatusOr<Shown> CallGate::ShownBy(const grpc::ServerContextBase& context) const {
  Shown shown;
  const auto token = context.client_metadata().find(kTokenHeader);
  if (token != context.client_metadata().end()) {
    absl::string_view value(token->second.data(), token->second.size());
    // A header of another form is a wrong token.
    (void)absl::ConsumePrefix(&value, kTokenPrefix);
    shown.token_sha256 = Sha256Hex(std::string_view(value.data(), value.size()));
  }
  if (listener_ != nullptr) shown.uid = listener_->UserOf(context.peer());
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer != nullptr && peer->IsPeerAuthenticated())
    MYCC_RETURN_IF_ERROR(ReadClientCertificate(*peer, &shown));
  return shown;
}

// gRPC verified the chain when the connection was made. That may be days ago: the authority may have been
// replaced, and the certificate may have expired since.
absl::Status CallGate::ReadClientCertificate(const grpc::AuthContext& peer, Shown* shown) const {
  const std::string own = FirstValue(peer, GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (own.empty()) return absl::OkStatus();
  // On a server, the chain that gRPC has does not begin with the client's own certificate.
  const std::string chain = own + FirstValue(peer, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME);
  const uint64_t version = files_->tls_version();
  const double now = SteadySeconds();
  const MutexLock lock(&mutex_);
  if (certificates_.size() > kMostRemembered) certificates_.clear();
  Verified& known = certificates_[chain];
  if (known.version != version || now - known.at_seconds > kRememberSeconds) {
    absl::StatusOr<CertificateFacts> facts = ReadCertificate(chain);
    known.status = facts.ok() ? CheckClientChain(chain, files_->tls().client_ca) : facts.status();
    if (facts.ok()) known.facts = *std::move(facts);
    known.version = version;
    known.at_seconds = now;
  }
  if (!known.status.ok()) return absl::UnauthenticatedError(known.status.message());
  shown->certificate_sha256 = known.facts.sha256;
  shown->common_name = known.facts.common_name;
  return absl::OkStatus();
}

absl::StatusOr<Caller> CallGate::CallerOf(const grpc::ServerContextBase& context) const {
  if (options_.open) return Caller{"", {Role::kAdmin}};
  MYCC_ASSIGN_OR_RETURN(const Shown shown, ShownBy(context));
  const bool is_own = shown.uid && IsServersOwn(*shown.uid) && shown.token_sha256.empty();
  if (is_own) return Caller{UserName(*shown.uid), {Role::kAdmin}};
  absl::StatusOr<Caller> caller = files_->CallerOf(shown, UnixSecondsNow());
  const bool is_stranger =
      shown.uid && shown.token_sha256.empty() && absl::IsUnauthenticated(caller.status());
  if (is_stranger) return StrangerOnThisHost(*shown.uid);
  return caller;
}

absl::StatusOr<std::shared_ptr<OpenCall>> CallGate::Enter(const std::string& name,
                                                          grpc::CallbackServerContext* context,
                                                          grpc::ServerUnaryReactor* reactor,
                                                          const google::protobuf::Message& request) {
  const uint64_t version = files_->version();
  MYCC_ASSIGN_OR_RETURN(const Caller caller, CallerOf(*context));
  MYCC_RETURN_IF_ERROR(CheckRole(caller, name));
  MYCC_RETURN_IF_ERROR(CheckMessageLimits(request));
  const auto bytes = static_cast<int64_t>(request.ByteSizeLong());
  CallLine line = {[context] { return context->IsCancelled(); },
                   [this, context] { return CallerOf(*context); },
                   [reactor](const absl::Status& status) { reactor->Finish(ToGrpc(status)); }};
  MYCC_ASSIGN_OR_RETURN(std::shared_ptr<OpenCall> call, calls_.Begin(name, caller, bytes, std::move(line)));
  // The files changed after the caller was looked up, and the look at all calls was perhaps over before this
  // one was among them.
  if (files_->version() != version) CheckAgain();
  if (call->IsClaimed()) return std::shared_ptr<OpenCall>();
  return call;
}

}  // namespace mycc
