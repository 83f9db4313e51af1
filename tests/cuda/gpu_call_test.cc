// Libraries with hand-written programs, called on this machine's GPU: what the tests with a driver that has
// no device cannot see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <limits>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/runtime/arguments.h"
#include "codegen/runtime/cuda_target.h"
#include "tests/cuda/hand_made.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class GpuCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    target_ = DetectCudaTarget(0).value();
    library_ = OpenLibrary(target_, "hand.so");
  }

  std::unique_ptr<Library> OpenLibrary(const Target& target, const std::string& name) {
    const absl::StatusOr<SharedObject> object = HandMadeLibrary(target);
    EXPECT_TRUE(object.ok()) << object.status();
    const std::string path = folder_.path() + "/" + name;
    EXPECT_TRUE(WriteFileAtomically(path, object->bytes, /*executable=*/true).ok());
    absl::StatusOr<std::unique_ptr<Library>> library = Library::Open(path);
    EXPECT_TRUE(library.ok()) << library.status();
    return library.ok() ? *std::move(library) : nullptr;
  }

  // Arguments whose f32 tensors hold small numbers, from `seed` on; outputs begin as NaN.
  Arguments Filled(const std::string& function, int seed) {
    Arguments arguments = Arguments::Create(library_.get(), function).value();
    for (int i = 0; i < arguments.size(); ++i) {
      HostTensor& tensor = arguments.tensor(i);
      if (tensor.dtype() != DType::kF32) continue;
      const bool is_output = arguments.arg(i).kind == "output";
      for (int64_t j = 0; j < tensor.num_elements(); ++j)
        Floats(&tensor)[j] = is_output ? std::numeric_limits<float>::quiet_NaN()
                                       : static_cast<float>((seed + 7 * j + 3 * i) % 101);
    }
    return arguments;
  }
  static float* Floats(HostTensor* tensor) { return reinterpret_cast<float*>(tensor->data()); }

  static void ExpectScaled(Arguments* arguments) {
    for (int64_t i = 0; i < arguments->tensor(2).num_elements(); ++i)
      ASSERT_EQ(Floats(&arguments->tensor(2))[i],
                Floats(&arguments->tensor(0))[i] * Floats(&arguments->tensor(1))[i % 32])
          << i;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
  Target target_;
  std::unique_ptr<Library> library_;
};

TEST_F(GpuCallTest, AFunctionOfOneLaunch) {
  Arguments arguments = Filled("add", 1);
  const absl::Status called = arguments.Call();
  ASSERT_TRUE(called.ok()) << called;
  for (int64_t i = 0; i < arguments.tensor(2).num_elements(); ++i)
    ASSERT_EQ(Floats(&arguments.tensor(2))[i],
              Floats(&arguments.tensor(0))[i] + Floats(&arguments.tensor(1))[i])
        << i;
}

TEST_F(GpuCallTest, PackedBuffersWorkspacesAndMuchSharedMemory) {
  Arguments arguments = Filled("scale", 2);
  ASSERT_TRUE(arguments.Pack().ok());
  const absl::Status called = arguments.Call();
  ASSERT_TRUE(called.ok()) << called;
  ExpectScaled(&arguments);
}

TEST_F(GpuCallTest, TensorMapsAndClusters) {
  if (target_.arch != "sm_90a" && target_.arch != "sm_100a") GTEST_SKIP() << target_.arch << " has neither";
  Arguments arguments = Filled("flip", 3);
  HostTensor &x = arguments.tensor(0), &y = arguments.tensor(1);
  for (int64_t i = 0; i < x.bytes(); ++i) x.data()[i] = static_cast<uint8_t>(i * 7 % 251);
  const absl::Status called = arguments.Call();
  ASSERT_TRUE(called.ok()) << called;
  EXPECT_EQ(std::memcmp(x.data(), y.data(), x.bytes()), 0);
}

TEST_F(GpuCallTest, ACapturedCallIsLaunchedWithNewInputs) {
  Arguments arguments = Filled("scale", 4);
  ASSERT_TRUE(arguments.Pack().ok());
  CudaStream stream = arguments.session()->CreateStream().value();
  const absl::StatusOr<CudaGraph> graph =
      stream.Capture([&] { return library_->Call("scale", arguments.call_args(), stream.handle()); });
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (int seed = 0; seed < 3; ++seed) {
    for (int64_t i = 0; i < arguments.tensor(0).num_elements(); ++i)
      Floats(&arguments.tensor(0))[i] = static_cast<float>(seed * 1000 + i);
    ASSERT_TRUE(arguments.Upload().ok());
    ASSERT_TRUE(stream.Launch(*graph).ok());
    ASSERT_TRUE(stream.Synchronize().ok());
    ASSERT_TRUE(arguments.Download().ok());
    ExpectScaled(&arguments);
  }
}

// Each graph has a workspace of its own, so that the two may run at once.
TEST_F(GpuCallTest, GraphsOfSeveralStreamsRunBesideEachOther) {
  constexpr int kGraphs = 4, kRounds = 200;
  std::vector<Arguments> arguments;
  std::vector<CudaStream> streams;
  std::vector<CudaGraph> graphs;
  for (int g = 0; g < kGraphs; ++g) {
    arguments.push_back(Filled("scale", 10 * g));
    ASSERT_TRUE(arguments[g].Pack().ok());
    ASSERT_TRUE(arguments[g].Upload().ok());
    streams.push_back(arguments[g].session()->CreateStream().value());
    absl::StatusOr<CudaGraph> graph = streams[g].Capture(
        [&] { return library_->Call("scale", arguments[g].call_args(), streams[g].handle()); });
    ASSERT_TRUE(graph.ok()) << graph.status();
    graphs.push_back(*std::move(graph));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int g = 0; g < kGraphs; ++g) ASSERT_TRUE(streams[g].Launch(graphs[g]).ok());
  }
  for (int g = 0; g < kGraphs; ++g) {
    ASSERT_TRUE(arguments[g].Download().ok());
    ExpectScaled(&arguments[g]);
  }
}

TEST_F(GpuCallTest, CodeForAnotherArchitectureIsRefused) {
  const absl::StatusOr<SharedObject> object =
      HandMadeLibrary(TargetOfArch(target_.arch == "sm_80" ? "sm_90a" : "sm_80"));
  ASSERT_TRUE(object.ok()) << object.status();
  const std::string path = folder_.path() + "/other.so";
  ASSERT_TRUE(WriteFileAtomically(path, object->bytes, /*executable=*/true).ok());
  const absl::Status status = Library::Open(path).status();
  if (target_.arch == "sm_86" || target_.arch == "sm_89") GTEST_SKIP() << "sm_80's code runs here";
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("but device 0 (" + target_.model + ") is sm_"));
}

}  // namespace
}  // namespace mycc

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const auto device = mycc::DetectCudaTarget(0); !device.ok()) {
    std::cout << "skipped: " << device.status().message() << "\n";
    return 77;
  }
  return RUN_ALL_TESTS();
}
