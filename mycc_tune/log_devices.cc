#include "mycc_tune/log_devices.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "command/table.h"
#include "command/times.h"
#include "db/constants_store.h"
#include "db/tuning_log.h"
#include "proto/device_constants.h"
#include "proto/utf8.h"
#include "tuner/cost/machine_constants.h"

namespace mycc {
namespace {

// The figures that predictions for the device's own target do not use.
std::vector<std::string> IgnoredOf(const StoredConstants& stored) {
  std::vector<std::string> ignored;
  const absl::StatusOr<Target> target = ParseTarget(stored.target);
  if (!target.ok()) return {absl::StrCat("all: ", target.status().message())};
  if (stored.constants.version() != kConstantsVersion) {
    return {absl::StrCat("all: they are of version ", stored.constants.version(), "; expected ",
                         kConstantsVersion)};
  }
  (void)MeasuredMachine(*target, stored.constants, &ignored);
  return ignored;
}

nlohmann::json JsonOf(const StoredConstants& stored) {
  nlohmann::json constants = nlohmann::json::object();
  for (const auto& [name, value] : stored.constants.values()) constants[name] = value;
  return {{"host", stored.host},
          {"device", stored.device},
          {"model", stored.model},
          {"target", stored.target},
          {"worker", stored.worker},
          {"version", stored.constants.version()},
          {"measured_unix_micros", stored.measured_unix_micros},
          {"constants", std::move(constants)},
          {"ignored", IgnoredOf(stored)}};
}

void WriteDevice(const StoredConstants& stored, std::ostream& out) {
  // Names are the workers' own.
  out << Printable(absl::StrCat(stored.device, " of ", stored.host, ", ", stored.model, ", measured ",
                                FormatUnixMicros(stored.measured_unix_micros), " by worker ", stored.worker,
                                "\n  ", stored.target, "\n"));
  std::vector<std::vector<std::string>> rows = {{"constant", "value", "unit", "meaning"}};
  for (const DeviceConstant& row : DeviceConstantRows()) {
    const double value = ConstantOf(stored.constants, row.name);
    if (value > 0) {
      rows.push_back({std::string(row.name), absl::StrFormat("%.4g", value), std::string(row.unit),
                      std::string(row.meaning)});
    }
  }
  out << FormatTable(rows, {1});
  for (const std::string& line : IgnoredOf(stored)) out << "not used: " << Printable(line) << "\n";
}

absl::Status ForgetDevices(const LogDevicesArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kWrite));
  MYCC_ASSIGN_OR_RETURN(const int64_t forgotten, ConstantsStore(log.get()).Clear());
  out << args.log << ": the constants of " << forgotten
      << (forgotten == 1 ? " device are forgotten" : " devices are forgotten") << "\n";
  return log->Close();
}

}  // namespace

absl::Status LogDevicesCommand(const LogDevicesArgs& args, std::ostream& out) {
  if (args.forget) return ForgetDevices(args, out);
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredConstants> devices, ConstantsStore(log.get()).List());
  if (devices.empty()) {
    return absl::NotFoundError(
        absl::StrCat(args.log, ": has no device's constants; a worker, or `mycc-tune tune`, measures them"));
  }
  for (const StoredConstants& device : devices) {
    if (args.json) {
      out << JsonOf(device).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    } else {
      if (&device != &devices.front()) out << "\n";
      WriteDevice(device, out);
    }
  }
  return absl::OkStatus();
}

}  // namespace mycc
