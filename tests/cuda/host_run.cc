#include "tests/cuda/host_run.h"

#include <dlfcn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "base/status.h"
#include "base/temporary_folder.h"
#include "tests/cuda/host_threads.h"

namespace mycc {
namespace {

using KernelFn = void (*)(void* const*);
using BindFn = void (*)(const HostThreads*);

// A pair to replace: mma.sync of one type, 32 bytes deep or 16.
std::pair<std::string, std::string> MmaPtx(const std::string& shape_and_types, char sum,
                                           const std::string& host_element, bool is_deep = true) {
  const std::string d = absl::StrCat("\"+", std::string(1, sum), "\"");
  return {absl::StrCat("asm volatile(\"mma.sync.aligned.", shape_and_types,
                       is_deep ? " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                               : " {%0, %1, %2, %3}, {%4, %5}, {%6}, ",
                       R"("
               "{%0, %1, %2, %3};"
               : )",
                       d, "(d0), ", d, "(d1), ", d, "(d2), ", d, R"((d3)
               : )",
                       is_deep ? R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));)"
                               : R"("r"(a[0]), "r"(a[1]), "r"(b0));)"),
          absl::StrCat("HostMma<", host_element, ">(d0, d1, d2, d3, a, b0", is_deep ? ", b1);" : ");")};
}

// A pair to replace: ldmatrix of four matrices or two, transposed or not.
std::pair<std::string, std::string> LdmatrixPtx(bool four, bool transposed) {
  return {
      absl::StrCat("asm volatile(\"ldmatrix.sync.aligned.m8n8.x", four ? 4 : 2, transposed ? ".trans" : "",
                   four ? R"(.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(from) : "memory");)"
                        : R"(.shared.b16 {%0, %1}, [%2];"
               : "=r"(to[0]), "=r"(to[1]) : "r"(from) : "memory");)"),
      absl::StrCat("HostLoadMatrices(to, from, ", transposed ? "true" : "false", ");")};
}

// The source with calls in place of the PTX of Ampere's tensor cores.
std::string WithoutTensorCores(const std::string& source) {
  return absl::StrReplaceAll(
      source,
      {MmaPtx("m16n8k16.row.col.f32.f16.f16.f32", 'f', "HostOfF16"),
       MmaPtx("m16n8k16.row.col.f32.bf16.bf16.f32", 'f', "HostOfBF16"),
       MmaPtx("m16n8k8.row.col.f32.f16.f16.f32", 'f', "HostOfF16", /*is_deep=*/false),
       MmaPtx("m16n8k8.row.col.f32.bf16.bf16.f32", 'f', "HostOfBF16", /*is_deep=*/false),
       MmaPtx("m16n8k8.row.col.f32.tf32.tf32.f32", 'f', "HostOfTF32"),
       MmaPtx("m16n8k32.row.col.s32.s8.s8.s32", 'r', "HostOfS8"),
       MmaPtx("m16n8k32.row.col.f32.e4m3.e4m3.f32", 'f', "HostOfE4M3"),
       MmaPtx("m16n8k32.row.col.f32.e5m2.e5m2.f32", 'f', "HostOfE5M2"),
       {R"(asm volatile("" : "+f"(part[i]));)", ""},
       LdmatrixPtx(/*four=*/true, /*transposed=*/false),
       LdmatrixPtx(/*four=*/true, /*transposed=*/true),
       LdmatrixPtx(/*four=*/false, /*transposed=*/false),
       LdmatrixPtx(/*four=*/false, /*transposed=*/true),
       {R"(asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");)",
        "HostCopyAsync<kBytes>(to, from, inside);"},
       {R"(asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(inside ? kBytes : 0)
                 : "memory");)",
        "HostCopyAsync<kBytes>(to, from, inside);"},
       {R"(asm volatile("{\n.reg .pred inside;\nsetp.ne.s32 inside, %5, 0;\n@inside ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
                 : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w) : "l"(from), "r"(int(inside)));)",
        "if (inside) HostLoad16(&words, from);"},
       {R"(asm volatile("cp.async.commit_group;" ::: "memory");)", ""},
       {R"(asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");)", ""}});
}

// A pair to replace: a value of `bits` bits that is sent to another block.
std::pair<std::string, std::string> SendPtx(int bits, const std::string& type, char reg) {
  const std::string value = absl::StrCat("reinterpret_cast<const ", type, "&>(value)");
  return {absl::StrCat(R"(asm volatile(
        "{\n.reg .b32 there, full;\nmapa.shared::cluster.u32 there, %0, %3;\nmapa.shared::cluster.u32 full, %1, %3;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b)",
                       bits, R"( [there], %2, [full];\n}" ::"r"(place),
        "r"(barrier), ")",
                       std::string(1, reg), "\"(", value, R"(), "r"(block)
        : "memory");)"),
          absl::StrCat("HostSend(place, barrier, ", value, ", block);")};
}

// The source with calls in place of the PTX of clusters, and of Hopper's barriers in shared memory.
std::string WithoutClusters(const std::string& source) {
  return absl::StrReplaceAll(
      source,
      {{"extern __shared__ __align__(1024) unsigned char shared[];",
        "unsigned char* const shared = SharedOfBlock();"},
       {R"(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");)",
        "HostBarrierInit(barrier, arrivals);"},
       {R"(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");)", ""},
       {R"(asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n}" ::"r"(barrier), "r"(bytes) : "memory");)",
        "HostBarrierExpect(barrier, bytes);"},
       {R"(asm volatile("{\n.reg .pred done;\nwaiting:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra waiting;\n}" ::"r"(barrier), "r"(parity) : "memory");)",
        "HostBarrierWait(barrier, parity);"},
       {R"(asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");)", "host.arrive_in_cluster();"},
       {R"(asm volatile("barrier.cluster.wait.acquire;" ::: "memory");)", "host.wait_for_cluster();"},
       SendPtx(32, "unsigned", 'r'),
       SendPtx(64, "unsigned long long", 'l')});
}

// PTX, and what host_cuda.h has in its place.
std::string WithoutPtx(const std::string& source) {
  return absl::StrReplaceAll(
      WithoutClusters(WithoutTensorCores(source)),
      // Launches on the host end before the next one begins.
      {{R"(asm volatile("griddepcontrol.wait;" ::: "memory");)", ""},
       {R"(asm volatile("griddepcontrol.launch_dependents;" ::: "memory");)", ""},
       {R"(asm volatile("" : "+l"(address) :: "memory");)", ""},
       {R"(asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));)",
        "pair = HostF16(odd) << 16 | HostF16(even);"},
       {R"(asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(odd), "f"(even));)",
        "pair = HostBF16(odd) << 16 | HostBF16(even);"},
       {R"(asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));)",
        "result = HostFromF16(value.bits);"},
       {R"(asm("mov.b32 %0, {%1, %2};" : "=f"(result) : "h"((unsigned short)0), "h"(value.bits));)",
        "result = __uint_as_float(unsigned(value.bits) << 16);"},
       {R"(asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));)", "result = a / b;"},
       {R"(asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));)", "result = exp2f(x);"},
       {R"(asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));)", "result = HostMax(a, b);"},
       {R"(asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));)", "result = HostMin(a, b);"},
       {R"(asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");)",
        "BarrierOnHost(barrier, threads);"}});
}

std::string Pointers(size_t count) {
  std::string list;
  for (size_t i = 0; i < count; ++i) absl::StrAppend(&list, i == 0 ? "" : ", ", "AnyPointer{p[", i, "]}");
  return list;
}

std::string SourceOf(const std::vector<HostUnit>& units) {
  std::string source = "#include \"tests/cuda/host_cuda.h\"\n";
  for (size_t i = 0; i < units.size(); ++i) {
    absl::StrAppend(&source, "namespace unit", i, " {\n", WithoutPtx(units[i].program.source));
    for (const auto* steps : {&units[i].program.call, &units[i].program.pack}) {
      for (const CudaStep& step : *steps) {
        absl::StrAppend(&source, "extern \"C\" void run_", i, "_", step.kernel, "(void* const* p) { ",
                        step.kernel, "(", Pointers(step.pointers.size()), "); }\n");
      }
    }
    absl::StrAppend(&source, "}\n");
  }
  return source;
}

// A tensor at a 16-byte boundary, as callers of a GPU's kernels have it, poisoned.
class PoisonedMemory {
 public:
  explicit PoisonedMemory(int64_t bytes) : memory_(static_cast<size_t>(bytes) + 64, 0xff) {}
  uint8_t* data() {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (16 - address % 16) % 16;
  }

 private:
  std::vector<uint8_t> memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HostLibrary>> HostLibrary::Compile(std::vector<HostUnit> units) {
  MYCC_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Create());
  const std::string base = folder.path() + "/kernels";
  std::ofstream(base + ".cc") << SourceOf(units);
  const std::string command =
      absl::StrCat(MYCC_HOST_CXX, " -std=c++20 -O0 -w -fPIC -shared -I", MYCC_SOURCE_ROOT, " -o ", base,
                   ".so ", base, ".cc 2>", base, ".log");
  const int status = std::system(command.c_str());
  std::unique_ptr<HostLibrary> library(new HostLibrary());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    library->library_ = dlopen((base + ".so").c_str(), RTLD_NOW);
  std::stringstream log;
  log << std::ifstream(base + ".log").rdbuf();
  if (library->library_ == nullptr) {
    return absl::InternalError(
        absl::StrCat("the host's compiler refuses the kernels: ", log.str().substr(0, 4000)));
  }
  library->units_ = std::move(units);
  return library;
}

HostLibrary::~HostLibrary() {
  if (library_ != nullptr) dlclose(library_);
}

std::vector<NDArray> HostLibrary::Run(size_t unit, const std::vector<NDArray>& inputs) const {
  const HostUnit& u = units_[unit];
  const auto& params = u.lowered.kernel.params;
  PoisonedMemory workspace(u.program.workspace_bytes);
  std::vector<PoisonedMemory> tensors;
  std::vector<uint8_t*> call, pack, packed;
  tensors.reserve(2 * params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    tensors.emplace_back(params[i].buffer->bytes());
    uint8_t* data = tensors.back().data();
    if (i < inputs.size()) std::ranges::copy(inputs[i].bytes, data);
    call.push_back(data);
    if (params[i].kind != ParamKind::kConst) continue;
    pack.push_back(data);
    tensors.emplace_back(u.lowered.packed_bytes[i]);
    packed.push_back(tensors.back().data());
    call.back() = packed.back();
  }
  pack.insert(pack.end(), packed.begin(), packed.end());
  const HostThreads host = TheHostThreads();
  reinterpret_cast<BindFn>(dlsym(library_, "bind_host"))(&host);
  void* const shared = dlsym(library_, "shared");
  const auto run = [&](const std::vector<CudaStep>& steps, const std::vector<uint8_t*>& arguments) {
    for (const CudaStep& step : steps) {
      std::vector<void*> pointers;
      for (const CudaOperand& operand : step.pointers) {
        uint8_t* base =
            operand.argument == CudaOperand::kWorkspace ? workspace.data() : arguments[operand.argument];
        pointers.push_back(base + operand.offset);
      }
      const std::string name = absl::StrCat("run_", unit, "_", step.kernel);
      const auto kernel = reinterpret_cast<KernelFn>(dlsym(library_, name.c_str()));
      const bool ended = RunOnHostThreads(
          static_cast<int>(step.grid[0]), static_cast<int>(step.cluster), static_cast<int>(step.threads),
          /*seed=*/unit, [&] { std::memset(shared, 0xff, step.cluster * kHostSharedBytes); },
          [&] { kernel(pointers.data()); });
      MYCC_CHECK(ended) << "threads of " << step.kernel << " wait for ever:\n" << u.program.source;
    }
  };
  run(u.program.pack, pack);
  run(u.program.call, call);
  std::vector<NDArray> outputs;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].kind != ParamKind::kOutput) continue;
    outputs.push_back(NDArray::Zeros(params[i].buffer->dtype, params[i].buffer->shape));
    std::copy_n(call[i], outputs.back().bytes.size(), outputs.back().bytes.begin());
  }
  return outputs;
}

}  // namespace mycc
