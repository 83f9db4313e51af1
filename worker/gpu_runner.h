// The process that verifies and times candidates on a GPU, one after the other, in a CUDA context of its own.
// A candidate that damages the context or the process costs this process alone; the worker keeps a spare one
// (worker/gpu_runners.h). Thread rule: single-threaded.
#pragma once

namespace mycc {

// Answers requests on descriptor 3 until the worker closes its end, or the process is spent. Then ends the
// process without freeing anything, since that could wait for a kernel that never ends.
[[noreturn]] int GpuRunnerMain();

}  // namespace mycc
