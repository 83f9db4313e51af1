// Our declarations of the driver's API, against the header that CUDA has of it: checked where the header is,
// when this is compiled.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "codegen/runtime/artifact/cuda_driver_types.h"

namespace mycc {
namespace {

constexpr bool Same(int64_t ours, int64_t theirs) { return ours == theirs; }

static_assert(Same(kCudaErrorOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(Same(kCudaErrorNotReady, CUDA_ERROR_NOT_READY));
static_assert(Same(kCudaDeviceMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(Same(kCudaDeviceL2Bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(Same(kCudaDeviceMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(Same(kCudaDeviceMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(Same(kCudaDeviceMaxSharedBytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(Same(kCudaFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(Same(kCudaFunctionAnyClusterSize, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED));
static_assert(Same(kCudaPointerBufferId, CU_POINTER_ATTRIBUTE_BUFFER_ID));
static_assert(Same(kCudaCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(Same(kCudaCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(Same(kCudaLaunchCluster, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION));
static_assert(Same(kCudaStreamNonBlocking, CU_STREAM_NON_BLOCKING));
static_assert(Same(kCudaEventRecordExternal, CU_EVENT_RECORD_EXTERNAL));
static_assert(Same(kCudaUserObjectNoSync, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
static_assert(Same(kCudaGraphUserObjectMove, CU_GRAPH_USER_OBJECT_MOVE));
static_assert(Same(kCudaMapU8, CU_TENSOR_MAP_DATA_TYPE_UINT8));
static_assert(Same(kCudaMapI32, CU_TENSOR_MAP_DATA_TYPE_INT32));
static_assert(Same(kCudaMapI64, CU_TENSOR_MAP_DATA_TYPE_INT64));
static_assert(Same(kCudaMapF16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
static_assert(Same(kCudaMapF32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32));
static_assert(Same(kCudaMapF64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64));
static_assert(Same(kCudaMapBF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16));
static_assert(Same(kCudaMapPromote128, CU_TENSOR_MAP_L2_PROMOTION_L2_128B));
static_assert(Same(kCudaCaptureNone, CU_STREAM_CAPTURE_STATUS_NONE));

static_assert(sizeof(CuLaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(CuLaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(CuLaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(CuLaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(CuLaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(CuLaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(CuLaunchConfig, num_attributes) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(CuTensorMapBits) == sizeof(CUtensorMap) &&
              alignof(CuTensorMapBits) == alignof(CUtensorMap));

// Structures that pass through memory that the driver fills or reads.
TEST(CudaAbi, AClusterIsWhereTheDriverLooksForIt) {
  CuLaunchAttribute ours = {};
  ours.id = kCudaLaunchCluster;
  ours.value.cluster[0] = 4;
  CUlaunchAttribute theirs;
  static_assert(sizeof(theirs) == sizeof(ours));
  std::memcpy(&theirs, &ours, sizeof(theirs));
  EXPECT_EQ(theirs.id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(theirs.value.clusterDim.x, 4u);
}

TEST(CudaAbi, OverlapIsWhereTheDriverLooksForIt) {
  CuLaunchAttribute ours = {};
  ours.id = kCudaLaunchOverlap;
  ours.value.overlap = 1;
  CUlaunchAttribute theirs;
  std::memcpy(&theirs, &ours, sizeof(theirs));
  EXPECT_EQ(theirs.id, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  EXPECT_EQ(theirs.value.programmaticStreamSerializationAllowed, 1);
}

}  // namespace
}  // namespace mycc
