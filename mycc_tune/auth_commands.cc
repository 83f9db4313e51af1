#include "mycc_tune/auth_commands.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "command/misuse.h"
#include "command/table.h"
#include "mycc_tune/credential_folder.h"

namespace mycc {
namespace {

constexpr char kServer[] = "server", kAuthority[] = "ca";
constexpr int64_t kSecondsOfHour = 3600, kSecondsInDay = 86400;
// A server sees a change within this time, and a second for what is on its way.
constexpr char kWhenSeen[] = "a running server follows within two seconds";

absl::StatusOr<std::vector<Role>> ReadRoles(const std::vector<std::string>& words) {
  std::vector<Role> roles;
  for (const std::string& word : words) {
    const absl::StatusOr<Role> role = ParseRole(word);
    if (!role.ok()) return Misuse(absl::StrCat("--role: ", role.status().message()));
    roles.push_back(*role);
  }
  return roles;
}

std::string HostOf(const AuthArgs& args) { return args.hosts.empty() ? "HOST" : args.hosts[0]; }

int64_t NowUnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string ExpiryWords(int64_t expires, int64_t now) {
  if (expires == 0) return "never";
  if (expires <= now) return "expired";
  const int64_t hours = (expires - now) / kSecondsOfHour;
  return hours < 48 ? absl::StrCat("in ", hours, " h")
                    : absl::StrCat("in ", (expires - now + kSecondsInDay / 2) / kSecondsInDay, " days");
}

// The expiry of a caller's newest secret.
int64_t NewestExpiry(const Principal& principal) {
  int64_t newest = 0;
  for (const std::vector<KnownSecret>* secrets : {&principal.tokens, &principal.certificates}) {
    for (const KnownSecret& secret : *secrets) {
      if (secret.expires_unix_seconds == 0) return 0;
      newest = std::max(newest, secret.expires_unix_seconds);
    }
  }
  return newest;
}

std::string WaysOf(const Principal& principal) {
  std::vector<std::string> ways;
  if (!principal.tokens.empty()) ways.emplace_back("token");
  if (!principal.certificates.empty()) ways.emplace_back("certificate");
  for (const std::string& name : principal.common_names) ways.push_back(absl::StrCat("CN ", name));
  for (const uid_t uid : principal.uids) ways.push_back(absl::StrCat("uid ", uid));
  return absl::StrJoin(ways, ", ");
}

std::string CallerLine(const std::string& name, const std::string& roles, const std::string& known_by,
                       int64_t expires, bool revoked) {
  return nlohmann::json{{"name", name},
                        {"roles", roles},
                        {"known_by", known_by},
                        {"expires_unix_seconds", expires},
                        {"revoked", revoked}}
             .dump() +
         "\n";
}

}  // namespace

absl::Status AuthInit(const AuthArgs& args, std::ostream& out) {
  MYCC_RETURN_IF_ERROR(CredentialFolder::Init(args.folder, args.hosts, args.days));
  const std::string& dir = args.folder;
  out << "made " << dir << ": an authority, the server's certificate, and the callers admin and worker\n\n"
      << "  the server          mycc-tune serve --listen 0.0.0.0:50917 --credentials " << dir << "\n"
      << "  copy " << dir << "/worker to each worker's host, and run there\n"
      << "                      mycc-tune worker --server " << HostOf(args) << ":50917 --credentials worker\n"
      << "  a user              mycc-tune auth add NAME --role submit --dir " << dir << "\n"
      << "  then, as the user   mycc-tune tune FILE --server " << HostOf(args)
      << ":50917 --credentials NAME\n"
      << "  everything else     mycc-tune jobs --server " << HostOf(args) << ":50917 --credentials " << dir
      << "/admin\n\n"
      << "The certificates expire in " << args.days << " days. " << dir
      << "/ca.key makes new ones: keep it where only the admin reads it; the server does not need it.\n";
  return absl::OkStatus();
}

absl::Status AuthAdd(const AuthArgs& args, std::ostream& out) {
  NewCaller caller;
  caller.name = args.name;
  MYCC_ASSIGN_OR_RETURN(caller.roles, ReadRoles(args.roles));
  caller.secret = args.token       ? SecretKind::kToken
                  : args.no_secret ? SecretKind::kNone
                                   : SecretKind::kCertificate;
  caller.uids.assign(args.uids.begin(), args.uids.end());
  caller.common_names = args.common_names;
  caller.days = args.days;
  if (args.no_secret && args.uids.empty() && args.common_names.empty())
    return Misuse("--no-secret leaves no way to know the caller; expected --uid or --common-name beside it");
  MYCC_ASSIGN_OR_RETURN(CredentialFolder folder, CredentialFolder::Open(args.folder));
  MYCC_RETURN_IF_ERROR(folder.Add(caller));
  out << "added " << args.name << "; " << kWhenSeen << "\n";
  if (caller.secret != SecretKind::kNone)
    out << "give " << folder.FolderOf(args.name) << " to " << args.name << ", for --credentials\n";
  return absl::OkStatus();
}

absl::Status AuthGrant(const AuthArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Role> roles, ReadRoles(args.roles));
  MYCC_ASSIGN_OR_RETURN(CredentialFolder folder, CredentialFolder::Open(args.folder));
  MYCC_RETURN_IF_ERROR(folder.Grant(args.name, roles));
  out << args.name << " has the roles " << folder.callers().Find(args.name)->roles.Words() << "; "
      << kWhenSeen << "\n";
  return absl::OkStatus();
}

absl::Status AuthRevoke(const AuthArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<Role> roles, ReadRoles(args.roles));
  MYCC_ASSIGN_OR_RETURN(CredentialFolder folder, CredentialFolder::Open(args.folder));
  MYCC_RETURN_IF_ERROR(roles.empty() ? folder.Revoke(args.name) : folder.Deny(args.name, roles));
  if (roles.empty()) {
    out << args.name << " is refused; " << kWhenSeen << "\n";
  } else {
    out << args.name << " has the roles " << folder.callers().Find(args.name)->roles.Words() << "; "
        << kWhenSeen << "\n";
  }
  return absl::OkStatus();
}

absl::Status AuthRotate(const AuthArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(CredentialFolder folder, CredentialFolder::Open(args.folder));
  if (args.name == kServer) {
    MYCC_RETURN_IF_ERROR(folder.RotateServer(args.hosts, args.days));
    out << "the server has a new certificate; it shows it to connections from within two seconds on\n";
    return absl::OkStatus();
  }
  if (args.name == kAuthority && args.drop_old) {
    MYCC_RETURN_IF_ERROR(folder.DropOldAuthority());
    out << "the earlier authority counts no more; copy each caller's ca.pem again\n";
    return absl::OkStatus();
  }
  if (args.name == kAuthority) {
    MYCC_RETURN_IF_ERROR(folder.RotateAuthority());
    out << "there is a new authority, and ca.pem has both; now\n"
           "  1. copy each caller's ca.pem to it: it trusts both then\n"
           "  2. mycc-tune auth rotate server, and auth rotate NAME --overlap-hours 24 for each caller with "
           "a certificate\n"
           "  3. mycc-tune auth rotate ca --drop-old, and copy ca.pem again\n";
    return absl::OkStatus();
  }
  MYCC_RETURN_IF_ERROR(
      folder.Rotate(args.name, static_cast<int64_t>(args.overlap_hours * kSecondsOfHour), args.days));
  out << args.name << " has a new credential in " << folder.FolderOf(args.name) << "; ";
  if (args.overlap_hours > 0) {
    out << "the earlier one counts for " << args.overlap_hours << " h more\n";
  } else {
    out << "the earlier one counts no more, and a worker that has it is refused until it is restarted or "
           "connects anew, which takes up to ten minutes; --overlap-hours 1 avoids that\n";
  }
  return absl::OkStatus();
}

absl::Status AuthList(const AuthArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const CredentialFolder folder, CredentialFolder::Open(args.folder));
  const int64_t now = NowUnixSeconds();
  std::vector<std::vector<std::string>> rows = {{"name", "roles", "known by", "expires", ""}};
  rows.push_back({kServer, "", "certificate", ExpiryWords(folder.ServerExpiry(), now), ""});
  if (args.json) out << CallerLine(kServer, "", "certificate", folder.ServerExpiry(), false);
  for (const Principal& principal : folder.callers().principals()) {
    if (args.json)
      out << CallerLine(principal.name, principal.roles.Words(), WaysOf(principal), NewestExpiry(principal),
                        principal.revoked);
    const bool has_secret = !principal.tokens.empty() || !principal.certificates.empty();
    rows.push_back({principal.name, principal.roles.Words(), WaysOf(principal),
                    has_secret ? ExpiryWords(NewestExpiry(principal), now) : "",
                    principal.revoked ? "revoked" : ""});
  }
  if (!args.json) out << FormatTable(rows, {});
  return absl::OkStatus();
}

}  // namespace mycc
