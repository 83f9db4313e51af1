#include "server/quotas.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "db/message_json.h"
#include "server/job_terms.h"

namespace mycc {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostQuotaBytes = int64_t{1} << 20;

absl::Status BadQuota(const std::string& where, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::Status CheckQuota(const std::string& where, const v1::Quota& quota) {
  const bool is_positive = (!quota.has_device_seconds_per_day() || quota.device_seconds_per_day() > 0) &&
                           (!quota.has_trials_per_day() || quota.trials_per_day() > 0);
  if (!is_positive)
    return BadQuota(where, "a limit of a day is not above 0; expected more, or null for none");
  if (quota.highest_priority() < -kMostPriority || quota.highest_priority() > kMostPriority)
    return BadQuota(where, absl::StrCat("highest_priority is ", quota.highest_priority(), "; expected ",
                                        -kMostPriority, " to ", kMostPriority));
  return absl::OkStatus();
}

// Changes `quota` as the JSON says.
absl::Status Apply(const std::string& where, Json json, v1::Quota* quota) {
  if (!json.is_object()) return BadQuota(where, "expected an object of limits");
  for (auto limit = json.begin(); limit != json.end();) {
    const google::protobuf::FieldDescriptor* const field =
        v1::Quota::descriptor()->FindFieldByName(limit.key());
    if (limit->is_null() && field != nullptr) {
      quota->GetReflection()->ClearField(quota, field);
      limit = json.erase(limit);
    } else {
      ++limit;
    }
  }
  v1::Quota limits;
  if (const absl::Status read = MessageFromJson(json, &limits); !read.ok())
    return BadQuota(where, std::string(read.message()));
  quota->MergeFrom(limits);
  return CheckQuota(where, *quota);
}

// By this a change of the file is noticed; empty where there is none.
std::string StateOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "";
  return absl::StrCat(info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, " ", info.st_mtim.tv_nsec);
}

}  // namespace

absl::StatusOr<Quotas> Quotas::Parse(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InvalidArgumentError(
        "it is no JSON object; expected {\"default\": {...}, \"owners\": {...}}");
  for (const auto& [key, value] : json.items()) {
    if (key != "default" && key != "owners") return BadQuota(key, "unknown key; expected default or owners");
  }
  Quotas quotas;
  if (json.contains("default"))
    MYCC_RETURN_IF_ERROR(Apply("default", json.at("default"), &quotas.by_default_));
  if (!json.contains("owners")) return quotas;
  if (!json.at("owners").is_object()) return BadQuota("owners", "expected an object of owners");
  for (const auto& [owner, limits] : json.at("owners").items()) {
    v1::Quota& quota = quotas.owners_[owner] = quotas.by_default_;
    MYCC_RETURN_IF_ERROR(Apply(absl::StrCat("owners.", owner), limits, &quota));
  }
  return quotas;
}

const v1::Quota& Quotas::Of(const std::string& owner) const {
  const auto found = owners_.find(owner);
  return found == owners_.end() ? by_default_ : found->second;
}

absl::Status QuotaFile::Refresh() {
  if (path_.empty()) return absl::OkStatus();
  const std::string state = StateOf(path_);
  if (state == seen_ && !state.empty()) return absl::OkStatus();
  seen_ = state;
  MYCC_ASSIGN_OR_RETURN(const std::string text, ReadText(path_, kMostQuotaBytes));
  absl::StatusOr<Quotas> read = Quotas::Parse(text);
  if (!read.ok()) return absl::InvalidArgumentError(absl::StrCat(path_, ": ", read.status().message()));
  quotas_ = *std::move(read);
  return absl::OkStatus();
}

}  // namespace mycc
