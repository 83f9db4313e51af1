#include "server/call_limits.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <string>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/status.h"

namespace mycc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMostLeases = 20000;  // that a worker holds

absl::Status TooMuch(const FieldDescriptor& field, size_t size, size_t most, const char* unit) {
  return absl::InvalidArgumentError(absl::StrCat(field.containing_type()->name(), ".", field.name(), " has ",
                                                 size, " ", unit, "; expected at most ", most));
}

// The bound of a field. The table is looked at once for each field.
size_t LimitOf(const FieldDescriptor* field) {
  static auto* const mutex = new Mutex();
  static auto* const known = new std::unordered_map<const FieldDescriptor*, size_t>();
  const MutexLock lock(mutex);
  const auto found = known->find(field);
  if (found != known->end()) return found->second;
  size_t most = field->is_repeated() ? kMostListEntries : kMostTextBytes;
  const std::string name = absl::StrCat(field->containing_type()->name(), ".", field->name());
  for (const FieldLimit& limit : FieldLimits()) {
    if (limit.field == name) most = limit.most;
  }
  known->emplace(field, most);
  return most;
}

absl::Status CheckText(const Message& message, const Reflection& reflection, const FieldDescriptor* field) {
  std::string scratch;
  if (field->is_repeated()) {
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      const size_t size = reflection.GetRepeatedStringReference(message, field, i, &scratch).size();
      if (size > kMiB) return TooMuch(*field, size, kMiB, "bytes in one entry");
    }
    return absl::OkStatus();
  }
  const size_t size = reflection.GetStringReference(message, field, &scratch).size(), most = LimitOf(field);
  return size <= most ? absl::OkStatus() : TooMuch(*field, size, most, "bytes");
}

absl::Status CheckField(const Message& message, const FieldDescriptor* field) {
  const Reflection& reflection = *message.GetReflection();
  if (field->is_repeated()) {
    const auto size = static_cast<size_t>(reflection.FieldSize(message, field));
    const size_t most = LimitOf(field);
    if (size > most) return TooMuch(*field, size, most, "entries");
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) return CheckText(message, reflection, field);
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE && field->name() == "wait_seconds") {
    const double wait = reflection.GetDouble(message, field);
    if (!std::isfinite(wait) || wait < 0) {
      return absl::InvalidArgumentError(absl::StrCat(field->containing_type()->name(), ".wait_seconds is ",
                                                     wait, "; expected a time in seconds"));
    }
  }
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return absl::OkStatus();
  if (!field->is_repeated()) return CheckMessageLimits(reflection.GetMessage(message, field));
  for (int i = 0; i < reflection.FieldSize(message, field); ++i)
    MYCC_RETURN_IF_ERROR(CheckMessageLimits(reflection.GetRepeatedMessage(message, field, i)));
  return absl::OkStatus();
}

}  // namespace

const std::vector<FieldLimit>& FieldLimits() {
  static const std::vector<FieldLimit> limits = {
      // Names, for people and in keys.
      {"RegisterRequest.worker", 256},
      {"RegisterRequest.instance", 128},
      {"RegisterRequest.replaces", 128},
      {"RegisterRequest.version", 256},
      {"DeviceOffer.device", 64},
      {"DeviceInfo.worker", 256},
      {"DeviceInfo.device", 256},
      {"DeviceInfo.model", 256},
      {"SubmitJobRequest.client", 64},
      {"SubmitJobRequest.owner", 256},
      {"CancelJobRequest.by", 256},
      {"JobSpec.name", 1024},
      {"LeaseId.trial", 256},
      {"LeaseId.ticket", 256},
      // A worker's devices, and what it holds.
      {"RegisterRequest.devices", 64},
      {"RegisterRequest.build_targets", 256},
      {"RegisterRequest.held", kMostLeases},
      {"LeaseRequest.held", kMostLeases},
      {"ReportRequest.held", kMostLeases},
      {"HeartbeatRequest.held", kMostLeases},
      {"LeaseBuildsRequest.held", kMostLeases},
      {"ReportBuildsRequest.held", kMostLeases},
      {"HeartbeatRequest.troubles", 64},
      {"HeartbeatRequest.readings", 64},
      {"HeartbeatRequest.constants", 64},
      {"DeviceConstants.values", 64},
      // Results.
      {"Report.rivals", 64},
      {"Timing.samples_seconds", 100000},
      {"Verification.seeds", 1024},
      {"DeviceInfo.throttled_by", 64},
      {"BuildReport.artifact", 32 * kMiB},
      // Jobs.
      {"JobSpec.tasks", 20000},
      {"JobSpec.groupings", 20000},
      {"Grouping.parts", 20000},
      {"Grouping.more", 20000},
      {"TaskSpec.target", 4096},
      {"JobSpec.target", 4096},
      {"SubmitJobRequest.submission", 64 * kMiB},
  };
  return limits;
}

absl::Status CheckMessageLimits(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) MYCC_RETURN_IF_ERROR(CheckField(message, field));
  return absl::OkStatus();
}

}  // namespace mycc
