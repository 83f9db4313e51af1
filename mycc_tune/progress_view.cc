#include "mycc_tune/progress_view.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/plural.h"
#include "command/table.h"
#include "command/terminal.h"
#include "command/times.h"
#include "db/message_json.h"
#include "proto/names.h"
#include "proto/precision.h"
#include "proto/utf8.h"

namespace mycc {
namespace {

constexpr double kLineSeconds = 10;
constexpr int kBarCells = 24;

std::string Duration(double seconds) {
  const int64_t whole = static_cast<int64_t>(std::ceil(std::max(seconds, 0.0)));
  if (whole < 60) return absl::StrCat(whole, "s");
  if (whole < 3600) return absl::StrFormat("%dm %02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh %02dm", whole / 3600, whole / 60 % 60);
}

// "(480 ok, 32 build_error)"; empty before the first.
std::string OutcomesText(const v1::JobProgress& progress) {
  std::map<v1::MeasureStatus, int64_t> counts;
  for (const v1::TaskProgress& task : progress.tasks()) {
    for (const v1::StatusCount& outcome : task.outcomes()) counts[outcome.status()] += outcome.count();
  }
  std::vector<std::string> words;
  words.reserve(counts.size());
  for (const auto& [status, count] : counts) words.push_back(absl::StrCat(count, " ", StatusName(status)));
  return words.empty() ? "" : absl::StrCat(" (", absl::StrJoin(words, ", "), ")");
}

// A model's latency, once all its kernels have a time.
std::string LatencyText(const v1::JobProgress& progress) {
  if (progress.latency_seconds() > 0) {
    return absl::StrCat("  model ", FormatSeconds(progress.latency_seconds()), ", was ",
                        FormatSeconds(progress.default_latency_seconds()), " by default schedules");
  }
  return progress.tasks_size() == 0 ? ""
                                    : absl::StrCat("  ", progress.tasks_timed(), " of ",
                                                   HowMany(progress.tasks_size(), "kernel"), " timed");
}

std::string BestText(const v1::JobProgress& progress) {
  if (progress.is_model()) return LatencyText(progress);
  const WeightedSeconds seconds = WeightedSecondsOf(progress);
  if (seconds.best == 0) return "";
  const std::string ratio = absl::StrFormat("%.2fx", seconds.by_default / seconds.best);
  const std::string missing = seconds.missing > 0 ? absl::StrCat(", ", seconds.missing, " to come") : "";
  return absl::StrCat("  weighted ", FormatSeconds(seconds.by_default), " -> ", FormatSeconds(seconds.best),
                      " (", ratio, missing, ")");
}

// A part of a line, with what separates it from the one before.
struct Part {
  std::string text;
  int worth;  // where there is little space, the least is left out first
};
constexpr int kIndispensable = 3;

std::vector<Part> PartsOf(const v1::JobProgress& progress) {
  std::vector<Part> parts = {{absl::StrFormat("%d %%  %s", static_cast<int>(100 * DoneShare(progress)),
                                              HowMany(progress.trials(), "trial")),
                              kIndispensable},
                             {OutcomesText(progress), 0},
                             {BestText(progress), 1}};
  if (!HasEnded(progress)) parts.push_back({"  eta " + EtaText(progress), 2});
  for (const std::string& words : {progress.message(), progress.trouble()}) {
    if (!words.empty()) parts.push_back({"  " + Printable(words), kIndispensable});
  }
  return parts;
}

std::string Join(const std::vector<Part>& parts) {
  return absl::StrJoin(parts, "", [](std::string* out, const Part& part) { out->append(part.text); });
}

}  // namespace

double DoneShare(const v1::JobProgress& progress) {
  if (progress.state() == v1::JOB_STATE_DONE) return 1;
  const double by_time =
      progress.budget_seconds() > 0 ? progress.elapsed_seconds() / progress.budget_seconds() : 0;
  const double by_trials = progress.trials_planned() > 0 ? static_cast<double>(progress.trials()) /
                                                               static_cast<double>(progress.trials_planned())
                                                         : 0;
  return std::clamp(std::max(by_time, by_trials), 0.0, 1.0);
}

std::string EtaText(const v1::JobProgress& progress) {
  if (HasEnded(progress)) return Duration(0);
  double left = HUGE_VAL;
  if (progress.budget_seconds() > 0) left = progress.budget_seconds() - progress.elapsed_seconds();
  if (progress.trials_planned() > 0 && progress.trials() > 0) {
    const double each = progress.elapsed_seconds() / static_cast<double>(progress.trials());
    left = std::min(left, each * static_cast<double>(progress.trials_planned() - progress.trials()));
  }
  return std::isinf(left) ? "?" : Duration(left);
}

ComparedSeconds ComparedSecondsOf(const v1::TaskProgress& task) {
  if (task.default_final_seconds() > 0) return {task.default_final_seconds(), task.best_seconds()};
  // A server of before says nothing of how the best was timed.
  const double alone = task.best_alone_seconds() > 0 ? task.best_alone_seconds() : task.best_seconds();
  return {task.first_seconds(), alone};
}

WeightedSeconds WeightedSecondsOf(const v1::JobProgress& progress) {
  WeightedSeconds sum;
  for (const v1::TaskProgress& task : progress.tasks()) {
    const ComparedSeconds seconds = ComparedSecondsOf(task);
    if (task.best_seconds() == 0) {
      ++sum.missing;
    } else if (seconds.by_default > 0) {
      sum.by_default += static_cast<double>(task.count()) * seconds.by_default;
      sum.best += static_cast<double>(task.count()) * seconds.best;
    }
  }
  return sum;
}

std::string ProgressLine(const v1::JobProgress& progress) { return Join(PartsOf(progress)); }

std::string ProgressBar(const v1::JobProgress& progress, int width) {
  const int filled = static_cast<int>(std::lround(kBarCells * DoneShare(progress)));
  const std::string bar =
      absl::StrCat("[", std::string(filled, '#'), std::string(kBarCells - filled, '.'), "] ");
  const auto most = static_cast<size_t>(std::max(width, 0));
  std::vector<Part> parts = PartsOf(progress);
  for (int worth = 0; worth < kIndispensable && bar.size() + Join(parts).size() > most; ++worth)
    std::erase_if(parts, [worth](const Part& part) { return part.worth == worth; });
  std::string line = bar + Join(parts);
  if (line.size() <= most) return line;
  constexpr char kMore[] = "...";
  line.resize(most > sizeof(kMore) ? most - (sizeof(kMore) - 1) : 0);
  return line.empty() ? "" : ToUtf8(line) + kMore;
}

// "gemm"; "gemm for cuda" where the job's tasks have several targets.
std::string TaskName(const v1::JobProgress& progress, const v1::TaskProgress& task) {
  const bool one_target = std::ranges::all_of(
      progress.tasks(), [&](const auto& other) { return other.target() == task.target(); });
  if (one_target) return task.workload_name();
  // A target's text is its version, its kind and what it is.
  const std::vector<std::string> words = absl::StrSplit(task.target(), absl::MaxSplits(' ', 3));
  return absl::StrCat(
      task.workload_name(), " for ",
      absl::StrJoin(words.begin() + 1, words.begin() + std::min<std::ptrdiff_t>(std::ssize(words), 3), " "));
}

// How much of the job's time each device was kept busy.
std::string DeviceLines(const v1::JobProgress& progress) {
  std::string lines;
  for (const v1::DeviceWork& work : progress.devices()) {
    if (work.device().empty() || progress.elapsed_seconds() <= 0) continue;
    absl::StrAppendFormat(&lines, "%s of %s: %s, busy %.0f %% of %.1f s\n", work.device(), work.worker(),
                          HowMany(work.trials(), "trial"),
                          100 * std::min(1.0, work.run_seconds() / progress.elapsed_seconds()),
                          progress.elapsed_seconds());
  }
  return lines;
}

// How the times were taken, where all went well; else what there is to say.
std::string Remark(const v1::TaskProgress& task) {
  if (!task.message().empty()) return task.message();
  std::vector<std::string> words;
  const bool has_default = task.first_seconds() > 0, has_final = task.finalists() > 0;
  if (has_final)
    words.push_back(
        absl::StrCat("best of ", task.finalists(),
                     task.is_earlier_round() ? " in an earlier final round" : " in the final round"));
  if (has_final && task.ties() > 0)
    words.push_back(absl::StrCat("tied with ", HowMany(task.ties(), "other")));
  if (has_final && has_default && task.default_final_seconds() == 0)
    words.push_back("the speed-up is of single timings");
  if (!has_final && task.best_seconds() > 0 && !task.reused()) words.push_back("single timings");
  if (const std::string wide = WideText(task.best_width()); !wide.empty()) words.push_back(wide);
  const bool is_of_singles = has_default && task.default_final_seconds() == 0;
  if (const std::string wide = WideText(task.first_width()); is_of_singles && !wide.empty())
    words.push_back("the default's time is " + wide);
  return absl::StrJoin(words, ", ");
}

std::string SummaryTable(const v1::JobProgress& progress) {
  std::vector<std::vector<std::string>> rows = {
      {"workload", "count", "trials", "default", "best", "speed-up", ""}};
  const auto time = [](double seconds) { return seconds > 0 ? FormatSeconds(seconds) : "-"; };
  for (const v1::TaskProgress& task : progress.tasks()) {
    const ComparedSeconds seconds = ComparedSecondsOf(task);
    const bool both = seconds.by_default > 0 && seconds.best > 0;
    const std::string count = task.count() > 0 ? absl::StrCat(task.count()) : "-";
    rows.push_back({TaskName(progress, task), count, absl::StrCat(task.trials()), time(seconds.by_default),
                    time(task.best_seconds()),
                    both ? absl::StrFormat("%.2fx", seconds.by_default / seconds.best) : "-", Remark(task)});
  }
  WeightedSeconds sum = WeightedSecondsOf(progress);
  const bool has_latency = progress.latency_seconds() > 0;
  if (has_latency) sum = {progress.default_latency_seconds(), progress.latency_seconds()};
  if (sum.best > 0 && progress.tasks_size() > 1) {
    rows.push_back({has_latency ? "model" : "weighted sum", "", absl::StrCat(progress.trials()),
                    FormatSeconds(sum.by_default), FormatSeconds(sum.best),
                    absl::StrFormat("%.2fx", sum.by_default / sum.best), ""});
  }
  return absl::StrCat(FormatTable(rows, {1, 2, 3, 4, 5}), DeviceLines(progress));
}

// The milestones that are shown: all of a few, else about as many, at even distances in the fall.
std::vector<v1::JobProgress::Milestone> ShownMilestones(const v1::JobProgress& progress) {
  constexpr int kMost = 8;
  const int count = progress.milestones_size();
  std::vector<v1::JobProgress::Milestone> shown;
  if (count == 0) return shown;
  const double first = progress.milestones(0).latency_seconds();
  const double step = (first - progress.milestones(count - 1).latency_seconds()) / kMost;
  for (const v1::JobProgress::Milestone& milestone : progress.milestones()) {
    const bool is_end = shown.empty() || &milestone == &progress.milestones(count - 1);
    if (count <= kMost || is_end || milestone.latency_seconds() <= shown.back().latency_seconds() - step)
      shown.push_back(milestone);
  }
  return shown;
}

// Two digits, and no exponent.
std::string CostText(double cost) {
  if (cost >= 9.95) return absl::StrFormat("%.0f", cost);
  return cost < 0.001 ? "0" : absl::StrFormat("%.2g", cost);
}

std::string MilestoneTable(const v1::JobProgress& progress) {
  const std::vector<v1::JobProgress::Milestone> shown = ShownMilestones(progress);
  if (shown.size() < 2) return "";
  std::vector<std::vector<std::string>> rows = {{"less", "trials", "time", "latency", "each percent cost"}};
  const auto percent = [&](const v1::JobProgress::Milestone& milestone) {
    return 100 * (1 - milestone.latency_seconds() / shown[0].latency_seconds());
  };
  for (size_t i = 0; i < shown.size(); ++i) {
    const v1::JobProgress::Milestone& now = shown[i];
    std::string cost = "-";
    if (i > 0) {
      const double percents = percent(now) - percent(shown[i - 1]);
      const double trials = static_cast<double>(now.trials() - shown[i - 1].trials());
      const double seconds = now.elapsed_seconds() - shown[i - 1].elapsed_seconds();
      cost = absl::StrCat(HowMany(CostText(trials / percents), "trial"), ", ", CostText(seconds / percents),
                          " s");
    }
    rows.push_back({absl::StrFormat("%.1f %%", percent(now)), absl::StrCat(now.trials()),
                    absl::StrFormat("%.1f s", now.elapsed_seconds()), FormatSeconds(now.latency_seconds()),
                    cost});
  }
  return absl::StrCat("\nwhat less latency cost, by single timings before the final round:\n",
                      FormatTable(rows, {0, 1, 2, 3}));
}

std::string GainText(const v1::JobProgress& progress) {
  if (!progress.has_gain_of_twice()) return "";
  return absl::StrFormat("as many trials again are expected to gain %.1f %%\n",
                         100 * progress.gain_of_twice());
}

std::string KeptResults(const v1::JobProgress& progress) {
  return absl::StrCat(HowMany(progress.trials(), "result"),
                      progress.trials() == 1 ? " is kept" : " are kept");
}

std::string JobStateName(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_WAITING: return "waiting";
    case v1::JOB_STATE_RUNNING: return "running";
    case v1::JOB_STATE_DONE: return "done";
    case v1::JOB_STATE_CANCELLED: return "cancelled";
    case v1::JOB_STATE_FAILED: return "failed";
    default: return absl::StrCat("state_", static_cast<int>(state));
  }
}

bool HasEnded(const v1::JobProgress& progress) {
  return progress.state() != v1::JOB_STATE_RUNNING && progress.state() != v1::JOB_STATE_WAITING;
}

std::string ProgressJson(const v1::JobProgress& progress) { return MessageToJson(progress).dump(); }

ProgressView::Style ProgressView::StyleFor(int fd, bool json, bool quiet) {
  return json ? Style::kJson : quiet ? Style::kQuiet : isatty(fd) != 0 ? Style::kBar : Style::kLines;
}

void ProgressView::Clear() {
  if (drawn_) *out_ << "\r\x1b[K";
  drawn_ = false;
}

void ProgressView::Update(const v1::JobProgress& progress) {
  switch (style_) {
    case Style::kQuiet: return;
    case Style::kJson:
      if (progress.revision() == last_revision_) return;
      last_revision_ = progress.revision();
      *out_ << ProgressJson(progress) << "\n";
      break;
    case Style::kBar:
      Clear();
      *out_ << ProgressBar(progress, TerminalWidth(STDOUT_FILENO) - 1);
      drawn_ = true;
      break;
    case Style::kLines:
      if (progress.elapsed_seconds() < last_line_ + kLineSeconds && progress.message() == last_message_)
        return;
      last_line_ = progress.elapsed_seconds();
      last_message_ = progress.message();
      *out_ << ProgressLine(progress) << "\n";
      break;
  }
  *out_ << std::flush;
}

void ProgressView::Finish(const v1::JobProgress& progress) {
  if (style_ == Style::kJson) {
    *out_ << ProgressJson(progress) << std::endl;
    return;
  }
  Tell(ProgressLine(progress));
  *out_ << "\n" << SummaryTable(progress) << MilestoneTable(progress) << GainText(progress) << std::flush;
}

void ProgressView::Say(const std::string& line) {
  if (style_ != Style::kQuiet) Tell(line);
}

void ProgressView::Tell(const std::string& line) {
  if (style_ == Style::kJson) return;
  Clear();
  *out_ << line << std::endl;
}

}  // namespace mycc
