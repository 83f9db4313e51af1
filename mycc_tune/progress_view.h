// Prints a job's progress: a bar on a terminal, lines in a pipe, JSON lines for programs. The texts are pure
// functions of the progress. Thread rule: thread-compatible.
#pragma once

#include <iosfwd>
#include <string>

#include "proto/tuning.pb.h"

namespace mycc {

// The share that is done, by trials or by time, whichever ends the job first; 0 to 1.
double DoneShare(const v1::JobProgress& progress);
// "3m 12s"; "?" where it cannot be told.
std::string EtaText(const v1::JobProgress& progress);
// Two times that were taken in the same way, and so compare: both in a final round, or each by itself.
struct ComparedSeconds {
  double by_default = 0, best = 0;  // 0: not known
};
ComparedSeconds ComparedSecondsOf(const v1::TaskProgress& task);
// Sum over the tasks of count * seconds, of tasks that have both.
struct WeightedSeconds {
  double by_default = 0, best = 0;
  int missing = 0;  // tasks without a valid schedule yet
};
WeightedSeconds WeightedSecondsOf(const v1::JobProgress& progress);

// "43 %  512 trials (480 ok, 32 build_error)  weighted 12.300 ms -> 5.100 ms (2.41x)  eta 4m 48s"; of a model
// "model 3.210 ms, was 5.100 ms by default schedules", once all its kernels have a time, or
// "41 of 60 kernels timed" before.
std::string ProgressLine(const v1::JobProgress& progress);
// The same behind a bar, no wider than `width`: what matters least is left out, and what is cut ends in dots.
std::string ProgressBar(const v1::JobProgress& progress, int width);
// A row for each task, and the weighted sum.
std::string SummaryTable(const v1::JobProgress& progress);
// The cost of each further percent of the weighted latency, in single timings; empty before it has fallen by
// one.
std::string MilestoneTable(const v1::JobProgress& progress);
// "as many trials again are expected to gain 0.8 %"; empty where that is unknown.
std::string GainText(const v1::JobProgress& progress);
// "128 results are kept": of a job that ended before its time.
std::string KeptResults(const v1::JobProgress& progress);
// "done", "running": for people and scripts.
std::string JobStateName(v1::JobState state);
bool HasEnded(const v1::JobProgress& progress);
// One line of JSON.
std::string ProgressJson(const v1::JobProgress& progress);

class ProgressView {
 public:
  enum class Style { kBar, kLines, kJson, kQuiet /* the result alone */ };
  // A bar where `fd` is a terminal, lines elsewhere; JSON or nothing when asked for.
  static Style StyleFor(int fd, bool json, bool quiet);
  ProgressView(Style style, std::ostream* out) : style_(style), out_(out) {}

  // Draws the bar again; prints a line when enough time has passed since the last one, or a message is new.
  void Update(const v1::JobProgress& progress);
  // The last state, and the summary.
  void Finish(const v1::JobProgress& progress);
  // A line of its own about the progress, whatever is being drawn.
  void Say(const std::string& line);
  // A line of its own that is a result.
  void Tell(const std::string& line);

 private:
  void Clear();

  const Style style_;
  std::ostream* const out_;
  bool drawn_ = false;
  double last_line_ = -1e9;
  std::string last_message_;
  uint64_t last_revision_ = 0;
};

}  // namespace mycc
