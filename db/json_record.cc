#include "db/json_record.h"

#include <algorithm>
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/schedule/trace_names.h"
#include "db/message_json.h"

namespace mycc {
namespace {

// A median lies among its samples. The time of a candidate that was timed in turn with others is corrected by
// theirs, and may lie beyond them, by far less than this factor.
constexpr double kBeyondSamples = 10;

absl::Status CheckTimes(const v1::Timing& timing) {
  const double seconds = timing.seconds(), low = timing.ci_low_seconds(), high = timing.ci_high_seconds();
  if (!std::isfinite(seconds) || seconds <= 0) return absl::OkStatus();  // CheckRecord refuses it
  if ((low != 0 || high != 0) && !(low <= seconds && seconds <= high)) {
    return absl::InvalidArgumentError(absl::StrCat("key \"result.timing.seconds\": ", seconds,
                                                   " lies outside of its interval; expected a number from ",
                                                   low, " to ", high));
  }
  if (timing.samples_seconds().empty()) return absl::OkStatus();
  const auto [least, most] = std::ranges::minmax_element(timing.samples_seconds());
  if (*least / kBeyondSamples <= seconds && seconds <= *most * kBeyondSamples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("key \"result.timing.seconds\": ", seconds,
                   " does not fit \"samples_seconds\"; expected their median, from ", *least, " to ", *most));
}

}  // namespace

std::string RecordLine(const v1::Record& record) {
  v1::Record stored = record;
  stored.set_trace(StoredTrace(record.trace()));
  return nlohmann::ordered_json{{"record", MessageToJson(stored)}}.dump();
}

absl::StatusOr<v1::Record> RecordFromJson(const nlohmann::json& value, const CheckTarget& check_target) {
  v1::Record record;
  MYCC_RETURN_IF_ERROR(MessageFromJson(value, &record));
  if (record.result().status() == v1::MEASURE_STATUS_OK)
    MYCC_RETURN_IF_ERROR(CheckTimes(record.result().timing()));
  if (check_target != nullptr && !record.target().empty()) {
    if (const absl::Status target = check_target(record.target()); !target.ok())
      return absl::InvalidArgumentError(absl::StrCat("key \"target\": ", std::string(target.message())));
  }
  // A wrong hash would file the record under another workload, where it would be replayed.
  if (Sha256Hex(record.workload()) != record.workload_hash()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key \"workload_hash\": expected the SHA-256 of \"workload\", ", Sha256Hex(record.workload())));
  }
  return record;
}

bool ReadLine(std::istream& in, std::string* line, bool* ends) {
  char piece[1 << 14];
  line->clear();
  if (ends != nullptr) *ends = false;
  while (in.good() && line->size() <= kMostLineBytes) {
    in.getline(piece, sizeof(piece));
    const auto got = static_cast<size_t>(in.gcount());
    const bool is_end = in.good();  // and the newline is counted
    line->append(piece, is_end ? got - 1 : got);
    if (is_end && ends != nullptr) *ends = true;
    if (is_end || in.eof() || in.bad()) return is_end || got > 0;
    in.clear();  // the piece is full
  }
  return !line->empty();
}

}  // namespace mycc
