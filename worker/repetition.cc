#include "worker/repetition.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

Difference Compare(const std::vector<uint8_t>& first, const uint8_t* now, DType dtype) {
  Difference difference;
  if (std::memcmp(first.data(), now, first.size()) == 0) return difference;
  const size_t width = static_cast<size_t>(DTypeBytes(dtype));
  for (size_t i = first.size() / width; i-- > 0;) {
    if (std::memcmp(&first[i * width], now + i * width, width) == 0) continue;
    ++difference.elements;
    difference.first = i;
  }
  return difference;
}

}  // namespace

absl::Status SameBits(const Difference& difference, uint32_t launch, const Buffer& output) {
  if (difference.elements == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("launch ", launch, " left other bits than launch 1 in ",
                                          difference.elements, " of ", output->num_elements(),
                                          " elements of output ", output->name,
                                          ", the first of them element ", difference.first));
}

int LaunchesWithin(double budget_seconds, double seconds, int fewest, int most) {
  const double fit = seconds > 0 ? budget_seconds / seconds : most;
  return static_cast<int>(std::clamp<double>(fit, fewest, most));
}

Repetition::Repetition(std::vector<Output> outputs) : outputs_(std::move(outputs)) {
  for (const Output& output : outputs_)
    first_.emplace_back(output.data, output.data + output.tensor->bytes());
}

absl::Status Repetition::Check() {
  ++launches_;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto& [tensor, data] = outputs_[i];
    MYCC_RETURN_IF_ERROR(SameBits(Compare(first_[i], data, tensor->dtype), launches_, tensor));
  }
  return absl::OkStatus();
}

}  // namespace mycc
