// Recognizes the packed buffers in device memory that the function's own FUNC_pack filled, because a call
// must not wait to read them. FUNC_pack records each buffer that it fills. The header of an unknown buffer,
// packed by another process or copied, is read once; that waits for the stream, and so is impossible during a
// capture. A record has the address and the driver's id of its allocation, so that memory that is freed and
// allocated again is read again.
#include <stdlib.h>
#include <string.h>

#include "codegen/runtime/artifact/cuda_artifact.h"

struct Note {
  struct Note* next;
  CuAddress address;
  unsigned long long allocation;
  const uint8_t* header;  // the header of an argument of this module
};
static struct Note* notes;  // under the lock; one for each address; entries stay

static int32_t AllocationOf(const struct MyccCudaScope* scope, CuAddress address,
                            unsigned long long* allocation) {
  MYCC_TRY(scope, PointerGetAttribute, allocation, kCudaPointerBufferId, address);
  return 0;
}

static struct Note* FindNote(CuAddress address) {
  struct Note* note = notes;
  while (note != NULL && note->address != address) note = note->next;
  return note;
}

static int IsNoted(CuAddress address, unsigned long long allocation, const uint8_t* header) {
  MyccLock();
  const struct Note* note = FindNote(address);
  const int noted =
      note != NULL && note->allocation == allocation && memcmp(note->header, header, kMyccHeaderBytes) == 0;
  MyccUnlock();
  return noted;
}

static int32_t Remember(CuAddress address, unsigned long long allocation, const uint8_t* header) {
  MyccLock();
  struct Note* note = FindNote(address);
  if (note == NULL && (note = malloc(sizeof *note)) != NULL) {
    note->address = address;
    note->next = notes;
    notes = note;
  }
  if (note != NULL) {
    note->allocation = allocation;
    note->header = header;
  }
  MyccUnlock();
  return note == NULL ? MyccFail("%s: no memory", mycc_cuda_module.name) : 0;
}

static int32_t ReadHeader(const struct MyccCudaScope* scope, CuStream stream, CuAddress address,
                          uint8_t* header) {
  MYCC_TRY(scope, MemcpyDtoHAsync, header, address, kMyccHeaderBytes, stream);
  MYCC_TRY(scope, StreamSynchronize, stream);
  return 0;
}

static int32_t CheckOne(const struct MyccCudaScope* scope, CuStream stream,
                        const struct MyccSignature* signature, int64_t i, CuAddress address) {
  unsigned long long allocation = 0;
  if (AllocationOf(scope, address, &allocation) != 0) return 1;
  const uint8_t* expected = signature->args[i].header;
  if (IsNoted(address, allocation, expected)) return 0;
  struct MyccCudaCapture capture;
  if (MyccCudaCaptureOf(scope, stream, &capture) != 0) return 1;
  if (capture.graph != NULL) {
    return MYCC_REFUSE(
        signature, i,
        "is not known to be packed by %s, and cannot be looked at while the stream is captured; "
        "expected a call that is not captured before",
        signature->packer);
  }
  uint8_t header[kMyccHeaderBytes];
  const int mode = MyccCudaRelax(scope->driver);
  const int32_t failed = ReadHeader(scope, stream, address, header);
  MyccCudaRestore(scope->driver, mode);
  if (failed) return 1;
  if (memcmp(header, expected, kMyccHeaderBytes) != 0) return MyccRefuseHeader(signature, i);
  return Remember(address, allocation, expected);
}

int32_t MyccCudaCheckPacked(const struct MyccCudaScope* scope, CuStream stream,
                            const struct MyccSignature* signature, void* const* data) {
  for (int64_t i = 0; i < signature->num_args; ++i) {
    const struct MyccArg* arg = &signature->args[i];
    if (arg->is_output || arg->header == NULL) continue;
    if (CheckOne(scope, stream, signature, i, (CuAddress)data[i]) != 0) return 1;
  }
  return 0;
}

int32_t MyccCudaWriteHeaders(const struct MyccCudaScope* scope, CuStream stream,
                             const struct MyccSignature* signature, void* const* data) {
  for (int64_t i = 0; i < signature->num_args; ++i) {
    const struct MyccArg* arg = &signature->args[i];
    if (!arg->is_output || arg->header == NULL) continue;
    const CuAddress address = (CuAddress)data[i];
    unsigned long long allocation = 0;
    if (AllocationOf(scope, address, &allocation) != 0) return 1;
    MYCC_TRY(scope, MemcpyHtoDAsync, address, arg->header, kMyccHeaderBytes, stream);
    if (Remember(address, allocation, arg->header) != 0) return 1;
  }
  return 0;
}

__attribute__((destructor)) static void Forget(void) {
  while (notes != NULL) {
    struct Note* note = notes;
    notes = note->next;
    free(note);
  }
}
