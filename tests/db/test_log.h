// Parts that the tests of db share: a folder of their own, records to log, and files compared byte by byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/temporary_folder.h"
#include "db/tuning_log.h"
#include "proto/records.pb.h"

namespace mycc {

// A new empty folder, removed with what is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return folder_.path(); }
  std::string operator/(const std::string& name) const { return path() + "/" + name; }

 private:
  const TemporaryFolder folder_;
};

std::string ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);
// Every file of a folder, by name, with its bytes.
std::map<std::string, std::string> Snapshot(const std::string& directory);

// A canonical text that stands for a workload, and its hashes.
std::string WorkloadText(int shape);
std::string WorkloadHashOf(int shape);
inline constexpr char kTarget[] = "v1 cpu mcpu=haswell l1d=32K threads=2";
// A target that this build reads; db keeps any text.
inline constexpr char kWholeTarget[] = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
inline constexpr char kOtherTarget[] = "v1 cpu mcpu=sapphirerapids threads=2";

struct RecordSpec {
  int index = 0;  // in the job: names the trial and its trace
  int shape = 64;
  std::string target = kTarget;
  v1::MeasureStatus status = v1::MEASURE_STATUS_OK;
  double seconds = 1e-3;
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_WARM;
  uint32_t timer_version = 1;
  bool verified = true;
  int64_t recorded = 0;  // the log's stamp; 0: by index
  int64_t finished = 0;  // by the worker's clock; 0: by index
  std::string trace;     // empty: by index
  uint64_t job = 1;
  double rank_seconds = 0;  // of a final round
  uint32_t launches = 0, strained_launches = 0;
};
// With every field set.
v1::Record MakeRecord(const RecordSpec& spec);
v1::MeasureResult MakeResult(const RecordSpec& spec);
LogKey KeyOf(const RecordSpec& spec);

// A new log in the folder with `count` records of increasing time, closed.
std::string MakeLog(const TempDir& directory, const std::string& name, int count,
                    const std::string& target = kTarget);
// Three such records, a failure, and a record of another shape under the other protocol; closed.
std::string MakeMixedLog(const TempDir& directory, const std::string& name,
                         const std::string& target = kTarget);

// Equal field by field; NaN equals NaN.
bool SameMessage(const google::protobuf::Message& a, const google::protobuf::Message& b);

}  // namespace mycc
