#include "web/metrics.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

#include "base/version.h"
#include "proto/names.h"
#include "web/prometheus_text.h"

namespace mycc {
namespace {

// Every status is there from the start: a rate over a counter that appears late lacks its first step.
constexpr v1::MeasureStatus kStatuses[] = {v1::MEASURE_STATUS_OK,
                                           v1::MEASURE_STATUS_BUILD_ERROR,
                                           v1::MEASURE_STATUS_BUILD_TIMEOUT,
                                           v1::MEASURE_STATUS_RUN_ERROR,
                                           v1::MEASURE_STATUS_RUN_TIMEOUT,
                                           v1::MEASURE_STATUS_WRONG_RESULT,
                                           v1::MEASURE_STATUS_OUT_OF_MEMORY,
                                           v1::MEASURE_STATUS_DEVICE_LOST,
                                           v1::MEASURE_STATUS_WORKER_LOST,
                                           v1::MEASURE_STATUS_WORKER_UNFIT};

double CountOf(const std::map<JobState, int64_t>& jobs, JobState state) {
  const auto found = jobs.find(state);
  return found == jobs.end() ? 0 : static_cast<double>(found->second);
}

void WriteJobs(const Overview& overview, const LogFacts& log, PrometheusText* text) {
  text->Gauge("mycc_tune_jobs", "Jobs by state.");
  text->Sample({{"state", "running"}}, static_cast<double>(overview.running_jobs));
  text->Sample({{"state", "waiting"}}, static_cast<double>(overview.waiting_jobs));
  text->Sample({{"state", "done"}}, CountOf(log.jobs, JobState::kDone));
  text->Sample({{"state", "cancelled"}}, CountOf(log.jobs, JobState::kCancelled));
  text->Sample({{"state", "failed"}}, CountOf(log.jobs, JobState::kFailed));
}

void WriteTrials(const Overview& overview, PrometheusText* text) {
  text->Counter("mycc_tune_trials_total", "Trials that were reported since the server's start, by status.");
  for (const v1::MeasureStatus status : kStatuses) {
    const auto found = overview.counters.trials.find(status);
    text->Sample({{"status", StatusName(status)}},
                 found == overview.counters.trials.end() ? 0 : static_cast<double>(found->second));
  }
  text->Gauge("mycc_tune_queue_trials", "Trials that wait for a worker.");
  text->Sample(static_cast<double>(overview.waiting_trials));
  text->Gauge("mycc_tune_leased_trials", "Trials that workers hold.");
  text->Sample(static_cast<double>(overview.leased_trials));
  text->Counter("mycc_tune_refused_reports_total",
                "Reports, results and leases of workers that were refused since the server's start.");
  text->Sample(static_cast<double>(overview.counters.refused));
  text->Counter("mycc_tune_search_crashes_total", "Crashes of searches since the server's start.");
  text->Sample(static_cast<double>(overview.counters.search_crashes));
}

void WriteLatencies(const LoopLatencies& latencies, PrometheusText* text) {
  text->Histogram("mycc_tune_lease_duration_seconds",
                  "Time from a worker's request to the trials that it got, with its wait for work.",
                  latencies.lease.counts());
  text->Histogram("mycc_tune_report_duration_seconds", "Time from a worker's report to its answer.",
                  latencies.report.counts());
  text->Histogram("mycc_tune_commit_duration_seconds", "Time from a change of the log to its commit.",
                  latencies.commit.counts());
  text->Histogram("mycc_tune_loop_turn_duration_seconds", "Time of a turn of the deciding thread.",
                  latencies.turn.counts());
}

// A gauge of the devices that have a value.
template <typename Value>
void WriteDeviceGauge(const Overview& overview, const std::string& name, const std::string& help,
                      const Value& value, PrometheusText* text) {
  text->Gauge(name, help);
  for (const v1::DeviceStatus& device : overview.devices) {
    const double seen = value(device);
    if (seen > 0) text->Sample({{"worker", device.worker()}, {"device", device.device()}}, seen);
  }
}

void WriteFarm(const Overview& overview, PrometheusText* text) {
  std::set<std::string> workers;
  std::map<std::string, int> states = {{"idle", 0}, {"busy", 0}, {"draining", 0}};
  for (const v1::DeviceStatus& device : overview.devices) {
    workers.insert(device.worker());
    ++states[device.state()];
  }
  text->Gauge("mycc_tune_workers", "Registered workers.");
  text->Sample(static_cast<double>(workers.size()));
  text->Gauge("mycc_tune_devices", "Devices of registered workers by state.");
  for (const auto& [state, count] : states) text->Sample({{"state", state}}, count);
}

void WriteDevices(const Overview& overview, PrometheusText* text) {
  WriteDeviceGauge(
      overview, "mycc_tune_device_baseline_ratio",
      "Time of a device's baseline kernel relative to its usual one: 1 is healthy.",
      [](const v1::DeviceStatus& device) { return device.baseline_ratio(); }, text);
  WriteDeviceGauge(
      overview, "mycc_tune_device_temperature_celsius", "Temperature of a device.",
      [](const v1::DeviceStatus& device) { return device.reading().temperature_celsius(); }, text);
  WriteDeviceGauge(
      overview, "mycc_tune_device_power_watts", "Power that a device draws.",
      [](const v1::DeviceStatus& device) { return device.reading().power_watts(); }, text);
  WriteDeviceGauge(
      overview, "mycc_tune_device_clock_hertz", "Clock of a device.",
      [](const v1::DeviceStatus& device) { return 1e6 * device.reading().clock_mhz(); }, text);
  text->Gauge("mycc_tune_device_throttled", "Whether something holds a device's clocks back.");
  for (const v1::DeviceStatus& device : overview.devices) {
    if (!device.has_reading()) continue;
    text->Sample({{"worker", device.worker()}, {"device", device.device()}},
                 device.reading().throttle().empty() ? 0 : 1);
  }
  text->Counter("mycc_tune_device_trials_total",
                "Trials that a device finished since its worker registered.");
  for (const v1::DeviceStatus& device : overview.devices) {
    text->Sample({{"worker", device.worker()}, {"device", device.device()}},
                 static_cast<double>(device.trials()));
  }
}

void WriteLog(const Overview& overview, const LogFacts& log, PrometheusText* text) {
  text->Gauge("mycc_tune_log_size_bytes", "Size of the tuning log.");
  text->Sample(static_cast<double>(log.file_bytes));
  text->Counter("mycc_tune_log_records_total", "Records that were ever appended to the tuning log.");
  text->Sample(static_cast<double>(log.newest_record));
  text->Gauge("mycc_tune_log_writable", "Whether the last change of the tuning log could be written.");
  text->Sample(overview.trouble.empty() ? 1 : 0);
}

void WriteProcess(const ProcessFacts& process, PrometheusText* text) {
  text->Gauge("mycc_tune_build_info", "The version of the server; the value is 1.");
  text->Sample({{"version", ProgramVersion()}}, 1);
  text->Gauge("process_start_time_seconds", "Start of the server, since 1970.");
  text->Sample(process.started_unix_seconds);
  text->Gauge("process_resident_memory_bytes", "Resident memory of the server.");
  text->Sample(process.resident_bytes);
  text->Gauge("process_open_fds", "Open files of the server.");
  text->Sample(process.open_files);
}

}  // namespace

ProcessFacts ReadProcessFacts(int64_t started_unix_micros) {
  ProcessFacts facts{.started_unix_seconds = static_cast<double>(started_unix_micros) / 1e6};
  std::ifstream memory("/proc/self/statm");
  double pages = 0, resident = 0;
  if (memory >> pages >> resident)
    facts.resident_bytes = resident * static_cast<double>(sysconf(_SC_PAGESIZE));
  std::error_code error;
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error))
    ++facts.open_files;
  return facts;
}

std::string MetricsText(const Overview& overview, const LogFacts& log, const LoopLatencies& latencies,
                        const ProcessFacts& process) {
  PrometheusText text;
  WriteJobs(overview, log, &text);
  WriteTrials(overview, &text);
  WriteLatencies(latencies, &text);
  WriteFarm(overview, &text);
  WriteDevices(overview, &text);
  WriteLog(overview, log, &text);
  WriteProcess(process, &text);
  return text.text();
}

}  // namespace mycc
