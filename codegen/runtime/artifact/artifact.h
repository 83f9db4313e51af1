// The runtime inside every artifact: the constant tables that describe a compiled module, and the entry
// points that check a call against them. The code generator writes the tables and a jump for each exported
// function. The runtime is linked beside them, with hidden symbols, so that two artifacts do not collide.
// Plain C over libc for baseline x86-64, because it runs before the CPU is checked. cuda_artifact.h has the
// tables for GPUs; both use the tables of arguments.
//
// Thread rule: the tables are constant; every function may be called from several threads at once.
#pragma once

#include <stdint.h>

#include "dlpack/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

// Type codes of DLPack 1.1 that 0.6 lacks.
enum { kMyccCodeBool = 6, kMyccCodeF8E4M3 = 10, kMyccCodeF8E5M2 = 12 };

enum {
  kMyccHeaderBytes = 64,      // at the start of every packed buffer
  kMyccPackedAlignment = 64,  // of packed buffers and workspaces
  kMyccPoolSlots = 16,
};

// All fields of the tables are 8 bytes wide, so that their layout needs no padding rules.

// One argument that the caller must pass. A packed buffer is u8[bytes] and begins with `header`: an input
// must have it, an output gets it. A tensor of texts has handles of 64 bits. The bits of `bounded` are axes
// of an output: the shape has the most that their extents can be, and a call writes the actual ones into that
// of the caller's tensor, whose elements then are compact in it.
struct MyccArg {
  const char* name;
  int64_t code, bits;  // DLDataType
  int64_t ndim;
  const int64_t* shape;
  int64_t bytes;
  int64_t alignment;
  int64_t is_output;
  const uint8_t* header;  // kMyccHeaderBytes, or NULL for a plain tensor
  int64_t bounded;
};

// The signature of an exported function.
struct MyccSignature {
  const char* symbol;  // for messages
  const char* packer;  // the symbol that fills this function's packed buffers, or NULL
  int64_t num_args;
  const struct MyccArg* args;
};

// Free workspaces. Each running call takes one and puts it back. All zero at first.
struct MyccPool {
  void* slots[kMyccPoolSlots];  // accessed atomically
};

// A kernel's body. Thread t of the team uses threads + t * thread_bytes. Behind the arguments, `tensors` has
// an i64 for the extent of each bounded axis, which the body writes.
typedef void MyccBody(void* const* tensors, uint8_t* shared, uint8_t* threads);

// One exported function.
struct MyccEntry {
  struct MyccSignature signature;
  MyccBody* body;
  int64_t shared_bytes, thread_bytes;
  int64_t parallel;       // the body runs a team of threads
  struct MyccPool* pool;  // NULL: each call allocates its workspace
};

// One required CPU feature: bit `bit` of register `reg` (0..3: eax..edx) of a cpuid leaf, and the register
// state that the operating system must save for it (a mask over XCR0).
struct MyccCpuNeed {
  const char* name;
  int64_t leaf, subleaf, reg, bit;
  int64_t xcr0;
};

struct MyccModule {
  const char* name;
  const char* target;  // canonical text, for messages
  int64_t num_needs;
  const struct MyccCpuNeed* needs;
  int64_t num_entries;
  const struct MyccEntry* entries;
};

// This artifact's module; written by the code generator.
extern const struct MyccModule mycc_module;

// The functions behind the exported symbols. They return 0, or 1 after setting the thread's error text.
int32_t MyccCall(const struct MyccEntry* entry, DLTensor** args, int32_t num_args);
int32_t MyccPrepare(int32_t device_id);
const char* MyccLastError(void);

// error.c: sets the thread's error text, truncated when it is too long, and returns 1.
int32_t MyccFail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// cpu.c: fails unless this machine has the features that the module needs; checked once.
int32_t MyccCheckCpu(void);

// check.c: checks all arguments except the headers of packed buffers, and stores the address of each one's
// first element in `data`, which has room for all. CPUs take tensors in host memory, GPUs tensors of one
// device.
enum MyccDevice { kMyccOnCpu, kMyccOnCuda };
int32_t MyccCheckArgs(const struct MyccSignature* signature, enum MyccDevice device, DLTensor** args,
                      int32_t num_args, void** data);

// Fails with an error about one argument: FUNC: args[2] `w`: ... .
#define MYCC_REFUSE(signature, index, format, ...)                                                         \
  MyccFail("%s: args[%d] `%s`: " format, (signature)->symbol, (int)(index), (signature)->args[index].name, \
           __VA_ARGS__)
// Fails with an error about a packed buffer with the wrong header.
int32_t MyccRefuseHeader(const struct MyccSignature* signature, int64_t index);

// workspace.c: a taken workspace belongs to one call until it is put back. Neither pointer is NULL, even when
// no memory is needed.
struct MyccWorkspace {
  uint8_t* shared;
  uint8_t* threads;
  void* block;
};
int32_t MyccTakeWorkspace(const struct MyccEntry* entry, struct MyccWorkspace* workspace);
void MyccPutWorkspace(const struct MyccEntry* entry, struct MyccWorkspace* workspace);

// profile.c: notes the time, in ns; and the seconds of each launch of the last call, between two marks each.
// Returns the number of launches.
void MyccMark(int64_t* mark);
int32_t MyccProfile(const int64_t* marks, int64_t launches, double* seconds, int32_t count);

// team.c: runs a model's body with one team of threads, which its kernels' parallel loops share.
void MyccRunInTeam(MyccBody* body, void* const* tensors, uint8_t* shared, uint8_t* threads);

#ifdef __cplusplus
}
#endif
