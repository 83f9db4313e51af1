// Libraries for GPUs on a machine without one: what is in them, and what they say when they are opened.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "codegen/runtime/library.h"
#include "tests/cuda/hand_made.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

std::string Write(const TemporaryFolder& folder, const SharedObject& object) {
  std::string path = folder.path() + "/hand.so";
  EXPECT_TRUE(WriteFileAtomically(path, object.bytes, /*executable=*/true).ok());
  return path;
}

class CudaLibraryTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaLibraryTest, ExportsTheArtifactAbi) {
  const absl::StatusOr<SharedObject> object = HandMadeLibrary(TargetOfArch(GetParam()));
  ASSERT_TRUE(object.ok()) << object.status();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  void* handle = dlopen(Write(folder, *object).c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  for (const char* symbol :
       {"hand_add", "hand_scale", "hand_scale_pack", "hand_prepare", "hand_last_error", "hand_json"})
    EXPECT_NE(dlsym(handle, symbol), nullptr) << symbol;
  EXPECT_EQ(dlsym(handle, "hand_add_pack"), nullptr);
  EXPECT_EQ(dlsym(handle, "mycc_cuda_module"), nullptr);
  dlclose(handle);
}

INSTANTIATE_TEST_SUITE_P(Archs, CudaLibraryTest,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CudaLibrary, TheReportIsThatOfTheHungriestKernels) {
  const absl::StatusOr<SharedObject> object = HandMadeLibrary(TargetOfArch("sm_90a"));
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_GT(object->report.registers, 0);
  EXPECT_EQ(object->report.spill_bytes, 0);
  EXPECT_EQ(object->report.shared_bytes, (16000 + 256) * 4);  // dynamic, of one kernel
  EXPECT_FALSE(object->report.serialized_wgmma);
}

TEST(CudaLibrary, AMachineWithoutDriverIsToldSo) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW); driver != nullptr) {
    dlclose(driver);
    GTEST_SKIP() << "this machine has a driver";
  }
  const absl::StatusOr<SharedObject> object = HandMadeLibrary(TargetOfArch("sm_90a"));
  ASSERT_TRUE(object.ok()) << object.status();
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const absl::Status status = Library::Open(Write(folder, *object)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("hand: compiled for `v1 cuda arch=sm_90a model=\"any\" sms=1 smem=101376 l2=1M`, and this "
                "machine has no NVIDIA driver: libcuda.so.1 was not found"));
}

}  // namespace
}  // namespace mycc
