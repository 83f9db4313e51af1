#include "db/record_check.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "proto/proof.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status Bad(const std::string& field, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("record field ", field, " ", what));
}

// Every text of a message, however deep: one that is not UTF-8 could be stored and never be read again.
absl::Status CheckTexts(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;  // records hold repeated numbers only
    const std::string name = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      if (!IsUtf8(reflection.GetString(message, field))) return Bad(name, "is not UTF-8 text");
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      MYCC_RETURN_IF_ERROR(CheckTexts(reflection.GetMessage(message, field), name + "."));
    }
  }
  return absl::OkStatus();
}

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds > 0; }

absl::Status CheckTiming(const v1::Timing& timing) {
  if (timing.protocol() == v1::TIMING_PROTOCOL_UNSPECIFIED ||
      !v1::TimingProtocol_IsValid(timing.protocol())) {
    return Bad("result.timing.protocol", "is not set; expected warm, cold or model");
  }
  if (!IsTime(timing.seconds())) {
    return Bad("result.timing.seconds",
               absl::StrCat("is ", timing.seconds(), "; expected a positive number"));
  }
  if (timing.rank_seconds() != 0 && !IsTime(timing.rank_seconds())) {
    return Bad("result.timing.rank_seconds",
               absl::StrCat("is ", timing.rank_seconds(), "; expected a positive number, or 0"));
  }
  if (!timing.final_round().empty() && timing.rank_seconds() == 0)
    return Bad("result.timing.rank_seconds", "is 0; expected what the final round's result ranks by");
  for (double sample : timing.samples_seconds()) {
    if (!IsTime(sample)) {
      return Bad("result.timing.samples_seconds",
                 absl::StrCat("holds ", sample, "; expected positive numbers"));
    }
  }
  return absl::OkStatus();
}

// A stamp from far ahead would be the log's clock ever after; one beyond this could not be followed by
// others.
constexpr int64_t kLatestStamp = 7258118400000000;  // the year 2200

absl::Status CheckStamp(int64_t recorded) {
  if (recorded >= 0 && recorded < kLatestStamp) return absl::OkStatus();
  return Bad("recorded_unix_micros",
             absl::StrCat("is ", recorded, "; expected microseconds since 1970, before the year 2200"));
}

}  // namespace

absl::Status CheckRecord(const v1::Record& record) {
  struct Required {
    const char* name;
    const std::string& value;
  };
  for (const Required& field :
       {Required{"trial", record.trial()}, Required{"workload", record.workload()},
        Required{"workload_hash", record.workload_hash()},
        Required{"shape_erased_hash", record.shape_erased_hash()}, Required{"target", record.target()}}) {
    if (field.value.empty()) return Bad(field.name, "is empty");
  }
  return CheckContent(record);
}

absl::Status CheckContent(const v1::Record& record) {
  MYCC_RETURN_IF_ERROR(CheckTexts(record, ""));
  MYCC_RETURN_IF_ERROR(CheckStamp(record.recorded_unix_micros()));
  const v1::MeasureStatus status = record.result().status();
  if (status == v1::MEASURE_STATUS_UNSPECIFIED || !v1::MeasureStatus_IsValid(status)) {
    return Bad("result.status", absl::StrCat("is ", static_cast<int>(status), "; expected a known status"));
  }
  return status == v1::MEASURE_STATUS_OK ? CheckTiming(record.result().timing()) : absl::OkStatus();
}

double RankSeconds(const v1::Timing& timing) {
  return timing.rank_seconds() > 0 ? timing.rank_seconds() : timing.seconds();
}

bool IsVerifiedOk(const v1::Record& record) {
  return record.result().status() == v1::MEASURE_STATUS_OK && record.result().verification().passed();
}

bool IsServable(const v1::Record& record) {
  return IsVerifiedOk(record) && IsProven(record.result().verification());
}

}  // namespace mycc
