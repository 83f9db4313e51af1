#include "tests/perf/measured_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"
#include "base/sha256.h"
#include "proto/names.h"

namespace mycc {
namespace {

constexpr int kBuilders = 2;
constexpr size_t kBatch = 16;
// In one process with the anchor; as a final round has.
constexpr size_t kRivals = 3;

}  // namespace

MeasuredCache::MeasuredCache(const std::string& path, std::string target)
    : target_(std::move(target)), file_(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  MYCC_CHECK(file_ >= 0) << "cannot write " << path;
  ReadNewLines();
}

MeasuredCache::~MeasuredCache() { close(file_); }

void MeasuredCache::ReadNewLines() {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t bytes =
        pread(file_, buffer, sizeof(buffer), read_bytes_ + static_cast<int64_t>(text.size()));
    MYCC_CHECK(bytes >= 0) << "cannot read the measured times";
    if (bytes == 0) break;
    text.append(buffer, static_cast<size_t>(bytes));
  }
  text.resize(text.rfind('\n') + 1);  // a last line that is cut short, or being written, waits
  read_bytes_ += static_cast<int64_t>(text.size());
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, '\t');
    if (words.size() == 3 && words[2] == ".") values_.emplace(words[0], words[1]);
  }
}

void MeasuredCache::Keep(const std::string& key, const std::string& value) {
  MYCC_CHECK(flock(file_, LOCK_EX) == 0) << "cannot lock the measured times";
  ReadNewLines();
  if (!values_.contains(key)) {
    // The first line break ends a line that a crash has cut short.
    const std::string line = absl::StrCat("\n", key, "\t", value, "\t.\n");
    MYCC_CHECK(write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size()))
        << "cannot write the measured times: is the disk full?";
    ReadNewLines();
  }
  flock(file_, LOCK_UN);
  ++measured_;
}

CpuMeasurer* MeasuredCache::measurer() {
  if (measurer_ == nullptr) {
    CpuMeasurerOptions options;
    options.builders = kBuilders;
    auto made = CpuMeasurer::Create(options);
    MYCC_CHECK(made.ok()) << made.status();
    measurer_ = *std::move(made);
  }
  return measurer_.get();
}

v1::Assignment MeasuredCache::AssignmentOf(const std::string& workload, const std::string& trace) const {
  v1::Assignment assignment;
  assignment.set_workload(workload);
  assignment.set_target(target_);
  assignment.set_trace(trace);
  assignment.set_protocol(v1::TIMING_PROTOCOL_WARM);
  return assignment;
}

std::vector<TimedSchedule> MeasuredCache::Measure(const std::string& workload,
                                                  const std::vector<std::string>& traces) {
  const auto key_of = [&](const std::string& trace) {
    return Sha256Hex(absl::StrCat(target_, "\n", workload, "\n", trace));
  };
  ReadNewLines();
  std::vector<v1::Assignment> unseen;
  for (const std::string& trace : traces) {
    if (!values_.contains(key_of(trace))) unseen.push_back(AssignmentOf(workload, trace));
  }
  for (size_t begin = 0; begin < unseen.size(); begin += kBatch) {
    const auto end = unseen.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kBatch, unseen.size()));
    measurer()->Measure(
        {unseen.begin() + static_cast<std::ptrdiff_t>(begin), end}, [](const v1::LeaseId&) { return false; },
        [&](const v1::Assignment& assignment, const std::vector<v1::MeasureResult>& results) {
          const v1::MeasureResult& result = results.front();
          MYCC_CHECK(result.status() < v1::MEASURE_STATUS_DEVICE_LOST) << result.error();
          const bool is_ok = result.status() == v1::MEASURE_STATUS_OK;
          Keep(key_of(assignment.trace()),
               is_ok ? absl::StrCat(result.timing().seconds()) : std::string(StatusName(result.status())));
        });
  }
  std::vector<TimedSchedule> timed;
  for (const std::string& trace : traces) {
    const std::string& value = values_.at(key_of(trace));
    double seconds = 0;
    if (absl::SimpleAtod(value, &seconds)) {
      timed.push_back({seconds, ""});
    } else {
      timed.push_back({std::nullopt, value});
    }
  }
  return timed;
}

std::vector<std::optional<double>> MeasuredCache::Compare(const std::string& workload,
                                                          const std::string& anchor,
                                                          const std::vector<std::string>& traces) {
  const auto key_of = [&](const std::string& trace) {
    return "pair" + Sha256Hex(absl::StrCat(target_, "\n", workload, "\n", anchor, "\n", trace));
  };
  ReadNewLines();
  std::vector<std::string> unseen;
  for (const std::string& trace : traces) {
    if (trace != anchor && !values_.contains(key_of(trace))) unseen.push_back(trace);
  }
  for (size_t begin = 0; begin < unseen.size(); begin += kRivals) {
    v1::Assignment assignment = AssignmentOf(workload, anchor);
    const size_t end = std::min(begin + kRivals, unseen.size());
    for (size_t i = begin; i < end; ++i) assignment.add_rivals(unseen[i]);
    measurer()->Measure(
        {assignment}, [](const v1::LeaseId&) { return false; },
        [&](const v1::Assignment&, const std::vector<v1::MeasureResult>& results) {
          for (size_t i = begin; i < end; ++i) {
            const size_t place = i - begin + 1;
            const bool is_ok = place < results.size() && results.front().status() == v1::MEASURE_STATUS_OK &&
                               results[place].status() == v1::MEASURE_STATUS_OK;
            Keep(key_of(unseen[i]),
                 is_ok ? absl::StrCat(results[place].timing().seconds() / results.front().timing().seconds())
                       : "failed");
          }
        });
  }
  std::vector<std::optional<double>> ratios;
  for (const std::string& trace : traces) {
    double ratio = 1;
    const bool is_known = trace == anchor || absl::SimpleAtod(values_.at(key_of(trace)), &ratio);
    ratios.push_back(is_known ? std::optional<double>(ratio) : std::nullopt);
  }
  return ratios;
}

}  // namespace mycc
