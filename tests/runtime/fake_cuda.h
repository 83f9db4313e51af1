// A driver without a device, in place of libcuda.so.1: memory is the host's, kernels are only noted, and what
// the real one forbids during a capture fails. Linked into a test program, it is what dlopen("libcuda.so.1")
// finds. Thread rule: one lock around everything; Reset() while nothing else runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mycc::fake_cuda {

struct Device {
  std::string name = "Fake GPU";
  int major = 9, minor = 0;
  int sms = 132;
  int shared_bytes = 232448;
  int l2_bytes = 60 << 20;
};

// Two devices as above, no current context, no memory, an empty log.
void Reset();
// To be changed by tests.
Device& DeviceAt(int ordinal);
// The function of this name ("cuMemAlloc_v2") returns an error from now on; "" for none.
void Fail(const std::string& function);

// The work that was enqueued since the last look, a line each: "launch k grid 2,1,1 block 32 shared 0 cluster
// 1 stream 7 args 0x.. 0x..", "memset 0x.. 128 stream 7".
std::vector<std::string> TakeWork();
// How often a function was called, since Reset().
int CountOf(const std::string& function);

// The context that is current on this thread: a device's primary one, or one of the caller's own.
void MakeCurrent(int ordinal, bool primary);
bool HasCurrent();

void* NewStream();
// Between these, calls on the stream go into a graph. Ends with the graph's number.
void BeginCapture(void* stream);
int EndCapture(void* stream);
// Runs what the graph's user objects ask for.
void DestroyGraph(int graph);

void* Allocate(int64_t bytes);
void Free(void* memory);
// From now on the memory is freed, and other memory allocated at its address.
void Renew(void* memory);
int64_t AllocatedBytes();

}  // namespace mycc::fake_cuda
