// The lines of `mycc-tune jobs --json` and `devices --json`: every key on every line, so that scripts need
// not ask which are there. docs/commands.md lists them. Pure functions.
#pragma once

#include <string>

#include "proto/tuning.pb.h"

namespace mycc {

// The fields of JobProgress without its tasks, and of DeviceStatus, by their names. A value that is not
// known, or not set, is null.
std::string JobLine(const v1::JobProgress& job);
std::string DeviceLine(const v1::DeviceStatus& device);

}  // namespace mycc
