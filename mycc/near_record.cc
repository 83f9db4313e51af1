#include "mycc/near_record.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/shape_distance.h"

namespace mycc {
namespace {

constexpr size_t kMaxNearRecords = 4;

std::string Shapes(const Workload& workload) {
  return absl::StrJoin(workload.inputs, " ", [](std::string* out, const Argument& input) {
    absl::StrAppend(out, "[", absl::StrJoin(input.tensor->shape, ","), "]");
  });
}

class Collector {
 public:
  Collector(const Workload& canonical, const Target& target) : canonical_(canonical), target_(target) {}

  void Add(const StoredRecord& stored) {
    const v1::Record& record = stored.record;
    const absl::StatusOr<Target> target = ParseTarget(record.target());
    const absl::StatusOr<Workload> workload = ParseWorkload(record.workload(), "record");
    absl::StatusOr<Trace> trace = ParseTrace(record.trace());
    if (!target.ok() || !workload.ok() || !trace.ok())
      return;  // of another version; it can still be exported
    std::string missing;
    if (!(*target == target_) && !IsCompatible(*target, target_, &missing)) {
      incompatible_ = absl::StrCat("record ", stored.id, " is for `", record.target(), "`: ", missing);
      return;
    }
    const std::optional<double> distance = ShapeDistance(ExtentsOf(*workload), ExtentsOf(canonical_));
    if (!distance || (*distance == 0 && *target == target_)) return;
    std::vector<std::string> differences;
    differences.push_back(*distance == 0 ? "same workload"
                                         : absl::StrCat("same computation at ", Shapes(*workload)));
    if (!(*target == target_)) differences.push_back(absl::StrCat("tuned for `", record.target(), "`"));
    found_.push_back({stored.id, *std::move(trace), absl::StrJoin(differences, ", "), *distance});
  }

  NearRecords Take() {
    std::ranges::sort(found_, [](const NearRecord& a, const NearRecord& b) {
      return std::make_pair(a.distance, a.record) < std::make_pair(b.distance, b.record);
    });
    // A record of the same workload is found by both questions.
    found_.erase(std::unique(found_.begin(), found_.end(),
                             [](const NearRecord& a, const NearRecord& b) { return a.record == b.record; }),
                 found_.end());
    if (found_.size() > kMaxNearRecords) found_.erase(found_.begin() + kMaxNearRecords, found_.end());
    NearRecords near{std::move(found_), ""};
    if (near.records.empty()) {
      near.why_none = incompatible_.empty()
                          ? "the log has no record of this computation, at any shape or target"
                          : incompatible_;
    }
    return near;
  }

 private:
  const Workload& canonical_;
  const Target& target_;
  std::vector<NearRecord> found_;
  std::string incompatible_;
};

}  // namespace

absl::StatusOr<NearRecords> FindNearRecords(const TuningLog& log,
                                            absl::Span<const v1::TimingProtocol> protocols,
                                            const Workload& canonical, const Target& target) {
  Collector collector(canonical, target);
  for (v1::TimingProtocol protocol : protocols) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> targets,
                          log.BestOfTargets(WorkloadHash(canonical), protocol));
    MYCC_ASSIGN_OR_RETURN(const std::vector<StoredRecord> shapes,
                          log.BestOfShapes(ShapeErasedHash(canonical), protocol));
    for (const StoredRecord& record : targets) collector.Add(record);
    for (const StoredRecord& record : shapes) collector.Add(record);
  }
  return collector.Take();
}

}  // namespace mycc
