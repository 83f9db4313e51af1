// Describes this host's CPU for records: name, clock, kernel. The target (codegen/target) is separate. Thread
// rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <string>

#include "proto/records.pb.h"

namespace mycc {

// The host alone: its name and its operating system.
v1::DeviceInfo DescribeHost();
// Everything but the worker's name, with the clock as it is now.
v1::DeviceInfo DescribeCpu();
// The first core's clock as it is now; 0 where the system does not say.
double CpuClockMhz();
// The compilers that this program has inside.
v1::Toolchain CpuToolchain();
// Bytes that a write must cover to leave nothing of before in any cache.
int64_t FlushBytes();

}  // namespace mycc
