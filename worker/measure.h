// The interface between a worker's bookkeeping and its devices: a function from assignments to results.
#pragma once

#include <functional>
#include <vector>

#include "proto/worker.pb.h"

namespace mycc {

// True when the server no longer wants the trial, about which it is then asked no more. Thread-safe.
using IsRevoked = std::function<bool(const v1::LeaseId&)>;
// Called once for each assignment that was not revoked, with its candidate's result, and those of its rivals
// where it is a final round that was held. Thread-safe.
using OnMeasured = std::function<void(const v1::Assignment&, std::vector<v1::MeasureResult>)>;

// Builds and times the assignments, and returns when all are done. Whether it may be called by several
// threads at once is the device's to say.
using MeasureFunction =
    std::function<void(const std::vector<v1::Assignment>&, const IsRevoked&, const OnMeasured&)>;

}  // namespace mycc
