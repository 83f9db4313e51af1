// How the driver's library is loaded, and what its results become, with a driver that has no device.
#include "codegen/runtime/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/fake_cuda.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class CudaDriverTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_cuda::Reset(); }
};

TEST_F(CudaDriverTest, AMissingLibraryIsNamed) {
  const absl::Status status = CudaDriver::Load("libno_such_cuda.so.1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("no NVIDIA driver: libno_such_cuda.so.1 was not found where the dynamic loader "
                         "looks (libno_such_cuda.so.1: cannot open"));
}

TEST_F(CudaDriverTest, ALibraryWithoutAFunctionIsNoDriver) {
  const absl::Status status = CudaDriver::Load("libc.so.6").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "libc.so.6 has no cuGetErrorName; expected the NVIDIA driver of CUDA 12.0 or a later one");
}

TEST_F(CudaDriverTest, ADriverThatDoesNotStartSaysWhy) {
  fake_cuda::Fail("cuInit");
  const absl::Status status = CudaDriver::Load("libcuda.so.1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no NVIDIA GPU that can be used: cuInit: unknown error (CUDA_ERROR_UNKNOWN)");
  fake_cuda::Reset();
  EXPECT_TRUE(CudaDriver::Load("libcuda.so.1").ok());
}

TEST_F(CudaDriverTest, ItIsInitializedOnce) {
  const CudaDriver* const driver = CudaDriver::Open().value();
  const int before = fake_cuda::CountOf("cuInit");
  EXPECT_EQ(CudaDriver::Open().value(), driver);
  EXPECT_EQ(fake_cuda::CountOf("cuInit"), before);
}

TEST_F(CudaDriverTest, AnErrorNamesTheCallAndHasTheDriversWords) {
  const CudaDriver& driver = *CudaDriver::Open().value();
  EXPECT_TRUE(driver.StatusOf("cuMemAlloc", kCudaSuccess).ok());
  const absl::Status status = driver.StatusOf("cuMemAlloc of 8 bytes", kCudaErrorOutOfMemory);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "cuMemAlloc of 8 bytes: out of memory (CUDA_ERROR_OUT_OF_MEMORY)");
}

TEST_F(CudaDriverTest, AnErrorThatTheDriverDoesNotKnowHasItsNumber) {
  const absl::Status status = CudaDriver::Open().value()->StatusOf("cuInit", 12345);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "cuInit: error 12345, which this driver has no words for");
}

TEST_F(CudaDriverTest, ACodeSaysWhoseFaultItIs) {
  const CudaDriver& driver = *CudaDriver::Open().value();
  const auto code = [&](CuResult result) { return driver.StatusOf("cuStreamSynchronize", result).code(); };
  for (const CuResult lost : {46, 100, 101, 214, 226, 802})
    EXPECT_EQ(code(lost), absl::StatusCode::kUnavailable) << lost;
  for (const CuResult broken : {700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})
    EXPECT_EQ(code(broken), absl::StatusCode::kAborted) << broken;
  EXPECT_EQ(code(1), absl::StatusCode::kInternal) << "a value that the driver refuses is our fault";
}

TEST_F(CudaDriverTest, ACallThatFailsEndsTheFunction) {
  const CudaDriver* const driver = CudaDriver::Open().value();
  int version = 0, after = 0;
  const auto call = [&]() -> absl::Status {
    MYCC_CUDA(driver, DriverGetVersion, &version);
    ++after;
    return absl::OkStatus();
  };
  EXPECT_TRUE(call().ok());
  EXPECT_EQ(version, 13000);
  fake_cuda::Fail("cuDriverGetVersion");
  EXPECT_THAT(std::string(call().message()), HasSubstr("cuDriverGetVersion: unknown error"));
  EXPECT_EQ(after, 1);
}

}  // namespace
}  // namespace mycc
