// The tables of a small GPU module written by hand: what the code generator writes for a real one. The last
// letter of a kernel's name is the number of its parameters.
//
//   m_scale(x: f32[2,3], w: packed u8[128]) -> (y: f32[2,3])    uses 256 bytes of workspace
//   m_scale_pack(w: f32[4]) -> (w: packed u8[128])
//   m_copy(x: f16[8,64]) -> (y: f16[8,64])                      by tensor maps, in clusters of 16 blocks
#include "codegen/runtime/artifact/cuda_artifact.h"

static const int64_t kMatrix[] = {2, 3}, kVector[] = {4}, kPacked[] = {128}, kTile[] = {8, 64};
static const uint8_t kHeader[kMyccHeaderBytes] = "header of w";

static const struct MyccArg kScaleArgs[] = {
    {"x", kDLFloat, 32, 2, kMatrix, 24, 16, 0, NULL},
    {"w", kDLUInt, 8, 1, kPacked, 128, 64, 0, kHeader},
    {"y", kDLFloat, 32, 2, kMatrix, 24, 16, 1, NULL},
};
static const struct MyccArg kPackArgs[] = {
    {"w", kDLFloat, 32, 1, kVector, 16, 16, 0, NULL},
    {"w_packed", kDLUInt, 8, 1, kPacked, 128, 64, 1, kHeader},
};
static const struct MyccArg kCopyArgs[] = {
    {"x", kDLFloat, 16, 2, kTile, 1024, 16, 0, NULL},
    {"y", kDLFloat, 16, 2, kTile, 1024, 16, 1, NULL},
};

enum { kScale3, kScaleAgain2, kPack2, kCopy0 };
static const struct MyccCudaKernel kKernels[] = {
    {"scale_3", 0, 0, 0}, {"scale_again_2", 0, 100000, 0}, {"pack_2", 0, 0, 0}, {"copy_0", 1, 1024, 1}};

static const struct MyccCudaOperand kScalePointers[] = {{0, 0}, {1, 64}, {-1, 0}};
static const struct MyccCudaOperand kAgainPointers[] = {{-1, 128}, {2, 0}};
static const struct MyccCudaOperand kPackPointers[] = {{0, 0}, {1, 64}};
static const struct MyccCudaStep kScaleSteps[] = {
    {.kernel = kScale3,
     .grid = {2, 1, 1},
     .cluster = 1,
     .threads = 32,
     .num_pointers = 3,
     .pointers = kScalePointers},
    {.kernel = kScaleAgain2,
     .grid = {4, 3, 2},
     .cluster = 1,
     .threads = 64,
     .shared_bytes = 100000,
     .waits = 1,
     .num_pointers = 2,
     .pointers = kAgainPointers},
};
static const struct MyccCudaStep kPackSteps[] = {
    {.kernel = kPack2,
     .grid = {1, 1, 1},
     .cluster = 1,
     .threads = 32,
     .num_pointers = 2,
     .pointers = kPackPointers},
};
static const uint64_t kDims[] = {64, 8}, kStrides[] = {128};
static const uint32_t kBox[] = {64, 4}, kOnes[] = {1, 1};
static const struct MyccCudaMap kMaps[] = {
    {{0, 0}, kCudaMapF16, 2, kDims, kStrides, kBox, kOnes, 3},
    {{1, 512}, kCudaMapF16, 2, kDims, kStrides, kBox, kOnes, 0},
};
static const struct MyccCudaStep kCopySteps[] = {
    {.kernel = kCopy0,
     .grid = {16, 1, 1},
     .cluster = 16,
     .threads = 128,
     .shared_bytes = 1024,
     .num_maps = 2,
     .maps = kMaps},
};

static const struct MyccCudaEntry kEntries[] = {
    {{"m_scale", "m_scale_pack", 3, kScaleArgs}, 2, kScaleSteps, 1},
    {{"m_scale_pack", NULL, 2, kPackArgs}, 1, kPackSteps, 0},
    {{"m_copy", NULL, 2, kCopyArgs}, 1, kCopySteps, 0},
};

static const struct MyccCudaImage kImages[] = {{"first"}, {"second"}};
static CuLibrary libraries[2];
static CuKernel kernels[4];
const struct MyccCudaModule mycc_cuda_module = {
    .name = "m",
    .target = "v1 cuda arch=sm_90a",
    .arch = 90,
    .arch_specific = 1,
    .most_shared_bytes = 100000,
    .workspace_bytes = 256,
    .num_images = 2,
    .images = kImages,
    .num_kernels = 4,
    .kernels = kKernels,
    .num_entries = 3,
    .entries = kEntries,
    .handles = {libraries, kernels},
};

#define EXPORT __attribute__((visibility("default")))
EXPORT int32_t m_scale(DLTensor** args, int32_t num_args, void* stream) {
  return MyccCudaCall(&kEntries[0], args, num_args, stream);
}
EXPORT int32_t m_scale_pack(DLTensor** args, int32_t num_args, void* stream) {
  return MyccCudaCall(&kEntries[1], args, num_args, stream);
}
EXPORT int32_t m_copy(DLTensor** args, int32_t num_args, void* stream) {
  return MyccCudaCall(&kEntries[2], args, num_args, stream);
}
EXPORT int32_t m_prepare(int32_t device_id) { return MyccCudaPrepare(device_id); }
EXPORT const char* m_last_error(void) { return MyccLastError(); }
