#include "worker/gpu_cases.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/workload/parse.h"

namespace mycc {

absl::StatusOr<GpuTest> GpuCases::Make(const std::string& workload_text,
                                       const v1::GpuCase& description) const {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(workload_text, "workload"));
  GpuTest test;
  MYCC_ASSIGN_OR_RETURN(test.made, GpuCase::Make(device_, workload, description));
  MYCC_ASSIGN_OR_RETURN(test.repetition, GpuRepetition::Make(device_, test.made.get()));
  MYCC_ASSIGN_OR_RETURN(test.special, GpuSpecial::Make(device_, test.made.get(), description));
  return test;
}

absl::StatusOr<GpuTest*> GpuCases::Find(const std::string& workload_text, const v1::GpuCase& description) {
  const std::string name = absl::StrCat(workload_text, "\n", description.SerializeAsString());
  const auto found = std::ranges::find_if(kept_, [&name](const Kept& kept) { return kept.name == name; });
  if (found != kept_.end()) {
    std::rotate(kept_.begin(), found, found + 1);
    return &kept_.front().test;
  }
  absl::StatusOr<GpuTest> made = Make(workload_text, description);
  if (absl::IsResourceExhausted(made.status()) && !kept_.empty()) {
    kept_.clear();
    made = Make(workload_text, description);
  }
  MYCC_RETURN_IF_ERROR(made.status());
  kept_.push_front({name, *std::move(made)});
  while (kept_.size() > 1 && bytes() > most_bytes_) kept_.pop_back();
  return &kept_.front().test;
}

void GpuCases::MendLast() {
  if (kept_.empty()) return;
  const absl::StatusOr<bool> whole = kept_.front().test.made->Restore();
  if (!whole.ok() || !*whole) kept_.pop_front();
}

int64_t GpuCases::bytes() const {
  int64_t bytes = 0;
  for (const Kept& kept : kept_) bytes += kept.test.bytes();
  return bytes;
}

}  // namespace mycc
