// Reading ptxas's log: registers, spills and warnings of each kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/cuda/nvrtc.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLog[] = R"(
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'second' for 'sm_90a'
ptxas info    : Function properties for second
ptxas         .     400 bytes stack frame, 48 bytes spill stores, 64 bytes spill loads
ptxas info    : Function properties for helper
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 400 bytes cumulative stack size, 256 bytes smem
ptxas info    : Compile time = 5.834 ms
ptxas info    : Compiling entry function 'first' for 'sm_90a'
ptxas info    : Function properties for first
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 30 registers, used 0 barriers
ptxas info    : Compile time = 5.834 ms
)";

TEST(PtxasLog, ResourcesOfEachKernel) {
  const CudaImage image = ReadPtxasLog(kLog);
  ASSERT_EQ(image.kernels.size(), 2u);
  EXPECT_EQ(image.kernels[0].kernel, "second");
  EXPECT_EQ(image.kernels[0].registers, 255);
  EXPECT_EQ(image.kernels[0].spill_bytes, 56);
  EXPECT_EQ(image.kernels[0].stack_bytes, 416);
  EXPECT_EQ(image.kernels[0].shared_bytes, 256);
  EXPECT_EQ(image.kernels[1].kernel, "first");
  EXPECT_EQ(image.kernels[1].registers, 30);
  EXPECT_EQ(image.kernels[1].spill_bytes, 0);
  EXPECT_EQ(image.kernels[1].shared_bytes, 0);
  EXPECT_EQ(image.log, "");
  EXPECT_FALSE(image.serialized_wgmma);
  EXPECT_FALSE(image.ignored_setmaxnreg);
}

TEST(PtxasLog, WarningsThatMakeAKernelSlow) {
  const std::string serialized =
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due "
      "to "
      "insufficient register resources for the wgmma pipeline in the function 'k'\n";
  EXPECT_TRUE(ReadPtxasLog(serialized).serialized_wgmma);
  EXPECT_FALSE(ReadPtxasLog(serialized).ignored_setmaxnreg);
  EXPECT_EQ(ReadPtxasLog(serialized).log, serialized);

  const std::string ignored =
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
      "register "
      "count at entry.\n";
  EXPECT_TRUE(ReadPtxasLog(ignored).ignored_setmaxnreg);
  EXPECT_FALSE(ReadPtxasLog(ignored).serialized_wgmma);
  EXPECT_THAT(ReadPtxasLog(kLog + ignored).log, HasSubstr("C7508"));
  EXPECT_THAT(ReadPtxasLog(kLog + ignored).log, Not(HasSubstr("Compiling")));
}

TEST(PtxasLog, AnAddedArrivalIsNoWarning) {
  EXPECT_EQ(ReadPtxasLog(
                "ptxas info    : (C7519) warpgroup.arrive is injected in around line 9 by compiler to allow "
                "use of registers in GMMA in function 'k'\n")
                .log,
            "");
}

TEST(PtxasLog, OthersWordsAreNotKept) {
  EXPECT_EQ(ReadPtxasLog("kernels.cu(63): warning #177-D: variable \"i\" was declared but never referenced\n"
                         "    const int i = 0;\n              ^\n")
                .log,
            "");
}

}  // namespace
}  // namespace mycc
