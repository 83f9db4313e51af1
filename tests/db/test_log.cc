#include "tests/db/test_log.h"

#include <google/protobuf/util/message_differencer.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/sha256.h"
#include "proto/names.h"

namespace mycc {

// In memory where that can be: a commit waits for the disk, and these tests commit thousands of times.
TempDir::TempDir()
    : folder_(
          (access("/dev/shm", W_OK) == 0 ? TemporaryFolder::CreateIn("/dev/shm") : TemporaryFolder::Create())
              .value()) {}

TempDir::~TempDir() {
  // A test may have forbidden itself to write there.
  std::error_code ignored;
  std::filesystem::permissions(path(), std::filesystem::perms::owner_all, ignored);
}

std::string ReadBytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  MYCC_CHECK(in.good()) << path;
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  MYCC_CHECK(out.good()) << path;
}

std::map<std::string, std::string> Snapshot(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) files[entry.path().filename().string()] = ReadBytes(entry.path().string());
  }
  return files;
}

std::string WorkloadText(int shape) {
  return absl::StrCat("v1 workload w(t0: f32[", shape, "]) -> (t1: f32[", shape,
                      "]) {\n  t1[a0] = t0[a0] + 1.0\n}\n");
}

std::string WorkloadHashOf(int shape) { return Sha256Hex(WorkloadText(shape)); }

v1::MeasureResult MakeResult(const RecordSpec& spec) {
  const bool ok = spec.status == v1::MEASURE_STATUS_OK;
  v1::MeasureResult result;
  result.set_status(spec.status);
  v1::Timing& timing = *result.mutable_timing();
  timing.set_protocol(spec.protocol);
  timing.set_timer_version(spec.timer_version);
  timing.set_build_seconds(0.25);
  timing.set_run_seconds(0.5);
  if (ok) {
    for (double factor : {1.01, 1.0, 0.99}) timing.add_samples_seconds(factor * spec.seconds);
    timing.set_seconds(spec.seconds);
    timing.set_ci_low_seconds(0.99 * spec.seconds);
    timing.set_ci_high_seconds(1.01 * spec.seconds);
    timing.set_baseline_seconds(3e-3);
    timing.set_relative_to_baseline(spec.seconds / 3e-3);
    timing.set_rank_seconds(spec.rank_seconds);
    if (spec.rank_seconds > 0) timing.set_final_round(FinalRoundName(JobId(spec.job), 0, 5));
  }
  v1::Verification& verification = *result.mutable_verification();
  verification.set_passed(ok && spec.verified);
  verification.set_max_abs_error(1e-6);
  verification.set_max_rel_error(1.0 / 3);
  verification.add_seeds(7);
  verification.add_seeds(UINT64_MAX);
  verification.set_outputs_checked(1);
  verification.set_elements_checked(64);
  verification.set_launches(spec.launches);
  verification.set_strained_launches(spec.strained_launches);
  result.mutable_toolchain()->set_mycc("0.1.0");
  result.mutable_toolchain()->set_llvm("19.1.7");
  result.set_code_digest(Sha256Hex(absl::StrCat("code ", spec.index)));
  result.mutable_resources()->set_spill_bytes(0);
  result.mutable_resources()->set_code_bytes(4096);
  v1::DeviceInfo& device = *result.mutable_device();
  device.add_throttled_by("power cap");
  device.set_worker("worker-a");
  device.set_device("cpu");
  device.set_model("Some CPU @ 2.4 GHz");
  device.set_clock_mhz(2400);
  device.set_temperature_celsius(61.5);
  if (!ok) {
    result.set_error("line 1\nline \"2\" \xe2\x82\xac");
    result.set_reproduction("mycc-tune reproduce --trial x");
  }
  result.set_started_unix_micros(1700000000000000 + spec.index);
  result.set_finished_unix_micros(spec.finished != 0 ? spec.finished : 1700000001000000 + spec.index);
  return result;
}

v1::Record MakeRecord(const RecordSpec& spec) {
  v1::Record record;
  record.set_trial(TrialName({JobId(spec.job), 0, 0, static_cast<uint32_t>(spec.index)}));
  record.set_workload(WorkloadText(spec.shape));
  record.set_workload_hash(WorkloadHashOf(spec.shape));
  record.set_shape_erased_hash(Sha256Hex("add one, any shape"));
  record.set_workload_name("add_one");
  record.set_target(spec.target);
  record.set_trace(spec.trace.empty() ? absl::StrCat("v1\nsplit(i, ", spec.index, ")\n") : spec.trace);
  *record.mutable_result() = MakeResult(spec);
  v1::Provenance& provenance = *record.mutable_provenance();
  provenance.set_job(JobId(spec.job));
  provenance.set_index(spec.index);
  provenance.set_predicted_score(-0.125);
  provenance.set_strategy("evolutionary");
  provenance.set_seed(UINT64_MAX);
  record.set_created_unix_micros(1699999999000000);
  record.set_recorded_unix_micros(spec.recorded != 0 ? spec.recorded : 1700000002000000 + spec.index);
  record.set_attempt(1);
  return record;
}

LogKey KeyOf(const RecordSpec& spec) { return {WorkloadHashOf(spec.shape), spec.target}; }

std::string MakeLog(const TempDir& directory, const std::string& name, int count, const std::string& target) {
  const std::string path = directory / name;
  auto log = TuningLog::Open(path, OpenMode::kCreate);
  MYCC_CHECK(log.ok()) << log.status();
  std::vector<v1::Record> records;
  records.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    records.push_back(MakeRecord({.index = i, .target = target, .seconds = 1e-3 * (i + 1)}));
  MYCC_CHECK((*log)->Append(records).ok());
  MYCC_CHECK((*log)->Close().ok());
  return path;
}

std::string MakeMixedLog(const TempDir& directory, const std::string& name, const std::string& target) {
  const std::string path = MakeLog(directory, name, 3, target);
  auto log = TuningLog::Open(path, OpenMode::kWrite);
  MYCC_CHECK(log.ok()) << log.status();
  MYCC_CHECK(
      (*log)
          ->Append(
              {MakeRecord({.index = 3, .target = target, .status = v1::MEASURE_STATUS_RUN_ERROR}),
               MakeRecord({.index = 4, .shape = 65, .target = target, .protocol = v1::TIMING_PROTOCOL_COLD})})
          .ok());
  MYCC_CHECK((*log)->Close().ok());
  return path;
}

bool SameMessage(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_treat_nan_as_equal(true);
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_field_comparator(&comparator);
  return differencer.Compare(a, b);
}

}  // namespace mycc
