// The constants of its devices that the server has asked a worker for, from the question to the answer. Those
// of a device are measured once, however often they are asked for. Thread rule: thread-compatible.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "proto/worker.pb.h"

namespace mycc {

class OwedConstants {
 public:
  // The server asks for a device's. True: they were measured before, and are to be told now.
  bool Ask(const std::string& device);
  // Whether the caller is to measure a device's: they are owed, and nobody else measures them.
  bool TakeToMeasure(const std::string& device);
  // They were measured, and are to be told. Nullopt: they cannot be, and are owed no more.
  void Measured(const std::string& device, std::optional<v1::DeviceConstants> constants);

  // Adds all that is to be told.
  void AddTo(v1::HeartbeatRequest* request) const;
  // The server has answered this request.
  void Told(const v1::HeartbeatRequest& request);

  bool empty() const { return owed_.empty(); }

 private:
  enum class State { kWanted, kBeingMeasured, kToTell };

  std::map<std::string, State> owed_;                     // by device; one without an entry owes none
  std::map<std::string, v1::DeviceConstants> constants_;  // that were measured
};

}  // namespace mycc
