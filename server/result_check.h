// Checks that a worker can have measured a result. Pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/worker.pb.h"

namespace mycc {

// The facts about the worker and the trial when a result is reported.
struct Expectation {
  std::string worker;
  v1::DeviceOffer offer;  // of the device that leased the trial; empty: the worker has no such device
  v1::TimingProtocol protocol = v1::TIMING_PROTOCOL_UNSPECIFIED;
  double least_seconds = 0;  // ceilings.h
};

// InvalidArgument names the impossible part and what was expected.
absl::Status CheckResult(const v1::MeasureResult& result, const Expectation& expected);

}  // namespace mycc
