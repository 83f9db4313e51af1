#include "db/t4.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/names.h"

namespace mycc {
namespace {

using nlohmann::ordered_json;

constexpr char kSchemaVersion[] = "1.0.0";
constexpr double kMillisPerSecond = 1e3;

// The format's six words.
std::string Invalidity(v1::MeasureStatus status) {
  switch (status) {
    case v1::MEASURE_STATUS_OK: return "correct";
    case v1::MEASURE_STATUS_BUILD_ERROR: return "compile";
    case v1::MEASURE_STATUS_BUILD_TIMEOUT:
    case v1::MEASURE_STATUS_RUN_TIMEOUT: return "timeout";
    case v1::MEASURE_STATUS_WRONG_RESULT: return "correctness";
    default: return "runtime";
  }
}

void AddMeasurement(ordered_json* measurements, const char* name, double value, const char* unit) {
  if (!std::isfinite(value)) return;  // JSON has no such number
  measurements->push_back(ordered_json{{"name", name}, {"value", value}, {"unit", unit}});
}

ordered_json Measurements(const v1::MeasureResult& result) {
  ordered_json measurements = ordered_json::array();
  const v1::Timing& timing = result.timing();
  if (result.status() == v1::MEASURE_STATUS_OK) {
    AddMeasurement(&measurements, "time", timing.seconds() * kMillisPerSecond, "ms");
    AddMeasurement(&measurements, "time_ci_low", timing.ci_low_seconds() * kMillisPerSecond, "ms");
    AddMeasurement(&measurements, "time_ci_high", timing.ci_high_seconds() * kMillisPerSecond, "ms");
  }
  if (timing.relative_to_baseline() != 0) {
    AddMeasurement(&measurements, "relative_to_baseline", timing.relative_to_baseline(), "");
  }
  if (result.has_verification()) {
    AddMeasurement(&measurements, "max_abs_error", result.verification().max_abs_error(), "");
    AddMeasurement(&measurements, "max_rel_error", result.verification().max_rel_error(), "");
  }
  const v1::CodeResources& code = result.resources();
  if (code.has_registers_per_thread())
    AddMeasurement(&measurements, "registers", code.registers_per_thread(), "");
  if (code.has_spill_bytes()) AddMeasurement(&measurements, "spills", code.spill_bytes(), "B");
  if (code.has_shared_bytes()) AddMeasurement(&measurements, "shared_memory", code.shared_bytes(), "B");
  return measurements;
}

ordered_json ToResult(const v1::Record& record) {
  const v1::MeasureResult& result = record.result();
  ordered_json runtimes = ordered_json::array();
  for (double seconds : result.timing().samples_seconds()) runtimes.push_back(seconds * kMillisPerSecond);
  const int64_t micros =
      result.finished_unix_micros() != 0 ? result.finished_unix_micros() : record.recorded_unix_micros();
  return ordered_json{
      {"timestamp", absl::FormatTime(absl::RFC3339_sec, absl::FromUnixMicros(micros), absl::UTCTimeZone())},
      {"configuration",
       ordered_json{{"workload", record.workload()}, {"target", record.target()}, {"trace", record.trace()}}},
      {"objectives", ordered_json::array({"time"})},
      {"times", ordered_json{{"compilation_time", result.timing().build_seconds() * kMillisPerSecond},
                             {"runtimes", runtimes}}},
      {"invalidity", Invalidity(result.status())},
      {"correctness", result.verification().passed() ? 1 : 0},
      {"measurements", Measurements(result)},
  };
}

}  // namespace

absl::StatusOr<int64_t> ExportT4(const TuningLog& log, const RecordFilter& filter, std::ostream& out) {
  out << "{\"schema_version\":\"" << kSchemaVersion << "\",\"results\":[";
  int64_t count = 0;
  MYCC_RETURN_IF_ERROR(log.ForEach(filter, [&](const StoredRecord& stored) {
    if (IsInfrastructureFailure(stored.record.result().status())) return absl::OkStatus();
    out << (count == 0 ? "\n" : ",\n") << ToResult(stored.record);
    ++count;
    return out.good() ? absl::OkStatus() : absl::ResourceExhaustedError("cannot write the export");
  }));
  out << "\n]}\n";
  out.flush();
  if (!out.good()) return absl::ResourceExhaustedError("cannot write the export");
  return count;
}

}  // namespace mycc
