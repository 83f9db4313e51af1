#include "worker/owed_constants.h"

#include <utility>

namespace mycc {

bool OwedConstants::Ask(const std::string& device) {
  const bool is_known = constants_.contains(device);
  if (is_known) {
    owed_[device] = State::kToTell;
  } else {
    owed_.try_emplace(device, State::kWanted);
  }
  return is_known;
}

bool OwedConstants::TakeToMeasure(const std::string& device) {
  const auto owed = owed_.find(device);
  if (owed == owed_.end() || owed->second != State::kWanted) return false;
  owed->second = State::kBeingMeasured;
  return true;
}

void OwedConstants::Measured(const std::string& device, std::optional<v1::DeviceConstants> constants) {
  if (constants) {
    constants_[device] = *std::move(constants);
    owed_[device] = State::kToTell;
  } else {
    owed_.erase(device);
  }
}

void OwedConstants::AddTo(v1::HeartbeatRequest* request) const {
  for (const auto& [device, state] : owed_) {
    if (state != State::kToTell) continue;
    v1::MeasuredConstants& told = *request->add_constants();
    told.set_device(device);
    *told.mutable_constants() = constants_.at(device);
  }
}

void OwedConstants::Told(const v1::HeartbeatRequest& request) {
  for (const v1::MeasuredConstants& told : request.constants()) owed_.erase(told.device());
}

}  // namespace mycc
