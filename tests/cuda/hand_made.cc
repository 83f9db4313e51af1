#include "tests/cuda/hand_made.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/artifact/library.h"
#include "codegen/driver/compile.h"
#include "codegen/workload/parse.h"

namespace mycc {
namespace {

constexpr char kAdd[] = "workload add(x: f32[4099], y: f32[4099]) -> (z: f32[4099]) { z[i] = x[i] + y[i] }";
CudaProgram AddProgram() {
  CudaProgram program;
  program.source = R"(
extern "C" __global__ void __launch_bounds__(256) hand_add_0(const float* x, const float* y, float* z) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < 4099) z[i] = x[i] + y[i];
}
)";
  CudaStep step;
  step.kernel = "hand_add_0";
  step.grid = {(4099 + 255) / 256, 1, 1};
  step.threads = 256;
  step.pointers = {{0, 0}, {1, 0}, {2, 0}};
  program.call = {step};
  return program;
}

constexpr char kScale[] =
    "workload scale(x: f32[64,32], w: const f32[32]) -> (y: f32[64,32]) { y[i,j] = x[i,j] * w[j] }";
// The first half of the workspace holds x, the second the element of w for each of its elements.
CudaProgram ScaleProgram() {
  CudaProgram program;
  program.source = R"(
extern "C" __global__ void __launch_bounds__(256) hand_scale_0(const float* x, const float* w, float* a, float* b) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  a[i] = x[i];
  b[i] = w[i % 32];
}
extern "C" __global__ void __launch_bounds__(256) hand_scale_1(const float* a, const float* b, float* y) {
  extern __shared__ float shared[];
  const int i = blockIdx.x * 256 + threadIdx.x;
  shared[threadIdx.x + 16000] = a[i] * b[i];
  __syncthreads();
  y[i] = shared[threadIdx.x + 16000];
}
extern "C" __global__ void hand_scale_pack_0(const float* w, float* packed) {
  packed[threadIdx.x] = w[threadIdx.x];
}
)";
  constexpr int64_t kBytes = 64 * 32 * 4;
  program.workspace_bytes = 2 * kBytes;
  CudaStep first, second, pack;
  first.kernel = "hand_scale_0";
  first.grid = {8, 1, 1};
  first.threads = 256;
  first.pointers = {{0, 0}, {1, 64}, {CudaOperand::kWorkspace, 0}, {CudaOperand::kWorkspace, kBytes}};
  second = first;
  second.kernel = "hand_scale_1";
  second.shared_bytes = (16000 + 256) * 4;  // more than a kernel has without asking
  second.pointers = {{CudaOperand::kWorkspace, 0}, {CudaOperand::kWorkspace, kBytes}, {2, 0}};
  program.call = {first, second};
  pack.kernel = "hand_scale_pack_0";
  pack.threads = 32;
  pack.pointers = {{0, 0}, {1, 64}};
  program.pack = {pack};
  return program;
}

constexpr char kFlip[] = "workload flip(x: bf16[512,64]) -> (y: bf16[512,64]) { y[i,j] = x[i,j] }";
CudaProgram FlipProgram() {
  CudaProgram program;
  program.source = R"(
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
extern "C" __global__ void __launch_bounds__(32) hand_flip_0(const __grid_constant__ CUtensorMap from,
                                                           const __grid_constant__ CUtensorMap to) {
  extern __shared__ __align__(1024) unsigned char tile[];
  __shared__ unsigned long long barrier;
  unsigned blocks_of_cluster;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks_of_cluster));
  if (blocks_of_cluster != 2) return;
  const int row = (blockIdx.x ^ 1) * 64;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  const unsigned into = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" ::"r"(at) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
            "r"(into), "l"(&from), "r"(0), "r"(row), "r"(at) : "memory");
    unsigned done = 0;
    while (!done) {
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(at) : "memory");
    }
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to), "r"(0),
                 "r"(row), "r"(into) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
)";
  CudaStep step;
  step.kernel = "hand_flip_0";
  step.grid = {8, 1, 1};
  step.cluster = 2;
  step.threads = 32;
  step.shared_bytes = 8192 + 1024;
  CudaTensorMap map;
  map.operand = {0, 0};
  map.dtype = DType::kBF16;
  map.dims = {64, 512};
  map.strides = {128};
  map.box = {64, 64};
  map.element_strides = {1, 1};
  map.swizzle_bytes = 128;
  step.maps = {map, map};
  step.maps[1].operand = {1, 0};
  program.call = {step};
  return program;
}

// The kernel as any back end sees it: what its arguments and packed buffers are, which no target changes.
absl::StatusOr<KernelSpec> Kernel(const std::string& text) {
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(text, "hand-made"));
  return CompileKernel(workload, ParseTarget("haswell").value(), {});
}

}  // namespace

Target TargetOfArch(const std::string& arch) {
  return ParseTarget(absl::StrCat("cuda arch=", arch, " model=\"any\" sms=1 smem=99K l2=1M")).value();
}

absl::StatusOr<SharedObject> HandMadeLibrary(const Target& target) {
  LibrarySpec spec{"hand", target, {}};
  std::vector<CudaProgram> programs = {AddProgram(), ScaleProgram()};
  for (const char* text : {kAdd, kScale}) {
    MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, Kernel(text));
    spec.kernels.push_back(std::move(kernel));
  }
  if (target.arch == "sm_90a" || target.arch == "sm_100a") {
    MYCC_ASSIGN_OR_RETURN(KernelSpec kernel, Kernel(kFlip));
    spec.kernels.push_back(std::move(kernel));
    programs.push_back(FlipProgram());
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<Entry> entries, EntriesOf(spec));
  return LinkCudaPrograms(spec, entries, programs);
}

}  // namespace mycc
