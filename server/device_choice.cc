#include "server/device_choice.h"

#include <algorithm>

#include "proto/device_constants.h"

namespace mycc {
namespace {

std::string WithoutThreads(Target target) {
  target.threads = 1;
  target.direct_sums = false;
  return PrintTarget(target);
}

double PeakOf(const v1::DeviceConstants& constants) {
  return std::max(ConstantOf(constants, kPeakOfThread), ConstantOf(constants, kPeakOfAll));
}

}  // namespace

DeviceChoice::DeviceChoice(const std::vector<StoredConstants>& known) {
  for (const StoredConstants& one : known) {
    const absl::StatusOr<Target> target = ParseTarget(one.target);
    if (!target.ok() || one.constants.version() != kConstantsVersion) continue;
    fitting_[WithoutThreads(*target)].push_back({target->threads, one.constants});
  }
  for (auto& [target, devices] : fitting_) {
    std::ranges::stable_sort(devices, [](const Fitting& a, const Fitting& b) {
      return PeakOf(a.constants) < PeakOf(b.constants);
    });
  }
}

const v1::DeviceConstants* DeviceChoice::For(const Target& target) const {
  const auto found = fitting_.find(WithoutThreads(target));
  if (found == fitting_.end()) return nullptr;
  std::vector<const v1::DeviceConstants*> all, alike;
  for (const Fitting& device : found->second) {
    all.push_back(&device.constants);
    if (device.threads == target.threads) alike.push_back(&device.constants);
  }
  const std::vector<const v1::DeviceConstants*>& of = alike.empty() ? all : alike;
  return of[(of.size() - 1) / 2];
}

}  // namespace mycc
