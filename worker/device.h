// Describes this host's CPU for records: name, clock, kernel. The target (codegen/target) is separate. Thread
// rule: functions are re-entrant.
#pragma once

#include <cstdint>
#include <string>

#include "proto/records.pb.h"

namespace mycc {

// The host alone: its name and its operating system.
v1::DeviceInfo DescribeHost();
// Everything but the worker's name, with the current clock.
v1::DeviceInfo DescribeCpu();
// The first core's clock as it is now; 0 where the system does not say.
double CpuClockMhz();
// The versions of the compilers inside this program.
v1::Toolchain CpuToolchain();
// The number of bytes to write that evicts everything else from all caches.
int64_t FlushBytes();

}  // namespace mycc
