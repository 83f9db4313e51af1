// The work of a GPU's runner: a process with a CUDA context of its own that prepares test cases, and verifies
// and times candidates, many one after the other. A candidate's damage to the context or the process ends
// this process alone; the worker keeps a spare one (worker/gpu_runners.h). Thread rule: single-threaded.
#pragma once

namespace mycc {

// Answers requests on descriptor 3 until the worker closes its end, or the process is spent. Then ends the
// process without giving anything back, which could wait for a kernel that runs for ever.
[[noreturn]] int GpuRunnerMain();

}  // namespace mycc
