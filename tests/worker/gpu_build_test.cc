// The builds of a GPU's candidates, and the cases that they are checked against, by NVRTC; no GPU takes part.
#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/temporary_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/builder.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

// The symbols of a library's functions, "trial_scale\ntrial_prepare\n...", as its JSON and its table have
// them.
std::vector<std::string> Exported(const std::string& library) {
  std::vector<std::string> names;
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  if (handle == nullptr) return names;
  for (const char* name : {"trial_scale", "trial_scale_pack", "trial_rows", "trial_rows_pack", "trial_json",
                           "trial_prepare", "trial_last_error"}) {
    if (dlsym(handle, name) != nullptr) names.push_back(name);
  }
  dlclose(handle);
  return names;
}

class GpuBuildTest : public ::testing::TestWithParam<const char*> {
 protected:
  v1::BuildResponse Build(const std::string& workload, const std::string& trace) {
    v1::BuildRequest request;
    request.set_workload(workload);
    request.set_target(GetParam());
    request.set_trace(trace);
    request.set_directory(folder_.path());
    return HandleBuildRequest(request);
  }

  // The library that a measuring host makes of a kernel that another host built.
  v1::BuildResponse Link(const std::string& workload, const std::string& kernel) {
    v1::BuildRequest request;
    request.set_workload(workload);
    request.set_target(GetParam());
    request.set_directory(folder_.path());
    request.set_built(kernel);
    return HandleBuildRequest(request);
  }
  v1::BuildResponse BuildForOthers(const std::string& workload, const std::string& trace) {
    v1::BuildRequest request;
    request.set_workload(workload);
    request.set_target(GetParam());
    request.set_trace(trace);
    request.set_directory(folder_.path());
    request.set_portable(true);
    return HandleBuildRequest(request);
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_P(GpuBuildTest, MeasuringKernels) {
  const v1::BuildResponse built = Build("", "");
  EXPECT_EQ(built.error(), "");
  EXPECT_TRUE(std::filesystem::exists(built.library()));
}

constexpr char kScale[] = R"(workload scale(x: f32[64,1000]) -> (y: f32[64,1000]) {
  y[i,j] = x[i,j] * 2.0
})";

TEST_P(GpuBuildTest, References) {
  const char* const workloads[] = {
      kScale,
      R"(workload gemm(x: bf16[33,70], w: const bf16[50,70]) -> (y: bf16[33,50]) {
  y[i,j] = sum[k:70](x[i,k] * w[j,k])
})",
      R"(workload softmax(x: f16[5,300]) -> (y: f16[5,300]) {
  m[i]: f16[5] = max[k:300](x[i,k])
  e[i,j]: f16[5,300] = exp(x[i,j] - m[i])
  s[i]: f16[5] = sum[k:300](e[i,k])
  y[i,j] = e[i,j] / s[i]
})",
      R"(workload best(x: f32[7,91]) -> (y: i32[7]) {
  y[i] = argmax[k:91](x[i,k])
})",
      R"(workload conv(x: f16[2,8,9,9], w: const f16[4,8,3,3]) -> (y: f16[2,4,7,7]) {
  y[n,k,i,j] = sum[c:8, r:3, s:3](x[n,c,i+r,j+s] * w[k,c,r,s])
})",
      R"(workload total(x: i8[100]) -> (y: i32[1]) {
  y[i] = sum[k:100](i32(x[k]))
})"};
  for (const char* workload : workloads) {
    const v1::BuildResponse built = Build(workload, "");
    EXPECT_EQ(built.error(), "") << workload;
    EXPECT_TRUE(std::filesystem::exists(built.library())) << workload;
  }
}

TEST_P(GpuBuildTest, ACandidateSaysWhatItUses) {
  const v1::BuildResponse built = Build(kScale,
                                        "v1\nfuse([t1.a0, t1.a1])\nsplit(t1.a0+a1, [256])\n"
                                        "bind(t1.a0+a1.0, block)\nbind(t1.a0+a1.1, thread)\n");
  ASSERT_EQ(built.error(), "");
  EXPECT_GT(built.resources().registers_per_thread(), 0u);
  EXPECT_TRUE(built.resources().has_spill_bytes());
  EXPECT_EQ(built.resources().spill_bytes(), 0u);
  EXPECT_TRUE(built.resources().has_shared_bytes());
  EXPECT_GT(built.resources().code_bytes(), 0u);
}

constexpr char kRows[] = R"(workload rows(x: f32[64,256], w: const f32[32,256]) -> (y: f32[64,32]) {
  y[i,j] = sum[k:256](x[i,k] * w[j,k])
})";

TEST_P(GpuBuildTest, AKernelForAnotherHostIsLinkedThereToTheSameLibrary) {
  for (const char* workload : {kScale, kRows}) {
    const v1::BuildResponse own = Build(workload, "");
    const v1::BuildResponse built = BuildForOthers(workload, "");
    ASSERT_EQ(built.error(), "");
    EXPECT_EQ(built.code_digest(), own.code_digest());
    EXPECT_THAT(built.library(), HasSubstr(".kernel"));
    const v1::BuildResponse linked = Link(workload, built.library());
    ASSERT_EQ(linked.error(), "");
    EXPECT_EQ(linked.code_digest(), own.code_digest());
    EXPECT_THAT(linked.compiler(), HasSubstr("nvrtc-"));
    EXPECT_EQ(linked.resources().registers_per_thread(), built.resources().registers_per_thread());
    EXPECT_EQ(Exported(linked.library()), Exported(own.library())) << "no other code is called";
  }
}

TEST_P(GpuBuildTest, AKernelOfAnotherWorkloadIsThisHostsFailure) {
  const v1::BuildResponse built = BuildForOthers(kScale, "");
  ASSERT_EQ(built.error(), "");
  const v1::BuildResponse linked = Link(kRows, built.library());
  EXPECT_THAT(linked.error(), HasSubstr("a built kernel: "));
  EXPECT_TRUE(linked.unfit());
}

// A thread with hundreds of sums, all of them needed at once.
TEST_P(GpuBuildTest, ACandidateThatSpillsIsRefusedInWords) {
  const v1::BuildResponse built =
      Build(R"(workload gemm(x: f32[512,64], w: f32[64,512]) -> (y: f32[512,512]) {
  y[i,j] = sum[k:64](x[i,k] * w[k,j])
})",
            "v1\nsplit(t2.a0, [24])\nsplit(t2.a1, [32, 24])\n"
            "reorder([t2.a0.0, t2.a1.0, t2.a1.1, t2.r0, t2.a0.1, t2.a1.2])\n"
            "bind(t2.a0.0, block)\nbind(t2.a1.0, block)\nbind(t2.a1.1, thread)\n"
            "cache_write(t2, t2.a1.1)\nbind(t2.a0.1, unroll)\nbind(t2.a1.2, unroll)\n"
            "bind(t2.i.a0.1, unroll)\nbind(t2.i.a1.2, unroll)\n"
            "bind(t2.w.a0.1, unroll)\nbind(t2.w.a1.2, unroll)\n");
  EXPECT_THAT(built.error(), HasSubstr("not measured: a thread spills"));
  EXPECT_GT(built.resources().spill_bytes(), 0u);
  EXPECT_NE(built.code_digest(), "");
  EXPECT_FALSE(std::filesystem::exists(built.library()));
}

INSTANTIATE_TEST_SUITE_P(Targets, GpuBuildTest, ::testing::Values("a100", "h200"),
                         [](const auto& target) { return std::string(target.param); });

}  // namespace
}  // namespace mycc
