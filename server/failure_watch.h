// Compares a device's failures with those of others: does it fail at trials that succeed elsewhere? It
// compares the latest outcomes of each device with those of other workers' devices on comparable trials,
// whatever the failure's status; without other workers, with the worker's own other devices. Pure
// bookkeeping. Thread rule: thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>

namespace mycc {

class FailureWatch {
 public:
  struct Source {
    std::string worker, device;

    bool operator<(const Source& other) const {
      return std::tie(worker, device) < std::tie(other.worker, other.device);
    }
  };

  // `line` names comparable trials: those of one job for one target.
  void Add(const std::string& line, const Source& source, bool ok);
  // Why the source stands out on the line; empty: it does not.
  std::string Verdict(const std::string& line, const Source& source) const;
  // A tenth or more of the other devices' trials on the line fail: a failure there needs no second
  // opinion.
  bool IsUsualElsewhere(const std::string& line, const Source& source) const;

 private:
  struct Counts {
    int64_t trials = 0, failures = 0;
  };
  struct Line {
    std::map<Source, std::deque<bool>> outcomes;  // the latest, in order: whether each was OK
    uint64_t used = 0;
  };
  static Counts CountsOf(const std::deque<bool>& outcomes);
  // The counts of the other workers' devices; of the worker's own other devices where there are none.
  static Counts RestOf(const Line& line, const Source& source);

  std::map<std::string, Line> lines_;
  uint64_t uses_ = 0;
};

// The probability that at least `failures` of `trials` draws fail, when `all_failures` of `all_trials` fail
// and which ones do is chance (Fisher's exact test, one-sided).
double ChanceOf(int64_t failures, int64_t trials, int64_t all_failures, int64_t all_trials);

}  // namespace mycc
