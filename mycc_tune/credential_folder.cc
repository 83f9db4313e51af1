#include "mycc_tune/credential_folder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/os_error.h"
#include "base/random_word.h"
#include "base/sha256.h"
#include "base/status.h"
#include "mycc_tune/secret_file.h"
#include "proto/certificates.h"

namespace mycc {
namespace {

constexpr int kAuthorityDays = 3650;
constexpr int64_t kSecondsPerDay = 86400;
constexpr char kServerName[] = "server", kAdminName[] = "admin", kWorkerName[] = "worker";
constexpr char kEndOfCertificate[] = "-----END CERTIFICATE-----\n";

int64_t UnixNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Names that stand for something else in the folder.
absl::Status CheckFolderName(const std::string& name) {
  MYCC_RETURN_IF_ERROR(CheckCallerName(name));
  static const std::set<std::string> kTaken = {kServerName, "ca", "ca.pem", "ca.key", "access.json"};
  if (!kTaken.contains(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no caller can be called ", name, "; expected another name"));
}

// Everything up to the end of the first certificate, and the rest.
std::pair<std::string, std::string> SplitFirst(const std::string& certificates) {
  const size_t end = certificates.find(kEndOfCertificate);
  if (end == std::string::npos) return {certificates, ""};
  const size_t at = end + sizeof(kEndOfCertificate) - 1;
  return {certificates.substr(0, at), certificates.substr(at)};
}

absl::Status WriteServer(const std::string& folder, const MadeCertificate& authority,
                         const std::vector<std::string>& hosts, int days) {
  CertificateWish wish;
  wish.common_name = hosts.empty() ? "localhost" : hosts[0];
  wish.use = CertificateUse::kServer;
  wish.hosts = hosts;
  wish.now_unix_seconds = UnixNow();
  wish.days = days;
  MYCC_ASSIGN_OR_RETURN(const MadeCertificate made, MakeCertificate(wish, authority));
  MYCC_RETURN_IF_ERROR(MakePrivateFolder(folder));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/key.pem", made.key));
  return WriteSecretFile(folder + "/cert.pem", made.certificate);
}

// The hosts that a server's certificate names.
std::vector<std::string> HostsOf(const std::string& pem) {
  std::vector<std::string> hosts;
  BIO* const bytes = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* const certificate = PEM_read_bio_X509(bytes, nullptr, nullptr, nullptr);
  BIO_free(bytes);
  if (certificate == nullptr) return hosts;
  auto* const names =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) {
      hosts.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName)),
                         static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    } else if (name->type == GEN_IPADD) {
      const int size = ASN1_STRING_length(name->d.iPAddress);
      char text[INET6_ADDRSTRLEN] = {};
      const int family = size == 4 ? AF_INET : AF_INET6;
      if (inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text)) != nullptr)
        hosts.emplace_back(text);
    }
  }
  GENERAL_NAMES_free(names);
  X509_free(certificate);
  return hosts;
}

// The hosts, with those by which a server is reached on its own host.
std::vector<std::string> WithLoopback(std::vector<std::string> hosts) {
  for (const char* host : {"localhost", "127.0.0.1", "::1"}) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.emplace_back(host);
  }
  return hosts;
}

absl::Status FillNew(const std::string& folder, const std::vector<std::string>& hosts, int days) {
  MYCC_ASSIGN_OR_RETURN(
      const MadeCertificate authority,
      MakeAuthority(absl::StrCat("mycc-tune ", RandomWord().substr(0, 8)), UnixNow(), kAuthorityDays));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/ca.key", authority.key));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/ca.pem", authority.certificate));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/access.json", AccessList().Print()));
  MYCC_RETURN_IF_ERROR(
      WriteServer(absl::StrCat(folder, "/", kServerName), authority, WithLoopback(hosts), days));
  MYCC_ASSIGN_OR_RETURN(CredentialFolder opened, CredentialFolder::Open(folder));
  MYCC_RETURN_IF_ERROR(opened.Add({.name = kAdminName, .roles = {Role::kAdmin}, .days = days}));
  return opened.Add({.name = kWorkerName, .roles = {Role::kWork}, .days = days});
}

}  // namespace

absl::Status CredentialFolder::Init(const std::string& path, const std::vector<std::string>& hosts,
                                    int days) {
  std::error_code error;
  for (const std::string& host : hosts) MYCC_RETURN_IF_ERROR(CheckHost(host));
  const bool is_there = std::filesystem::exists(std::filesystem::symlink_status(path, error));
  if (is_there && !std::filesystem::is_empty(path, error))
    return absl::AlreadyExistsError(
        absl::StrCat("`", path, "` is there already, and stays as it is; expected a new folder"));
  // Complete or absent.
  const std::string partial = absl::StrCat(path, ".", RandomWord(), ".part");
  MYCC_RETURN_IF_ERROR(MakePrivateFolder(partial));
  absl::Status made = FillNew(partial, hosts, days);
  if (made.ok() && rename(partial.c_str(), path.c_str()) != 0) made = OsError("make", path);
  if (!made.ok()) std::filesystem::remove_all(partial, error);
  return made;
}

CredentialFolder::CredentialFolder(std::string path, int lock, AccessList callers)
    : path_(std::move(path)), lock_(lock), callers_(std::move(callers)) {}

CredentialFolder::CredentialFolder(CredentialFolder&& other) noexcept
    : path_(other.path_), lock_(std::exchange(other.lock_, -1)), callers_(std::move(other.callers_)) {}

CredentialFolder::~CredentialFolder() {
  if (lock_ >= 0) close(lock_);
}

absl::StatusOr<CredentialFolder> CredentialFolder::Open(const std::string& path) {
  const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return OsError("open", path);
  while (flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  absl::StatusOr<std::string> text = ReadText(path + "/access.json", kMostSourceBytes);
  absl::StatusOr<AccessList> callers =
      text.ok() ? AccessList::Parse(*text, path + "/access.json") : text.status();
  if (!callers.ok()) {
    close(lock);
    return callers.status();
  }
  return CredentialFolder(path, lock, *std::move(callers));
}

absl::StatusOr<MadeCertificate> CredentialFolder::Authority() const {
  MadeCertificate authority;
  MYCC_ASSIGN_OR_RETURN(authority.certificate, ReadFile(path_ + "/ca.pem", kMostSecretBytes));
  MYCC_ASSIGN_OR_RETURN(authority.key, ReadFile(path_ + "/ca.key", kMostSecretBytes));
  return authority;
}

absl::StatusOr<KnownSecret> CredentialFolder::MakeSecret(const std::string& name, SecretKind kind,
                                                         int days) const {
  const std::string folder = FolderOf(name);
  MYCC_RETURN_IF_ERROR(MakePrivateFolder(folder));
  MYCC_ASSIGN_OR_RETURN(const std::string authorities, ReadFile(path_ + "/ca.pem", kMostSecretBytes));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/ca.pem", authorities));
  const int64_t now = UnixNow();
  if (kind == SecretKind::kToken) {
    const std::string token = RandomWord() + RandomWord();
    MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/token", token + "\n"));
    return KnownSecret{Sha256Hex(token), days > 0 ? now + days * kSecondsPerDay : 0};
  }
  MYCC_ASSIGN_OR_RETURN(const MadeCertificate authority, Authority());
  MYCC_ASSIGN_OR_RETURN(
      const MadeCertificate made,
      MakeCertificate({.common_name = name, .now_unix_seconds = now, .days = days}, authority));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/key.pem", made.key));
  MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/cert.pem", made.certificate));
  MYCC_ASSIGN_OR_RETURN(const CertificateFacts facts, ReadCertificate(made.certificate));
  return KnownSecret{facts.sha256, facts.expires_unix_seconds};
}

absl::Status CredentialFolder::WriteCallers(const AccessList& callers) {
  MYCC_RETURN_IF_ERROR(WriteSecretFile(path_ + "/access.json", callers.Print()));
  callers_ = callers;
  return absl::OkStatus();
}

absl::Status CredentialFolder::Add(const NewCaller& caller) {
  MYCC_RETURN_IF_ERROR(CheckFolderName(caller.name));
  if (callers_.Find(caller.name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        caller.name, " is a caller already; expected another name, or `auth grant` or `auth rotate`"));
  }
  Principal principal;
  principal.name = caller.name;
  for (const Role role : caller.roles) principal.roles.Add(role);
  principal.uids = caller.uids;
  principal.common_names = caller.common_names;
  AccessList with = callers_;
  MYCC_RETURN_IF_ERROR(with.Add(principal));  // before a secret is made for nothing
  if (caller.secret == SecretKind::kNone) return WriteCallers(with);
  MYCC_ASSIGN_OR_RETURN(KnownSecret secret, MakeSecret(caller.name, caller.secret, caller.days));
  (caller.secret == SecretKind::kToken ? principal.tokens : principal.certificates)
      .push_back(std::move(secret));
  MYCC_RETURN_IF_ERROR(with.Replace(principal));
  return WriteCallers(with);
}

absl::Status CredentialFolder::Change(const std::string& name,
                                      const std::function<void(Principal*)>& change) {
  const Principal* const found = callers_.Find(name);
  Principal principal;
  principal.name = name;
  if (found != nullptr) {
    principal = *found;
    change(&principal);
  }
  AccessList with = callers_;
  MYCC_RETURN_IF_ERROR(with.Replace(std::move(principal)));
  return WriteCallers(with);
}

absl::Status CredentialFolder::Grant(const std::string& name, const std::vector<Role>& roles) {
  return Change(name, [&roles](Principal* principal) {
    for (const Role role : roles) principal->roles.Add(role);
  });
}

absl::Status CredentialFolder::Deny(const std::string& name, const std::vector<Role>& roles) {
  return Change(name, [&roles](Principal* principal) {
    Roles left;
    for (const Role role : {Role::kRead, Role::kSubmit, Role::kWork, Role::kAdmin}) {
      const bool is_denied = std::ranges::find(roles, role) != roles.end();
      if (principal->roles.Has(role) && !is_denied) left.Add(role);
    }
    principal->roles = left;
  });
}

absl::Status CredentialFolder::Revoke(const std::string& name) {
  return Change(name, [](Principal* principal) { principal->revoked = true; });
}

absl::Status CredentialFolder::Rotate(const std::string& name, int64_t overlap_seconds, int days) {
  const Principal* const found = callers_.Find(name);
  if (found == nullptr) return Revoke(name);  // whose error says that there is none
  if (found->tokens.empty() && found->certificates.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " has neither a token nor a certificate of this folder; expected a caller that has"));
  }
  const bool is_token = !found->tokens.empty();
  const bool was_revoked = found->revoked;
  MYCC_ASSIGN_OR_RETURN(KnownSecret secret,
                        MakeSecret(name, is_token ? SecretKind::kToken : SecretKind::kCertificate, days));
  const int64_t now = UnixNow();
  return Change(name, [&](Principal* principal) {
    std::vector<KnownSecret>& secrets = is_token ? principal->tokens : principal->certificates;
    std::erase_if(secrets, [now](const KnownSecret& old) {
      return old.expires_unix_seconds > 0 && old.expires_unix_seconds <= now;
    });
    if (overlap_seconds == 0 || was_revoked) secrets.clear();
    for (KnownSecret& old : secrets) {
      const int64_t until = now + overlap_seconds;
      old.expires_unix_seconds =
          old.expires_unix_seconds == 0 ? until : std::min(until, old.expires_unix_seconds);
    }
    secrets.push_back(std::move(secret));
    principal->revoked = false;
  });
}

absl::Status CredentialFolder::RotateServer(const std::vector<std::string>& hosts, int days) {
  MYCC_ASSIGN_OR_RETURN(const MadeCertificate authority, Authority());
  const std::string folder = FolderOf(kServerName);
  if (!hosts.empty()) return WriteServer(folder, authority, WithLoopback(hosts), days);
  MYCC_ASSIGN_OR_RETURN(const std::string earlier, ReadFile(folder + "/cert.pem", kMostSecretBytes));
  return WriteServer(folder, authority, WithLoopback(HostsOf(earlier)), days);
}

absl::Status CredentialFolder::WriteAuthority(const std::string& certificates) const {
  for (const Principal& principal : callers_.principals()) {
    const std::string folder = FolderOf(principal.name);
    if (std::filesystem::is_directory(folder))
      MYCC_RETURN_IF_ERROR(WriteSecretFile(folder + "/ca.pem", certificates));
  }
  return WriteSecretFile(path_ + "/ca.pem", certificates);
}

absl::Status CredentialFolder::RotateAuthority() {
  MYCC_ASSIGN_OR_RETURN(const MadeCertificate earlier, Authority());
  if (!SplitFirst(earlier.certificate).second.empty()) {
    return absl::FailedPreconditionError(
        "ca.pem has an earlier authority still; expected `auth rotate ca --drop-old` before another one");
  }
  MYCC_ASSIGN_OR_RETURN(
      const MadeCertificate made,
      MakeAuthority(absl::StrCat("mycc-tune ", RandomWord().substr(0, 8)), UnixNow(), kAuthorityDays));
  // The certificate first: a key without its certificate signs nothing, and says so.
  MYCC_RETURN_IF_ERROR(WriteAuthority(made.certificate + earlier.certificate));
  return WriteSecretFile(path_ + "/ca.key", made.key);
}

absl::Status CredentialFolder::DropOldAuthority() {
  MYCC_ASSIGN_OR_RETURN(const MadeCertificate authority, Authority());
  const auto [own, earlier] = SplitFirst(authority.certificate);
  if (earlier.empty())
    return absl::FailedPreconditionError("ca.pem has one authority alone; expected `auth rotate ca` first");
  std::vector<std::string> left;
  std::vector<std::string> names = {kServerName};
  for (const Principal& principal : callers_.principals()) {
    if (!principal.certificates.empty() && !principal.revoked) names.push_back(principal.name);
  }
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> pem = ReadFile(FolderOf(name) + "/cert.pem", kMostSecretBytes);
    if (pem.ok() && !IsSignedBy(*pem, own)) left.push_back(name);
  }
  if (!left.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the earlier authority alone has signed the certificates of ", absl::StrJoin(left, ", "),
                     "; expected `auth rotate` of each first"));
  }
  return WriteAuthority(own);
}

int64_t CredentialFolder::ServerExpiry() const {
  const absl::StatusOr<std::string> pem = ReadFile(FolderOf(kServerName) + "/cert.pem", kMostSecretBytes);
  const absl::StatusOr<CertificateFacts> facts = pem.ok() ? ReadCertificate(*pem) : pem.status();
  return facts.ok() ? facts->expires_unix_seconds : 0;
}

}  // namespace mycc
