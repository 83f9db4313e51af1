#include "mycc_tune/simulate_command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/output_file.h"
#include "base/plural.h"
#include "base/status.h"
#include "command/colour.h"
#include "command/misuse.h"
#include "command/sources.h"
#include "laboratory/log_space.h"
#include "laboratory/read_space.h"
#include "laboratory/warm_start.h"
#include "mycc_tune/simulate_report.h"
#include "proto/names.h"

namespace mycc {
namespace {

bool IsTuningLogFile(const std::string& path) {
  static constexpr std::string_view kSqlite = "SQLite format 3";
  std::string begin(kSqlite.size(), 0);
  std::ifstream(path, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kSqlite;
}

absl::Status WorkloadIsMissing(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<TuningLog>> log = TuningLog::Open(path, OpenMode::kRead);
  const absl::StatusOr<std::string> workloads = log.ok() ? WorkloadsOfLog(**log) : log.status();
  return Misuse(absl::StrCat(path, ": a tuning log; expected --workload with one of its workloads",
                             workloads.ok() ? absl::StrCat(": ", *workloads) : ""));
}

// Reads the files of results, each by the options of the command.
class ResultReader {
 public:
  static absl::StatusOr<ResultReader> Make(const SimulateOptions& options) {
    ResultReader reader;
    if (!options.space.empty()) {
      MYCC_ASSIGN_OR_RETURN(reader.t1_, ReadT1File(options.space));
    }
    reader.task_.workload = options.workload;
    if (!options.target.empty()) {
      MYCC_ASSIGN_OR_RETURN(const Target target, ReadTarget(options.target));
      reader.task_.target = PrintTarget(target);
    }
    if (!options.cache.empty()) {
      MYCC_ASSIGN_OR_RETURN(reader.task_.protocol, ParseProtocolName(options.cache));
    }
    return reader;
  }

  const std::optional<T1Space>& t1() const { return t1_; }

  absl::StatusOr<RecordedSpace> Read(const std::string& path, SpaceCounts* counts) const {
    if (task_.workload.empty()) {
      if (IsTuningLogFile(path)) return WorkloadIsMissing(path);
      return ReadRecordedSpace(path, t1_ ? &*t1_ : nullptr, counts);
    }
    MYCC_ASSIGN_OR_RETURN(const std::unique_ptr<TuningLog> log, TuningLog::Open(path, OpenMode::kRead));
    return ReadLogSpace(*log, task_, counts);
  }

 private:
  std::optional<T1Space> t1_;
  LogTask task_;
};

absl::Status CheckOptions(const SimulateOptions& options) {
  if (options.results.empty() && options.space.empty())
    return Misuse(
        "no RESULT; expected files of results, or --space with a T1 file to count its configurations");
  if (!options.space.empty() && !options.workload.empty())
    return Misuse("--space describes other tuners' spaces; expected it without --workload");
  if (options.workload.empty() && !(options.target.empty() && options.cache.empty()))
    return Misuse("--target and --cache choose trials of a tuning log; expected them with --workload");
  if (options.results.empty() && !options.plot.empty())
    return Misuse("--plot draws searches, and --space alone has none; expected files of results");
  if (options.leave_one_out && options.results.size() < 2)
    return Misuse("--leave-one-device-out with one RESULT; expected results of two devices at least");
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountSpace(const T1Space& t1, const std::string& path) {
  const auto legal = CountConfigurations(t1.space);
  if (!legal.ok())
    return absl::Status(legal.status().code(), absl::StrCat(path, ": ", legal.status().message()));
  return legal;
}

void WriteCount(const T1Space& t1, int64_t legal, bool json, std::ostream& out) {
  if (json) {
    const nlohmann::ordered_json line = {
        {"space", t1.name}, {"raw_size", t1.space.raw_size()}, {"configurations", legal}};
    out << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    out << absl::StrFormat("%s: %d of %.0f configurations satisfy the constraints\n", t1.name, legal,
                           t1.space.raw_size());
  }
}

struct Read {
  std::vector<RecordedSpace> spaces, warm;
};

// The results of a file that do not count, and the part of the space that they leave out.
void WriteGaps(const std::string& path, const SpaceCounts& counts, std::optional<int64_t> legal,
               std::ostream& out) {
  if (counts.outside + counts.superseded > 0) {
    out << path << ": left out " << HowMany(counts.outside, "result") << " that the space does not have and "
        << counts.superseded << " that have a later one\n";
  }
  if (legal && counts.recorded < *legal) {
    out << path << ": " << *legal - counts.recorded << " of " << *legal
        << " configurations have no result; the search does not see them\n";
  }
}

absl::StatusOr<Read> ReadAll(const SimulateOptions& options, const ResultReader& reader,
                             std::optional<int64_t> legal, std::ostream& out) {
  Read read;
  for (const std::string& path : options.results) {
    SpaceCounts counts;
    MYCC_ASSIGN_OR_RETURN(RecordedSpace space, reader.Read(path, &counts));
    space.legal_configurations = legal;
    if (!options.json) WriteGaps(path, counts, legal, out);
    read.spaces.push_back(std::move(space));
  }
  for (const std::string& path : options.warm) {
    SpaceCounts counts;
    MYCC_ASSIGN_OR_RETURN(RecordedSpace space, reader.Read(path, &counts));
    read.warm.push_back(std::move(space));
  }
  return read;
}

// The spaces whose results a search on space `number` begins with.
std::vector<const RecordedSpace*> OthersOf(const Read& read, size_t number, bool leave_one_out) {
  std::vector<const RecordedSpace*> others;
  for (const RecordedSpace& space : read.warm) others.push_back(&space);
  for (size_t i = 0; leave_one_out && i < read.spaces.size(); ++i) {
    if (i != number && read.spaces[i].name == read.spaces[number].name) others.push_back(&read.spaces[i]);
  }
  return others;
}

absl::StatusOr<std::vector<SimulatedSpace>> Prepare(const SimulateOptions& options, const Read& read) {
  std::vector<SimulatedSpace> prepared;
  for (size_t i = 0; i < read.spaces.size(); ++i) {
    MYCC_ASSIGN_OR_RETURN(SpaceReplay replay, SpaceReplay::Make(read.spaces[i]));
    SimulatedSpace& space = prepared.emplace_back(SimulatedSpace{std::move(replay), std::nullopt});
    const std::vector<const RecordedSpace*> others = OthersOf(read, i, options.leave_one_out);
    if (others.empty()) {
      if (!options.leave_one_out) continue;
      return Misuse(absl::StrCat("--leave-one-device-out: ", options.results[i],
                                 " is the only result of space \"", read.spaces[i].name,
                                 "\"; expected one of another device as well"));
    }
    MYCC_ASSIGN_OR_RETURN(space.warm, WarmStartFrom(space.replay, others));
  }
  return prepared;
}

// Brings budgets down to the configurations that there are to evaluate: nothing can follow them.
void FitBudgets(const std::vector<SimulatedSpace>& spaces, std::vector<int>* budgets) {
  size_t most = 0;
  for (const SimulatedSpace& space : spaces)
    most = std::max(most, space.replay.space().configurations.size());
  const int largest = static_cast<int>(most);
  const std::vector<int> asked = *budgets;
  std::erase_if(*budgets, [largest](int budget) { return budget > largest; });
  if (budgets->size() == asked.size()) return;
  const std::vector<int> too_large(asked.begin() + std::ssize(*budgets), asked.end());
  if (budgets->empty() || budgets->back() < largest) budgets->push_back(largest);
  std::cerr << WarningLine("mycc-tune", absl::StrCat("the ", spaces.size() == 1 ? "" : "largest ",
                                                     "space has ", HowMany(largest, "configuration"),
                                                     ", and searches end there; left out: the budget of ",
                                                     absl::StrJoin(too_large, " and of "), " evaluations"));
}

absl::StatusOr<SimulationResult> SimulateViewed(const SimulationConfig& config,
                                                const std::vector<SimulatedSpace>& spaces,
                                                SimulationView* view) {
  if (view == nullptr) return Simulate(config, spaces);
  absl::StatusOr<SimulationResult> result =
      Simulate(config, spaces, [view](const SimulationProgress& progress) { view->Update(progress); });
  view->Clear();
  return result;
}

// Sees that the plot can be written, before the searches. Opening a FIFO twice would end its reader's input.
absl::Status CheckPlot(const std::string& path) {
  std::error_code unknown;
  if (path.empty() || std::filesystem::is_fifo(path, unknown)) return absl::OkStatus();
  return OutputFile::Open(path).status();
}

absl::Status WritePlot(const std::string& path, const std::string& plot) {
  MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path));
  file.stream() << plot;
  return file.Commit();
}

}  // namespace

absl::Status SimulateCommand(const SimulateOptions& options, std::ostream& out, SimulationView* view) {
  MYCC_RETURN_IF_ERROR(CheckOptions(options));
  SimulationConfig config = options.config;
  if (config.strategies == std::vector<std::string>{"all"}) config.strategies = SimulatedStrategies();
  if (const absl::Status fit = CheckSimulation(config); !fit.ok()) return Misuse(std::string(fit.message()));
  MYCC_RETURN_IF_ERROR(CheckPlot(options.plot));
  MYCC_ASSIGN_OR_RETURN(const ResultReader reader, ResultReader::Make(options));
  std::optional<int64_t> legal;
  if (reader.t1()) {
    MYCC_ASSIGN_OR_RETURN(legal, CountSpace(*reader.t1(), options.space));
    if (!options.json || options.results.empty()) WriteCount(*reader.t1(), *legal, options.json, out);
  }
  if (options.results.empty()) return absl::OkStatus();
  MYCC_ASSIGN_OR_RETURN(const Read read, ReadAll(options, reader, legal, out));
  MYCC_ASSIGN_OR_RETURN(const std::vector<SimulatedSpace> spaces, Prepare(options, read));
  FitBudgets(spaces, &config.budgets);
  MYCC_ASSIGN_OR_RETURN(const SimulationResult result, SimulateViewed(config, spaces, view));
  out << (options.json ? SimulationJson(config, result) + "\n" : SimulationText(config, result));
  return options.plot.empty() ? absl::OkStatus() : WritePlot(options.plot, SimulationPlot(config, result));
}

}  // namespace mycc
