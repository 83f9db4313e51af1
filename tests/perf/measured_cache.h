// Times of schedules on this host, measured when they are first asked for and kept in a file: so that
// searches can be compared again and again, by what they find, without measuring the same schedule twice. The
// file has a line for each result and is appended to; one that is cut short by a crash loses its last line
// alone. Times are only comparable on one host: keep a file for each. Several processes may share one file:
// the first time of a schedule is the one that all of them keep. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "worker/cpu_measurer.h"

namespace mycc {

struct TimedSchedule {
  std::optional<double> seconds;  // absent when it failed
  std::string failure;            // the status' name then
};

class MeasuredCache {
 public:
  // `target`: the host's, as text. Ends the program with a message where the file cannot be written or read.
  MeasuredCache(const std::string& path, std::string target);
  ~MeasuredCache();
  MeasuredCache(const MeasuredCache&) = delete;
  MeasuredCache& operator=(const MeasuredCache&) = delete;

  // The time of each trace, one result for each in order.
  std::vector<TimedSchedule> Measure(const std::string& workload, const std::vector<std::string>& traces);
  // Each trace's time over the anchor's, timed in turn in one process. Absent where one of the two failed.
  std::vector<std::optional<double>> Compare(const std::string& workload, const std::string& anchor,
                                             const std::vector<std::string>& traces);
  int64_t measured() const { return measured_; }  // by this process

 private:
  // Reads the lines that were appended since the last call.
  void ReadNewLines();
  void Keep(const std::string& key, const std::string& value);
  v1::Assignment AssignmentOf(const std::string& workload, const std::string& trace) const;
  CpuMeasurer* measurer();

  const std::string target_;
  std::unordered_map<std::string, std::string> values_;
  int file_ = -1;
  int64_t read_bytes_ = 0;  // of whole lines
  std::unique_ptr<CpuMeasurer> measurer_;
  int64_t measured_ = 0;
};

}  // namespace mycc
