#include "proto/names.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace mycc {
namespace {

struct StatusWord {
  v1::MeasureStatus status;
  const char* word;
};
constexpr StatusWord kStatusWords[] = {
    {v1::MEASURE_STATUS_OK, "ok"},
    {v1::MEASURE_STATUS_BUILD_ERROR, "build_error"},
    {v1::MEASURE_STATUS_BUILD_TIMEOUT, "build_timeout"},
    {v1::MEASURE_STATUS_RUN_ERROR, "run_error"},
    {v1::MEASURE_STATUS_RUN_TIMEOUT, "run_timeout"},
    {v1::MEASURE_STATUS_WRONG_RESULT, "wrong_result"},
    {v1::MEASURE_STATUS_OUT_OF_MEMORY, "out_of_memory"},
    {v1::MEASURE_STATUS_DEVICE_LOST, "device_lost"},
    {v1::MEASURE_STATUS_WORKER_LOST, "worker_lost"},
    {v1::MEASURE_STATUS_WORKER_UNFIT, "worker_unfit"},
};

constexpr char kJobPrefix = 'j';
constexpr size_t kJobDigits = 32, kOldJobDigits = 16;

// Digits only, without a leading zero: one number has one name.
bool ParseNumber(const std::string& text, uint32_t* number) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return digits && (text.size() == 1 || text[0] != '0') && absl::SimpleAtoi(text, number);
}

}  // namespace

std::string StatusName(v1::MeasureStatus status) {
  for (const StatusWord& entry : kStatusWords) {
    if (entry.status == status) return entry.word;
  }
  return absl::StrCat("status_", static_cast<int>(status));
}

absl::StatusOr<v1::MeasureStatus> ParseStatusName(const std::string& name) {
  std::vector<std::string> words;
  for (const StatusWord& entry : kStatusWords) {
    if (name == entry.word) return entry.status;
    words.push_back(entry.word);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown status \"", name, "\"; expected one of ", absl::StrJoin(words, ", ")));
}

std::string ProtocolName(v1::TimingProtocol protocol) {
  switch (protocol) {
    case v1::TIMING_PROTOCOL_WARM: return "warm";
    case v1::TIMING_PROTOCOL_COLD: return "cold";
    case v1::TIMING_PROTOCOL_MODEL: return "model";
    default: return absl::StrCat("protocol_", static_cast<int>(protocol));
  }
}

absl::StatusOr<v1::TimingProtocol> ParseProtocolName(const std::string& name) {
  if (name == "warm") return v1::TIMING_PROTOCOL_WARM;
  if (name == "cold") return v1::TIMING_PROTOCOL_COLD;
  if (name == "model") return v1::TIMING_PROTOCOL_MODEL;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown timing protocol \"", name, "\"; expected warm, cold or model"));
}

bool IsInfrastructureFailure(v1::MeasureStatus status) {
  return status == v1::MEASURE_STATUS_DEVICE_LOST || status == v1::MEASURE_STATUS_WORKER_LOST ||
         status == v1::MEASURE_STATUS_WORKER_UNFIT;
}

std::string JobId(uint64_t high_bits, uint64_t low_bits) {
  return absl::StrFormat("%c%016x%016x", kJobPrefix, high_bits, low_bits);
}

std::string JobId(uint64_t bits) { return absl::StrFormat("%c%016x", kJobPrefix, bits); }

bool IsJobId(const std::string& text) {
  return (text.size() == 1 + kJobDigits || text.size() == 1 + kOldJobDigits) && text[0] == kJobPrefix &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
}

std::string TrialName(const TrialId& id) {
  return absl::StrCat(id.job, "/", id.task, "/", id.generation, "/", id.index);
}

absl::StatusOr<TrialId> ParseTrialName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  TrialId id;
  if (parts.size() != 4 || !IsJobId(parts[0]) || !ParseNumber(parts[1], &id.task) ||
      !ParseNumber(parts[2], &id.generation) || !ParseNumber(parts[3], &id.index)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is not a trial's name; expected JOB/TASK/GENERATION/INDEX"));
  }
  id.job = parts[0];
  return id;
}

std::string RemeasuredTrialName(const std::string& trial, int64_t unix_micros) {
  return absl::StrCat(trial.substr(0, trial.find('@')), "@", unix_micros);
}

std::string NamesakeName(const std::string& trial, const std::string& content_digest) {
  return absl::StrCat(trial, "#", content_digest);
}

std::string PlainTrialName(const std::string& name) { return name.substr(0, name.rfind('#')); }

std::string FinalRoundName(const std::string& job, uint32_t task, int64_t unix_micros) {
  return absl::StrCat(job, "/", task, "/final@", unix_micros);
}

bool IsFinalRoundOf(const std::string& job, uint32_t task, const std::string& name) {
  return absl::StartsWith(name, absl::StrCat(job, "/", task, "/final@"));
}

}  // namespace mycc
