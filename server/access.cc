#include "server/access.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace mycc {
namespace {

constexpr int kAccessVersion = 1;
constexpr size_t kMostPrincipals = 10000, kMostSecretsOfOne = 16, kMostCallerNameBytes = 64;
constexpr uid_t kUnknownUid = 65534;
constexpr size_t kSha256Digits = 64;
constexpr size_t kMostCommonNameBytes = 64;  // as X.509 has it

struct RoleWord {
  Role role;
  const char* word;
};
constexpr RoleWord kRoleWords[] = {
    {Role::kRead, "read"}, {Role::kSubmit, "submit"}, {Role::kWork, "work"}, {Role::kAdmin, "admin"}};

using Json = nlohmann::json;

// Reads one object of the file. The first error stays, and says where it is.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) Fail(absl::StrCat(where_, " is no object; expected {...}"));
  }

  void Text(const char* key, std::string* text) {
    if (const Json* value = Take(key); value != nullptr) {
      if (value->is_string()) {
        *text = value->get<std::string>();
      } else {
        Expect(key, "a text");
      }
    }
  }
  void Flag(const char* key, bool* flag) {
    if (const Json* value = Take(key); value != nullptr) {
      if (value->is_boolean()) {
        *flag = value->get<bool>();
      } else {
        Expect(key, "true or false");
      }
    }
  }
  void Number(const char* key, int64_t most, int64_t* number) {
    if (const Json* value = Take(key); value != nullptr) {
      if (value->is_number_unsigned() && value->get<uint64_t>() <= static_cast<uint64_t>(most)) {
        *number = static_cast<int64_t>(value->get<uint64_t>());
      } else {
        Expect(key, absl::StrCat("a whole number up to ", most));
      }
    }
  }
  template <typename Read>
  void Each(const char* key, size_t most, const Read& read) {
    const Json* const value = Take(key);
    if (value == nullptr) return;
    if (!value->is_array() || value->size() > most)
      return Expect(key, absl::StrCat("a list of at most ", most));
    for (size_t i = 0; i < value->size() && error_.ok(); ++i)
      Keep(read((*value)[i], absl::StrCat(where_, ".", key, "[", i, "]")));
  }
  // REQUIRES: everything that the object may have was asked for.
  absl::Status End() {
    if (error_.ok() && taken_ != object_.size()) {
      for (const auto& [key, value] : object_.items()) {
        if (std::ranges::find(keys_, key) == keys_.end()) {
          Fail(absl::StrCat(where_, " has the unknown key \"", key, "\"; expected ",
                            absl::StrJoin(keys_, ", ")));
          break;
        }
      }
    }
    return error_;
  }

 private:
  const Json* Take(const char* key) {
    keys_.emplace_back(key);
    if (!error_.ok()) return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) return nullptr;
    ++taken_;
    return &*found;
  }
  void Expect(const char* key, const std::string& expected) {
    Fail(absl::StrCat(where_, ".", key, " is not as expected: ", expected));
  }
  void Fail(const std::string& what) { Keep(absl::InvalidArgumentError(what)); }
  void Keep(const absl::Status& status) {
    if (error_.ok()) error_ = status;
  }

  const Json& object_;
  const std::string where_;
  std::vector<std::string> keys_;
  size_t taken_ = 0;
  absl::Status error_;
};

absl::StatusOr<std::string> TextOf(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  return absl::InvalidArgumentError(absl::StrCat(where, " is no text; expected \"...\""));
}

bool IsSha256(absl::string_view digest) {
  return digest.size() == kSha256Digits &&
         digest.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

absl::Status ReadSecret(const Json& json, const std::string& where, std::vector<KnownSecret>* secrets) {
  KnownSecret secret;
  ObjectReader reader(json, where);
  reader.Text("sha256", &secret.sha256);
  reader.Number("expires_unix_seconds", int64_t{1} << 40, &secret.expires_unix_seconds);
  MYCC_RETURN_IF_ERROR(reader.End());
  secrets->push_back(std::move(secret));
  return absl::OkStatus();
}

absl::Status ReadPrincipal(const Json& json, const std::string& where, Principal* principal) {
  ObjectReader reader(json, where);
  reader.Text("name", &principal->name);
  reader.Each("roles", std::size(kRoleWords),
              [principal](const Json& value, const std::string& at) -> absl::Status {
                MYCC_ASSIGN_OR_RETURN(const std::string word, TextOf(value, at));
                MYCC_ASSIGN_OR_RETURN(const Role role, ParseRole(word));
                principal->roles.Add(role);
                return absl::OkStatus();
              });
  reader.Each("tokens", kMostSecretsOfOne, [principal](const Json& value, const std::string& at) {
    return ReadSecret(value, at, &principal->tokens);
  });
  reader.Each("certificates", kMostSecretsOfOne, [principal](const Json& value, const std::string& at) {
    return ReadSecret(value, at, &principal->certificates);
  });
  reader.Each("common_names", kMostSecretsOfOne,
              [principal](const Json& value, const std::string& at) -> absl::Status {
                MYCC_ASSIGN_OR_RETURN(principal->common_names.emplace_back(), TextOf(value, at));
                return absl::OkStatus();
              });
  reader.Each("uids", kMostSecretsOfOne,
              [principal](const Json& value, const std::string& at) -> absl::Status {
                if (!value.is_number_unsigned() || value.get<uint64_t>() >= uint64_t{0xffffffff})
                  return absl::InvalidArgumentError(absl::StrCat(at, " is no user id; expected a number"));
                principal->uids.push_back(static_cast<uid_t>(value.get<uint64_t>()));
                return absl::OkStatus();
              });
  reader.Flag("revoked", &principal->revoked);
  return reader.End();
}

absl::Status CheckPrincipal(const Principal& principal) {
  MYCC_RETURN_IF_ERROR(CheckCallerName(principal.name));
  const auto refuse = [&principal](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(principal.name, " ", what));
  };
  if (principal.roles.empty()) return refuse("has no role; expected read, submit, work or admin");
  for (const std::vector<KnownSecret>* secrets : {&principal.tokens, &principal.certificates}) {
    if (secrets->size() > kMostSecretsOfOne)
      return refuse(
          absl::StrCat("has ", secrets->size(), " secrets of a kind; expected at most ", kMostSecretsOfOne));
    for (const KnownSecret& secret : *secrets) {
      if (!IsSha256(secret.sha256))
        return refuse("has a secret that is no SHA-256; expected 64 digits of 0123456789abcdef");
    }
  }
  for (const uid_t uid : principal.uids) {
    if (uid == kUnknownUid)
      return refuse(absl::StrCat("has the user id ", uid,
                                 ", which the kernel gives to users that it cannot name; expected another"));
  }
  for (const std::string& name : principal.common_names) {
    if (name.empty() || name.size() > kMostCommonNameBytes)
      return refuse(
          absl::StrCat("has a common name of ", name.size(), " bytes; expected 1 to ", kMostCommonNameBytes));
  }
  return absl::OkStatus();
}

Json SecretsJson(const std::vector<KnownSecret>& secrets) {
  Json list = Json::array();
  for (const KnownSecret& secret : secrets) {
    Json& entry = list.emplace_back(Json{{"sha256", secret.sha256}});
    if (secret.expires_unix_seconds > 0) entry["expires_unix_seconds"] = secret.expires_unix_seconds;
  }
  return list;
}

}  // namespace

std::string RoleName(Role role) {
  for (const RoleWord& entry : kRoleWords) {
    if (entry.role == role) return entry.word;
  }
  return "none";
}

absl::StatusOr<Role> ParseRole(absl::string_view word) {
  for (const RoleWord& entry : kRoleWords) {
    if (word == entry.word) return entry.role;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is no role; expected read, submit, work or admin"));
}

std::string Roles::Words() const {
  std::vector<std::string> words;
  for (const RoleWord& entry : kRoleWords) {
    if (Has(entry.role)) words.emplace_back(entry.word);
  }
  return absl::StrJoin(words, ", ");
}

absl::Status CheckCallerName(const std::string& name) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";
  const bool is_sound = !name.empty() && name.size() <= kMostCallerNameBytes && name[0] != '-' &&
                        name[0] != '.' && name.find_first_not_of(kLetters) == std::string::npos;
  if (is_sound) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a caller's name is not as expected: 1 to ", kMostCallerNameBytes,
                   " letters, digits and ._@- , the first a letter, a digit, _ or @"));
}

absl::StatusOr<AccessList> AccessList::Parse(absl::string_view text, const std::string& path) {
  const auto refuse = [&path](const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat("`", path, "`: ", status.message()));
  };
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return refuse(absl::InvalidArgumentError("is no JSON; expected what `mycc-tune auth` writes"));
  AccessList list;
  int64_t version = 0;
  ObjectReader reader(json, "the file");
  reader.Number("version", 1000, &version);
  reader.Each("principals", kMostPrincipals,
              [&list](const Json& value, const std::string& at) -> absl::Status {
                MYCC_RETURN_IF_ERROR(ReadPrincipal(value, at, &list.principals_.emplace_back()));
                return absl::OkStatus();
              });
  if (const absl::Status status = reader.End(); !status.ok()) return refuse(status);
  if (version != kAccessVersion) {
    return refuse(
        absl::InvalidArgumentError(absl::StrCat("has version ", version, "; expected ", kAccessVersion)));
  }
  if (const absl::Status status = list.Index(); !status.ok()) return refuse(status);
  return list;
}

absl::Status AccessList::Index() {
  by_name_.clear();
  by_common_name_.clear();
  by_token_.clear();
  by_certificate_.clear();
  by_uid_.clear();
  for (size_t i = 0; i < principals_.size(); ++i) {
    const Principal& principal = principals_[i];
    MYCC_RETURN_IF_ERROR(CheckPrincipal(principal));
    bool is_new = by_name_.emplace(principal.name, i).second;
    if (!is_new)
      return absl::InvalidArgumentError(absl::StrCat(principal.name, " stands twice; expected it once"));
    for (const KnownSecret& token : principal.tokens)
      is_new &= by_token_.emplace(token.sha256, Place{i, token.expires_unix_seconds}).second;
    for (const KnownSecret& certificate : principal.certificates)
      is_new &=
          by_certificate_.emplace(certificate.sha256, Place{i, certificate.expires_unix_seconds}).second;
    for (const std::string& name : principal.common_names) is_new &= by_common_name_.emplace(name, i).second;
    for (const uid_t uid : principal.uids) is_new &= by_uid_.emplace(uid, i).second;
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          principal.name,
          " has a token, a certificate or a user id that stands twice; expected one caller for each"));
    }
  }
  return absl::OkStatus();
}

absl::Status AccessList::Add(Principal principal) {
  if (principals_.size() >= kMostPrincipals)
    return absl::ResourceExhaustedError(
        absl::StrCat("there are ", principals_.size(), " callers; expected fewer"));
  AccessList with = *this;
  with.principals_.push_back(std::move(principal));
  MYCC_RETURN_IF_ERROR(with.Index());
  *this = std::move(with);
  return absl::OkStatus();
}

absl::Status AccessList::Replace(Principal principal) {
  const auto found = by_name_.find(principal.name);
  if (found == by_name_.end())
    return absl::NotFoundError(
        absl::StrCat("no caller is called ", principal.name, "; `mycc-tune auth list` shows all"));
  AccessList with = *this;
  with.principals_[found->second] = std::move(principal);
  MYCC_RETURN_IF_ERROR(with.Index());
  *this = std::move(with);
  return absl::OkStatus();
}

const Principal* AccessList::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &principals_[found->second];
}

std::string AccessList::Print() const {
  nlohmann::ordered_json file = {{"version", kAccessVersion}};
  nlohmann::ordered_json& list = file["principals"] = nlohmann::ordered_json::array();
  for (const Principal& principal : principals_) {
    nlohmann::ordered_json& entry = list.emplace_back(nlohmann::ordered_json{{"name", principal.name}});
    entry["roles"] = nlohmann::ordered_json::array();
    for (const RoleWord& role : kRoleWords) {
      if (principal.roles.Has(role.role)) entry["roles"].push_back(role.word);
    }
    if (!principal.tokens.empty()) entry["tokens"] = SecretsJson(principal.tokens);
    if (!principal.certificates.empty()) entry["certificates"] = SecretsJson(principal.certificates);
    if (!principal.common_names.empty()) entry["common_names"] = principal.common_names;
    if (!principal.uids.empty()) entry["uids"] = principal.uids;
    if (principal.revoked) entry["revoked"] = true;
  }
  return file.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Caller> AccessList::Admit(const Place& place, const char* what,
                                         int64_t now_unix_seconds) const {
  const Principal& principal = principals_[place.principal];
  if (principal.revoked) {
    return absl::PermissionDeniedError(
        absl::StrCat("the access of ", principal.name,
                     " was revoked; an admin gives it back: mycc-tune auth rotate ", principal.name));
  }
  if (place.expires_unix_seconds > 0 && now_unix_seconds >= place.expires_unix_seconds) {
    return absl::PermissionDeniedError(
        absl::StrCat("the ", what, " of ", principal.name,
                     " has expired; an admin renews it: mycc-tune auth rotate ", principal.name));
  }
  return Caller{principal.name, principal.roles};
}

absl::StatusOr<Caller> AccessList::CallerOf(const Shown& shown, int64_t now_unix_seconds) const {
  if (!shown.token_sha256.empty()) {
    const auto found = by_token_.find(shown.token_sha256);
    if (found != by_token_.end()) return Admit(found->second, "token", now_unix_seconds);
    return absl::UnauthenticatedError("the token is missing or wrong; expected --token-file");
  }
  if (!shown.certificate_sha256.empty()) {
    const auto found = by_certificate_.find(shown.certificate_sha256);
    if (found != by_certificate_.end()) return Admit(found->second, "certificate", now_unix_seconds);
    const auto named = by_common_name_.find(shown.common_name);
    if (named != by_common_name_.end()) return Admit({named->second, 0}, "certificate", now_unix_seconds);
    return absl::UnauthenticatedError(absl::StrCat(
        "the certificate of \"", shown.common_name,
        "\" is not among those that the server knows; expected one that `mycc-tune auth` has made"));
  }
  if (shown.uid) {
    const auto found = by_uid_.find(*shown.uid);
    if (found != by_uid_.end()) return Admit({found->second, 0}, "user id", now_unix_seconds);
  }
  if (by_certificate_.empty() && by_common_name_.empty())
    return absl::UnauthenticatedError("the token is missing or wrong; expected --token-file");
  return absl::UnauthenticatedError(
      "neither a certificate nor a token was shown; expected --credentials, --token-file, or --tls-cert and "
      "--tls-key");
}

const std::vector<CallRole>& CallRoles() {
  static const std::vector<CallRole> roles = {
      {"Register", Role::kWork},     {"Lease", Role::kWork},         {"Report", Role::kWork},
      {"Heartbeat", Role::kWork},    {"Leave", Role::kWork},         {"LeaseBuilds", Role::kWork},
      {"ReportBuilds", Role::kWork}, {"FetchArtifact", Role::kWork}, {"SubmitJob", Role::kSubmit},
      {"LeaveJob", Role::kSubmit},   {"CancelJob", Role::kSubmit},   {"ListJobs", Role::kRead},
      {"WatchJob", Role::kRead},     {"ListDevices", Role::kRead},   {"Best", Role::kRead},
      {"UpdateJob", Role::kSubmit},  {"ListOwners", Role::kRead},
  };
  return roles;
}

absl::Status CheckRole(const Caller& caller, absl::string_view what, Role needed) {
  if (caller.roles.Allow(needed)) return absl::OkStatus();
  const std::string name = caller.name.empty() ? "this caller" : caller.name;
  return absl::PermissionDeniedError(absl::StrCat(
      what, " needs the role ", RoleName(needed), ", and ", name, " has ",
      caller.roles.empty() ? "none" : caller.roles.Words(), "; an admin gives it: mycc-tune auth grant ",
      caller.name.empty() ? "NAME" : caller.name, " --role ", RoleName(needed)));
}

absl::Status CheckRole(const Caller& caller, absl::string_view call) {
  for (const CallRole& row : CallRoles()) {
    if (row.call == call) return CheckRole(caller, call, row.role);
  }
  return CheckRole(caller, call, Role::kAdmin);
}

}  // namespace mycc
