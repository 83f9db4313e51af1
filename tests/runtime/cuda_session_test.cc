// Devices, memory, streams and graphs, and a library's arguments on a GPU, with a driver that has no device.
#include "codegen/runtime/cuda_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/runtime/cuda_device.h"
#include "codegen/runtime/cuda_target.h"
#include "tests/runtime/fake_cuda.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class CudaSessionTest : public ::testing::Test {
 protected:
  void SetUp() override { fake_cuda::Reset(); }
};

TEST_F(CudaSessionTest, DevicesAreDescribed) {
  EXPECT_EQ(CountCudaDevices().value(), 2);
  fake_cuda::DeviceAt(1).name = "NVIDIA \"H\"";
  const CudaDeviceInfo info = DescribeCudaDevice(1).value();
  EXPECT_EQ(info.ordinal, 1);
  EXPECT_EQ(info.name, "NVIDIA \"H\"");
  EXPECT_EQ(info.uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
  EXPECT_EQ(info.major, 9);
  EXPECT_EQ(info.sms, 132);
  EXPECT_EQ(info.l2_bytes, int64_t{60} << 20);
  EXPECT_EQ(info.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(info.pci_bus_id, "0000:02:00.0");
  EXPECT_EQ(info.driver_version, 13000);
  const absl::Status status = DescribeCudaDevice(2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no CUDA device 2; this process has 2, numbered from 0");
}

TEST_F(CudaSessionTest, ADeviceIsATarget) {
  EXPECT_EQ(PrintTarget(DetectCudaTarget(0).value()),
            "v1 cuda arch=sm_90a model=\"Fake GPU\" sms=132 smem=232448 l2=60M");
  CudaDeviceInfo info = DescribeCudaDevice(0).value();
  info.major = 8;
  info.minor = 9;
  info.name = "NVIDIA \"L40\"";
  const Target target = CudaTargetOf(info);
  EXPECT_EQ(target.arch, "sm_89");
  EXPECT_EQ(ParseTarget(PrintTarget(target)).value(), target);
  info.major = 10;
  info.minor = 0;
  EXPECT_EQ(CudaTargetOf(info).arch, "sm_100a");
}

TEST_F(CudaSessionTest, ASessionsContextIsCurrentUntilItEnds) {
  EXPECT_FALSE(fake_cuda::HasCurrent());
  {
    const auto session = CudaSession::Open(1).value();
    EXPECT_EQ(session->ordinal(), 1);
    EXPECT_TRUE(fake_cuda::HasCurrent());
  }
  EXPECT_FALSE(fake_cuda::HasCurrent());
}

TEST_F(CudaSessionTest, MemoryGoesThereAndBack) {
  const auto session = CudaSession::Open(0).value();
  const int64_t before = fake_cuda::AllocatedBytes();
  {
    CudaBuffer buffer = session->Allocate(5).value();
    EXPECT_EQ(buffer.bytes(), 5);
    ASSERT_TRUE(buffer.Write("fives").ok());
    char read[5];
    const CudaBuffer moved = std::move(buffer);
    ASSERT_TRUE(moved.Read(read).ok());
    EXPECT_EQ(std::string(read, 5), "fives");
    EXPECT_EQ(session->Allocate(0).value().bytes(), 0);
  }
  EXPECT_EQ(fake_cuda::AllocatedBytes(), before);
}

TEST_F(CudaSessionTest, TooMuchMemoryIsToldWithWhatIsFree) {
  const auto session = CudaSession::Open(0).value();
  const absl::Status status = session->Allocate(int64_t{2} << 30).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "cuMemAlloc of 2147483648 bytes, where 1000 of 2000 are free: out of memory "
            "(CUDA_ERROR_OUT_OF_MEMORY)");
}

TEST_F(CudaSessionTest, AnotherErrorOfAnAllocationSaysNothingOfMemory) {
  fake_cuda::Fail("cuMemAlloc_v2");
  const auto session = CudaSession::Open(0).value();
  EXPECT_EQ(session->Allocate(8).status().message(), "cuMemAlloc: unknown error (CUDA_ERROR_UNKNOWN)");
}

TEST_F(CudaSessionTest, ABufferThatMovesIntoAnotherFreesBothOnce) {
  const auto session = CudaSession::Open(0).value();
  const int64_t before = fake_cuda::AllocatedBytes();
  {
    CudaBuffer buffer;
    EXPECT_EQ(buffer.data(), nullptr);
    buffer = session->Allocate(512).value();
    buffer = session->Allocate(256).value();
    EXPECT_EQ(fake_cuda::AllocatedBytes(), before + 256) << "what it held is freed";
    EXPECT_EQ(buffer.bytes(), 256);
  }
  EXPECT_EQ(fake_cuda::AllocatedBytes(), before);
}

TEST_F(CudaSessionTest, WhatIsCapturedIsLaunchedAndTimed) {
  const auto session = CudaSession::Open(0).value();
  CudaStream stream = session->CreateStream().value();
  const CudaBuffer buffer = session->Allocate(64).value();
  const CudaEvent begin = session->CreateEvent().value(), end = session->CreateEvent().value();
  const auto enqueue = [&]() -> absl::Status {
    for (const absl::Status& status : {stream.Record(begin), stream.Fill(buffer, 7), stream.Record(end)})
      if (!status.ok()) return status;
    return absl::OkStatus();
  };
  const absl::StatusOr<CudaGraph> graph = stream.Capture(enqueue);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT(fake_cuda::TakeWork(), ElementsAre(StartsWith("memset")));
  ASSERT_TRUE(stream.Launch(*graph).ok());
  ASSERT_TRUE(stream.Synchronize().ok());
  EXPECT_THAT(fake_cuda::TakeWork(), ElementsAre(StartsWith("graph ")));
  EXPECT_DOUBLE_EQ(end.SecondsSince(begin).value(), 0.25e-3);
  EXPECT_TRUE(enqueue().ok()) << "and outside of a capture";
}

TEST_F(CudaSessionTest, AnErrorEndsTheCapture) {
  const auto session = CudaSession::Open(0).value();
  CudaStream stream = session->CreateStream().value();
  const absl::Status status = stream.Capture([] { return absl::AbortedError("no"); }).status();
  EXPECT_EQ(status.message(), "no");
  EXPECT_TRUE(stream.Synchronize().ok()) << "the stream is usable again";
}

TEST_F(CudaSessionTest, ErrorsNameTheFunction) {
  fake_cuda::Fail("cuStreamCreate");
  const auto session = CudaSession::Open(0).value();
  EXPECT_EQ(session->CreateStream().status().message(), "cuStreamCreate: unknown error (CUDA_ERROR_UNKNOWN)");
}

}  // namespace
}  // namespace mycc
