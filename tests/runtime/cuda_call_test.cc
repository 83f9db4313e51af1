// Calls of an artifact for GPUs, with a driver that only notes what it is asked for.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/temporary_folder.h"
#include "dlpack/dlpack.h"
#include "tests/runtime/cuda_call_fixture.h"
#include "tests/runtime/fake_cuda.h"

namespace mycc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(CudaCallTest, StepsAreEnqueuedInOrderOnTheCallersStream) {
  ASSERT_EQ(Prepare(), 0) << Error();
  ASSERT_EQ(Pack(stream_), 0) << Error();
  EXPECT_THAT(
      fake_cuda::TakeWork(),
      ElementsAre("attribute 8 of scale_again_2 = 100000", "attribute 8 of copy_0 = 1024",
                  "attribute 14 of copy_0 = 1",
                  absl::StrCat("launch pack_2 grid 1,1,1 block 32 shared 0 cluster 1 stream ", Hex(stream_),
                               " args ", Hex(w_.data()), " ", Hex(packed_.data() + 64))));
  EXPECT_EQ(std::string(packed_.data()), "header of w");
  ASSERT_EQ(Scale(stream_), 0) << Error();
  const std::vector<std::string> work = fake_cuda::TakeWork();
  ASSERT_EQ(work.size(), 2u);
  EXPECT_THAT(work[0], StartsWith(absl::StrCat(
                           "launch scale_3 grid 2,1,1 block 32 shared 0 cluster 1 stream ", Hex(stream_),
                           " args ", Hex(x_.data()), " ", Hex(packed_.data() + 64), " 0x")));
  EXPECT_THAT(
      work[1],
      AllOf(StartsWith("launch scale_again_2 grid 4,3,2 block 64 shared 100000 cluster 1 overlapping"),
            HasSubstr(Hex(y_.data()))));
}

TEST_F(CudaCallTest, MapsAreOfTheTensorsOfTheCall) {
  a_.view.byte_offset = 0;
  ASSERT_EQ(Call("m_copy", {&a_.view, &b_.view}, stream_), 0) << Error();
  std::vector<std::string> work = fake_cuda::TakeWork();
  work.erase(work.begin(), work.end() - 3);
  EXPECT_THAT(
      work,
      ElementsAre(
          absl::StrCat("map of ", Hex(a_.data()), " type 6 swizzle 3 dims 64/64 8/4 stride 128"),
          absl::StrCat("map of ", Hex(b_.data() + 512), " type 6 swizzle 0 dims 64/64 8/4 stride 128"),
          absl::StrCat("launch copy_0 grid 16,1,1 block 128 shared 1024 cluster 16 stream ", Hex(stream_),
                       " args map of ", Hex(a_.data()), " map of ", Hex(b_.data() + 512))));
}

TEST_F(CudaCallTest, MapsAreKeptForCallsWithTheSameTensors) {
  constexpr int kTensors = 8, kRounds = 4;
  std::vector<std::unique_ptr<Tensor>> inputs;
  for (int i = 0; i < kTensors; ++i) inputs.push_back(std::make_unique<Tensor>(a_.shape(), kF16, 1024));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& x : inputs) {
      ASSERT_EQ(Call("m_copy", {&x->view, &b_.view}, stream_), 0) << Error();
      EXPECT_THAT(fake_cuda::TakeWork().back(),
                  HasSubstr(absl::StrCat("args map of ", Hex(x->data()), " map of ", Hex(b_.data() + 512))));
    }
  }
  EXPECT_GE(fake_cuda::CountOf("cuTensorMapEncodeTiled"), kTensors + 1);
  // Two maps that come to lie in one slot take turns.
  EXPECT_LT(fake_cuda::CountOf("cuTensorMapEncodeTiled"), kRounds * kTensors);
}

TEST_F(CudaCallTest, AMapThatIsRefusedIsNotKept) {
  fake_cuda::Fail("cuTensorMapEncodeTiled");
  EXPECT_NE(Call("m_copy", {&a_.view, &b_.view}, stream_), 0);
  EXPECT_EQ(Error(), "m: cuTensorMapEncodeTiled: unknown error (CUDA_ERROR_UNKNOWN)");
  fake_cuda::Fail("");
  ASSERT_EQ(Call("m_copy", {&a_.view, &b_.view}, stream_), 0) << Error();
  EXPECT_THAT(fake_cuda::TakeWork().back(), HasSubstr(absl::StrCat("map of ", Hex(a_.data()))));
}

TEST_F(CudaCallTest, ACallWorksInTheCallersContextWhereItIsOfTheDevice) {
  fake_cuda::MakeCurrent(0, /*primary=*/false);
  ASSERT_EQ(Pack(stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuDevicePrimaryCtxRetain"), 0);
  EXPECT_EQ(fake_cuda::CountOf("cuCtxPushCurrent_v2"), 0);
}

TEST_F(CudaCallTest, ElseInThePrimaryContextForAsLongAsItTakes) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  ASSERT_EQ(Scale(stream_), 0) << Error();
  EXPECT_FALSE(fake_cuda::HasCurrent());
  fake_cuda::MakeCurrent(1, /*primary=*/true);
  ASSERT_EQ(Scale(stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(fake_cuda::CountOf("cuCtxPushCurrent_v2"), fake_cuda::CountOf("cuCtxPopCurrent_v2"));
}

TEST_F(CudaCallTest, CodeIsLoadedOnceAndForEachContextMadeReady) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Pack(stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuLibraryLoadData"), 2);
  EXPECT_EQ(fake_cuda::CountOf("cuKernelGetFunction"), 4);
  fake_cuda::MakeCurrent(0, /*primary=*/false);
  ASSERT_EQ(Pack(stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuLibraryLoadData"), 2);
  EXPECT_EQ(fake_cuda::CountOf("cuKernelGetFunction"), 8);
}

TEST_F(CudaCallTest, AWorkspaceForEachStream) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  void* other = fake_cuda::NewStream();
  const std::string mine = WorkspaceOf(stream_), others = WorkspaceOf(other);
  EXPECT_NE(mine, others);
  EXPECT_EQ(WorkspaceOf(stream_), mine);
  EXPECT_EQ(WorkspaceOf(other), others);
  EXPECT_EQ(fake_cuda::CountOf("cuMemAlloc_v2"), 2);
}

TEST_F(CudaCallTest, ThreadsWithAStreamOfTheirOwnHaveWorkspacesOfTheirOwn) {
  void* const per_thread = reinterpret_cast<void*>(2);
  ASSERT_EQ(Pack(per_thread), 0) << Error();
  const std::string mine = WorkspaceOf(per_thread);
  std::string theirs;
  std::thread([&] { theirs = WorkspaceOf(per_thread); }).join();
  EXPECT_NE(mine, theirs);
  EXPECT_EQ(WorkspaceOf(per_thread), mine);
}

TEST_F(CudaCallTest, AfterPrepareACaptureNeitherAllocatesNorWaits) {
  ASSERT_EQ(Prepare(), 0) << Error();
  ASSERT_EQ(Pack(stream_), 0) << Error();
  const int allocations = fake_cuda::CountOf("cuMemAlloc_v2");
  fake_cuda::BeginCapture(stream_);
  EXPECT_EQ(Scale(stream_), 0) << Error();
  fake_cuda::EndCapture(stream_);
  EXPECT_EQ(fake_cuda::CountOf("cuMemAlloc_v2"), allocations);
  EXPECT_EQ(fake_cuda::CountOf("cuStreamSynchronize"), 0);
}

TEST_F(CudaCallTest, APrepareBeforeEachCaptureKeepsThemAllFromAllocating) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  ASSERT_EQ(Scale(stream_), 0) << Error();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Prepare(), 0) << Error();
    const int allocations = fake_cuda::CountOf("cuMemAlloc_v2");
    fake_cuda::BeginCapture(stream_);
    EXPECT_EQ(Scale(stream_), 0) << Error();
    fake_cuda::EndCapture(stream_);
    EXPECT_EQ(fake_cuda::CountOf("cuMemAlloc_v2"), allocations);
  }
}

TEST_F(CudaCallTest, WithoutPrepareACaptureIsRefused) {
  fake_cuda::BeginCapture(stream_);
  EXPECT_NE(Call("m_copy", {&a_.view, &b_.view}, stream_), 0);
  EXPECT_EQ(Error(),
            "m: the stream is being captured and the code is not loaded; expected m_prepare(0) before");
  fake_cuda::EndCapture(stream_);
  EXPECT_EQ(fake_cuda::CountOf("cuLibraryLoadData"), 0);
}

// A graph may be launched beside any call, and beside any other graph.
TEST_F(CudaCallTest, AGraphKeepsItsWorkspaceUntilItIsGone) {
  ASSERT_EQ(Prepare(), 0) << Error();
  ASSERT_EQ(Pack(stream_), 0) << Error();
  const std::string eager = WorkspaceOf(stream_);
  fake_cuda::BeginCapture(stream_);
  const std::string captured = WorkspaceOf(stream_);
  EXPECT_EQ(WorkspaceOf(stream_), captured);
  const int first = fake_cuda::EndCapture(stream_);
  fake_cuda::BeginCapture(stream_);
  const std::string captured_later = WorkspaceOf(stream_);
  const int second = fake_cuda::EndCapture(stream_);
  EXPECT_NE(captured, eager);
  EXPECT_NE(captured_later, eager);
  EXPECT_NE(captured_later, captured);
  EXPECT_EQ(WorkspaceOf(stream_), eager);

  fake_cuda::DestroyGraph(first);
  void* other = fake_cuda::NewStream();
  EXPECT_EQ(WorkspaceOf(other), captured);
  fake_cuda::DestroyGraph(second);
}

TEST_F(CudaCallTest, PackedBuffersAreKnownWithoutWaiting) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  ASSERT_EQ(Scale(stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuStreamSynchronize"), 0);
}

TEST_F(CudaCallTest, ACopyOfAPackedBufferIsLookedAtOnce) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  const Tensor copy({128}, kU8, 128);
  std::copy_n(packed_.data(), 128, copy.data());
  DLTensor view = copy.view;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Call("m_scale", {&x_.view, &view, &y_.view}, stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuStreamSynchronize"), 1);
}

TEST_F(CudaCallTest, ForeignPackedBuffersAreRefused) {
  std::fill_n(packed_.data(), 128, 'x');
  EXPECT_NE(Scale(stream_), 0);
  EXPECT_EQ(
      Error(),
      "m_scale: args[1] `w`: was not packed for this build of this argument; expected a buffer filled by "
      "m_scale_pack");
  ASSERT_EQ(Pack(stream_), 0) << Error();
  EXPECT_EQ(Scale(stream_), 0) << Error();
}

TEST_F(CudaCallTest, InACaptureAnUnknownPackedBufferIsRefused) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  const Tensor copy({128}, kU8, 128);
  std::copy_n(packed_.data(), 128, copy.data());
  DLTensor view = copy.view;
  fake_cuda::BeginCapture(stream_);
  EXPECT_NE(Call("m_scale", {&x_.view, &view, &y_.view}, stream_), 0);
  EXPECT_THAT(Error(), HasSubstr("args[1] `w`: is not known to be packed by m_scale_pack"));
  fake_cuda::EndCapture(stream_);
}

// Memory that was freed and allocated anew may lie where a packed buffer was.
TEST_F(CudaCallTest, AnAddressIsNotEnoughToKnowAPackedBuffer) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  std::fill_n(packed_.data(), 128, 'x');
  fake_cuda::Renew(packed_.data());
  EXPECT_NE(Scale(stream_), 0);
  EXPECT_THAT(Error(), HasSubstr("was not packed for this build"));
}

TEST_F(CudaCallTest, ArgumentsAreCheckedBeforeAnythingIsEnqueued) {
  ASSERT_EQ(Prepare(), 0) << Error();
  ASSERT_EQ(Pack(stream_), 0) << Error();
  fake_cuda::TakeWork();
  const auto refused = [&](std::vector<DLTensor*> args) {
    EXPECT_NE(Call("m_scale", std::move(args), stream_), 0);
    EXPECT_THAT(fake_cuda::TakeWork(), IsEmpty());
    return Error();
  };
  DLTensor bad = x_.view;
  bad.device = {kDLCPU, 0};
  EXPECT_EQ(refused({&bad, &packed_.view, &y_.view}),
            "m_scale: args[0] `x`: is on device type 1 (cpu), expected 2 (cuda)");
  bad.device = {kDLCUDA, 1};
  EXPECT_EQ(refused({&x_.view, &packed_.view, &bad}),
            "m_scale: args[2] `y`: is on device 1, expected 0, where args[0] is");
  bad = x_.view;
  bad.byte_offset = 8;
  EXPECT_THAT(refused({&bad, &packed_.view, &y_.view}), HasSubstr("is not aligned to 16 bytes"));
  EXPECT_THAT(refused({&y_.view, &packed_.view, &y_.view}),
              HasSubstr("args[2] `y`: is an output and overlaps args[0] `x`"));
  EXPECT_THAT(refused({&x_.view, &w_.view, &y_.view}),
              HasSubstr("expected u8, the packed buffer that m_scale_pack fills"));
  EXPECT_THAT(refused({&x_.view}), HasSubstr("1 arguments, expected 3"));
}

TEST_F(CudaCallTest, ManagedMemoryIsTaken) {
  a_.view.device.device_type = kDLCUDAManaged;
  EXPECT_EQ(Call("m_copy", {&a_.view, &b_.view}, stream_), 0) << Error();
}

TEST_F(CudaCallTest, DevicesThatTheCodeDoesNotRunOnAreNamed) {
  fake_cuda::DeviceAt(0).name = "NVIDIA A100";
  fake_cuda::DeviceAt(0).major = 8;
  EXPECT_NE(Prepare(), 0);
  EXPECT_EQ(Error(), "m: compiled for `v1 cuda arch=sm_90a`, but device 0 (NVIDIA A100) is sm_80");
  fake_cuda::DeviceAt(1).shared_bytes = 50000;
  EXPECT_NE(Prepare(1), 0);
  EXPECT_THAT(
      Error(),
      HasSubstr("needs 100000 bytes of shared memory for a block, but device 1 (Fake GPU) has 50000"));
  EXPECT_NE(Prepare(2), 0);
  EXPECT_EQ(Error(), "m: device 2; this process has 2 CUDA devices, numbered from 0");
}

TEST_F(CudaCallTest, TheDriversErrorsAreToldInItsWords) {
  fake_cuda::Fail("cuLaunchKernelEx");
  EXPECT_NE(Call("m_copy", {&a_.view, &b_.view}, stream_), 0);
  EXPECT_EQ(Error(), "m: cuLaunchKernelEx: unknown error (CUDA_ERROR_UNKNOWN)");
  EXPECT_FALSE(fake_cuda::HasCurrent());
  fake_cuda::Fail("cuMemAlloc_v2");
  ASSERT_EQ(Pack(stream_), 0) << Error();
  EXPECT_NE(Scale(stream_), 0);
  EXPECT_THAT(Error(), HasSubstr("cuMemAlloc of a workspace: unknown error"));
  fake_cuda::Fail("");
  EXPECT_EQ(Scale(stream_), 0) << Error();
}

TEST_F(CudaCallTest, FailedLoadsAreTriedAgain) {
  fake_cuda::Fail("cuLibraryGetKernel");
  EXPECT_NE(Prepare(), 0);
  EXPECT_THAT(Error(), HasSubstr("cuLibraryGetKernel"));
  fake_cuda::Fail("");
  EXPECT_EQ(Prepare(), 0) << Error();
  EXPECT_EQ(fake_cuda::CountOf("cuLibraryLoadData"), 2);
}

TEST_F(CudaCallTest, ThreadsMayCallAtOnce) {
  ASSERT_EQ(Pack(stream_), 0) << Error();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      void* stream = fake_cuda::NewStream();
      const Tensor y({2, 3}, kF32, 24);
      DLTensor view = y.view;
      for (int i = 0; i < 100; ++i)
        EXPECT_EQ(Call("m_scale", {&x_.view, &packed_.view, &view}, stream), 0) << Error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_cuda::CountOf("cuMemAlloc_v2"), 8);
  EXPECT_EQ(fake_cuda::CountOf("cuLibraryLoadData"), 2);
}

TEST_F(CudaCallTest, ThreadsMayCallWithMapsAtOnce) {
  ASSERT_EQ(Prepare(), 0) << Error();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const Tensor own({8, 64}, kF16, 1024);
      DLTensor views[] = {a_.view, own.view, b_.view};
      for (int i = 0; i < 100; ++i)
        EXPECT_EQ(Call("m_copy", {&views[i % 2], &views[2]}, stream_), 0) << Error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& line : fake_cuda::TakeWork()) {
    if (line.rfind("launch copy", 0) != 0) continue;
    EXPECT_THAT(line, HasSubstr(absl::StrCat(" map of ", Hex(b_.data() + 512))));
  }
}

TEST_F(CudaCallTest, UnloadingFreesTheWorkspacesOfTheCurrentContext) {
  fake_cuda::MakeCurrent(0, /*primary=*/true);
  const int64_t before = fake_cuda::AllocatedBytes();
  ASSERT_EQ(Pack(stream_), 0) << Error();
  ASSERT_EQ(Scale(stream_), 0) << Error();
  EXPECT_EQ(fake_cuda::AllocatedBytes(), before + 256);
  dlclose(library_);
  EXPECT_EQ(fake_cuda::AllocatedBytes(), before);
  EXPECT_EQ(fake_cuda::CountOf("cuLibraryUnload"), 2);
  library_ = dlopen(nullptr, RTLD_NOW);  // for TearDown
}

// A program that tries many libraries unloads them one after the other.
TEST_F(CudaCallTest, UnloadingBesideAGraphFreesItsWorkspaceToo) {
  fake_cuda::MakeCurrent(0, /*primary=*/true);
  const int64_t before = fake_cuda::AllocatedBytes();
  ASSERT_EQ(Prepare(), 0) << Error();
  ASSERT_EQ(Pack(stream_), 0) << Error();
  fake_cuda::BeginCapture(stream_);
  ASSERT_EQ(Scale(stream_), 0) << Error();
  const int graph = fake_cuda::EndCapture(stream_);
  dlclose(library_);
  EXPECT_EQ(fake_cuda::AllocatedBytes(), before);
  fake_cuda::DestroyGraph(graph);  // what it calls is still there
  library_ = dlopen(nullptr, RTLD_NOW);
}

}  // namespace
}  // namespace mycc
