// The measuring kernels' code is built once for each compiler and device, and again where its file is
// damaged.
#include "worker/measuring_cubin.h"

#include <filesystem>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

class MeasuringCubinTest : public ::testing::Test {
 protected:
  std::string Get(const MeasuringCode& code) {
    return MeasuringCubin(folder_, code, [this] { return absl::StatusOr<std::string>(Built()); }).value();
  }
  std::string Built() { return "code " + std::to_string(++builds_); }

  const TemporaryFolder made_ = TemporaryFolder::Create().value();
  std::string folder_ = made_.path();
  int builds_ = 0;
  const MeasuringCode code_ = {"source", "nvrtc-13.0", "sm_90a"};
};

TEST_F(MeasuringCubinTest, IsKept) {
  EXPECT_EQ(Get(code_), "code 1");
  EXPECT_EQ(Get(code_), "code 1");
}

TEST_F(MeasuringCubinTest, IsOfItsSourceCompilerAndDevice) {
  EXPECT_EQ(Get(code_), "code 1");
  EXPECT_EQ(Get({"source 2", "nvrtc-13.0", "sm_90a"}), "code 2");
  EXPECT_EQ(Get({"source", "nvrtc-13.1", "sm_90a"}), "code 3");
  EXPECT_EQ(Get({"source", "nvrtc-13.0", "sm_80"}), "code 4");
  EXPECT_EQ(Get(code_), "code 1");
}

TEST_F(MeasuringCubinTest, ADamagedFileIsReplaced) {
  EXPECT_EQ(Get(code_), "code 1");
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    for (const char* damaged :
         {"", "short", "no digest, and as long as one, and the code of the kernels after it"}) {
      const std::string before = Get(code_);
      ASSERT_TRUE(WriteFileAtomically(entry.path().string(), damaged).ok());
      EXPECT_NE(Get(code_), before) << damaged;
    }
  }
  EXPECT_EQ(builds_, 4);
}

TEST_F(MeasuringCubinTest, WithoutAFolderItIsBuiltEachTime) {
  folder_ = "";
  EXPECT_EQ(Get(code_), "code 1");
  EXPECT_EQ(Get(code_), "code 2");
  folder_ = made_.path() + "/missing";
  EXPECT_EQ(Get(code_), "code 3");
  EXPECT_EQ(Get(code_), "code 4");
}

// Code from there would judge the candidates.
TEST_F(MeasuringCubinTest, AFolderOfAnybodyKeepsNothing) {
  EXPECT_EQ(Get(code_), "code 1");
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  EXPECT_EQ(Get(code_), "code 2");
  std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
  EXPECT_EQ(Get(code_), "code 1");
}

TEST_F(MeasuringCubinTest, ABuildThatFailsKeepsNothing) {
  const auto fail = [] {
    return absl::StatusOr<std::string>(absl::FailedPreconditionError("no such device"));
  };
  EXPECT_EQ(MeasuringCubin(folder_, code_, fail).status().message(), "no such device");
  EXPECT_EQ(Get(code_), "code 1");
}

}  // namespace
}  // namespace mycc
