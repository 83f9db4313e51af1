// The objects that EmitModule makes: for machines that are not this one, micro-kernels that live in
// registers, the same bytes every time.
#include "codegen/llvm/emit.h"

#include <algorithm>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/llvm/compiled.h"
#include "tests/schedule/testing.h"

namespace mycc {
namespace {

constexpr char kGemm[] = R"(workload gemm(a: f32[120,64], b: const f32[64,128]) -> (c: f32[120,128]) {
  c[i,j] = sum[k:64](a[i,k] * b[k,j])
})";

// A register tile of `rows` x `columns` over packed panels, four steps of k unrolled.
std::string TiledGemm(int rows, int columns, int lanes) {
  return absl::StrCat("split(t2.a0, [", rows, "])\nsplit(t2.a1, [", columns, "])\nsplit(t2.r0, [4])\n",
                      "reorder([t2.a1.0, t2.a0.0, t2.r0.0, t2.r0.1, t2.a0.1, t2.a1.1])\n",
                      "cache_read(t1, t2, root, packed)\npack(t1.r, [1/", columns, ", 0, 1%", columns, "])\n",
                      "cache_read(t0, t2, root, local)\npack(t0.r, [0/", rows, ", 1, 0%", rows, "])\n",
                      "cache_write(t2, t2.a0.0)\ntensorize(t2.r0.1, fma.f32)\n", "split(t2.i.a1.1, [", lanes,
                      "])\nbind(t2.i.a1.1.1, vector)\nbind(t2.i.a1.1.0, unroll)\nbind(t2.i.a0.1, unroll)\n",
                      "split(t2.w.a1.1, [", lanes,
                      "])\nbind(t2.w.a1.1.1, vector)\nbind(t2.w.a1.1.0, unroll)\nbind(t2.w.a0.1, unroll)\n");
}

std::string Emit(const std::string& workload, const std::string& steps, const Target& target, EmitKind kind) {
  const auto lowered = LowerTrace(CanonicalWorkload(workload), steps, target);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  const auto emitted = EmitModule({EmitUnit{"gemm", *lowered}}, target, kind);
  EXPECT_TRUE(emitted.ok()) << emitted.status();
  return *emitted;
}

// The loop of the assembly text with the most fused multiply-adds, label to backward jump.
std::vector<std::string> HottestLoop(const std::string& assembly) {
  const std::vector<std::string> lines = absl::StrSplit(assembly, '\n');
  std::vector<std::string> hottest;
  ptrdiff_t most = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].rfind(".LBB", 0) != 0) continue;
    const std::string label = lines[i].substr(0, lines[i].find(':'));
    for (size_t j = i + 1; j < lines.size() && lines[j].rfind(".LBB", 0) != 0; ++j) {
      if (lines[j].find("\tj") != 0 || lines[j].substr(lines[j].rfind('\t') + 1) != label) continue;
      const std::vector<std::string> body(lines.begin() + i, lines.begin() + j + 1);
      const ptrdiff_t fmas = std::ranges::count_if(
          body, [](const std::string& l) { return l.find("vfmadd") != std::string::npos; });
      if (fmas <= most) continue;
      most = fmas;
      hottest = body;
    }
  }
  return hottest;
}

ptrdiff_t Count(const std::vector<std::string>& lines, const std::string& a, const std::string& b = "") {
  return std::ranges::count_if(lines, [&](const std::string& line) {
    return line.find(a) != std::string::npos && line.find(b) != std::string::npos;
  });
}

void ExpectInRegisters(const Target& target, int rows, int columns, int lanes, const char* reg) {
  const std::string assembly = Emit(kGemm, TiledGemm(rows, columns, lanes), target, EmitKind::kAssembly);
  const std::vector<std::string> loop = HottestLoop(assembly);
  const int vectors = columns / lanes;
  const std::string text = absl::StrJoin(loop, "\n");
  EXPECT_EQ(Count(loop, "vfmadd", reg), 4 * rows * vectors) << text;
  EXPECT_EQ(Count(loop, "vbroadcastss"), 4 * rows) << text;
  EXPECT_EQ(Count(loop, "vmovups", reg), 4 * vectors) << text;
  EXPECT_EQ(Count(loop, "rsp"), 0) << "spills:\n" << text;
  EXPECT_EQ(Count(loop, "vmovaps"), 0) << "register copies:\n" << text;
  // Nothing but the arithmetic, its loads, two pointers and the loop itself.
  EXPECT_LE(static_cast<int>(loop.size()), 4 * rows * vectors + 4 * rows + 4 * vectors + 8) << text;
}

TEST(EmitTest, Avx2MicroKernelStaysInRegisters) { ExpectInRegisters(AvxTarget(), 6, 16, 8, "ymm"); }

TEST(EmitTest, Avx512MicroKernelStaysInRegisters) { ExpectInRegisters(Avx512Target(), 14, 32, 16, "zmm"); }

TEST(EmitTest, WideTilesOfFewRowsStayInRegisters) { ExpectInRegisters(Avx512Target(), 6, 64, 16, "zmm"); }

// Rows of a stem read the same elements at different steps, which are all unrolled: no register keeps them.
TEST(EmitTest, UnrolledWindowsStayInRegisters) {
  const std::string assembly = Emit(
      R"(workload stem(x: f32[45,45,3], w: const f32[7,7,3,32]) -> (y: f32[20,20,32]) {
  y[i,j,k] = sum[r:7, s:7, c:3](x[2*i+r,2*j+s,c] * w[r,s,c,k])
})",
      "split(t2.a1, [10])\nreorder([t2.a0, t2.a1.0, t2.r0, t2.r1, t2.r2, t2.a1.1, t2.a2])\n"
      "cache_write(t2, t2.a1.0)\nbind(t2.r1, unroll)\ntensorize(t2.r2, fma.f32)\n"
      "bind(t2.i.a1.1, unroll)\nbind(t2.i.a2, vector)\nbind(t2.w.a1.1, unroll)\nbind(t2.w.a2, vector)\n",
      Avx512Target(), EmitKind::kAssembly);
  const std::vector<std::string> loop = HottestLoop(assembly);
  const std::string text = absl::StrJoin(loop, "\n");
  EXPECT_EQ(Count(loop, "vfmadd", "zmm"), 7 * 3 * 10 * 2) << text;
  EXPECT_EQ(Count(loop, "rsp"), 0) << "spills:\n" << text;
}

// An index that is read may be any number before it is clamped; none of them needs more than its 32 bits.
TEST(EmitTest, IndicesThatAreClampedStayIn32Bits) {
  const std::string gather =
      "workload gemm(x: f32[1000], i: i32[70]) -> (y: f32[70]) {\n"
      "  s[j]: i32[70] = i[j] * 1000000007\n"
      "  y[j] = x[clamp(s[j], 0, 999)]\n}";
  const std::string steps = "split(t3.a0, [16])\nbind(t3.a0.1, vector)\n";
  const std::string assembly = Emit(gather, steps, Avx512Target(), EmitKind::kAssembly);
  EXPECT_EQ(assembly.find("vpminsq"), std::string::npos) << assembly;
  EXPECT_NE(assembly.find("vpmaxsd"), std::string::npos) << assembly;
  for (const Target& target : RunnableTargets())
    EXPECT_TRUE(CheckCompiled(CanonicalWorkload(gather), steps, target, 0).ok()) << PrintTarget(target);
}

TEST(EmitTest, EmitsForMachinesThatAreNotThisOne) {
  for (const char* mcpu : {"x86-64", "haswell", "znver3", "skylake-avx512", "sapphirerapids"}) {
    const auto target = ParseTarget(absl::StrCat("v1 cpu mcpu=", mcpu, " l1d=32K l2=1M threads=4"));
    ASSERT_TRUE(target.ok()) << target.status();
    const std::string object = Emit(
        kGemm, "split(t2.a1, [8])\nreorder([t2.r0, t2.a1.1])\nbind(t2.a1.1, vector)\nbind(t2.a0, parallel)\n",
        *target, EmitKind::kObject);
    EXPECT_EQ(object.substr(0, 4),
              "\x7f"
              "ELF");
    const std::string ir = Emit(kGemm, "", *target, EmitKind::kLlvmIr);
    EXPECT_NE(ir.find("define hidden void @gemm_body("), std::string::npos);
    EXPECT_NE(ir.find("define hidden void @gemm_pack_body("), std::string::npos);
  }
}

TEST(EmitTest, RefusesCpusAndFeaturesThatLlvmDoesNotKnow) {
  const auto lowered = LowerTrace(CanonicalWorkload(kGemm), "", AvxTarget());
  ASSERT_TRUE(lowered.ok());
  Target target = AvxTarget();
  target.mcpu = "hal9000";
  absl::Status status = EmitModule({EmitUnit{"gemm", *lowered}}, target, EmitKind::kObject).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("hal9000"), std::string::npos);
  target = AvxTarget();
  target.features = {"+warp-drive"};
  status = EmitModule({EmitUnit{"gemm", *lowered}}, target, EmitKind::kObject).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("warp-drive"), std::string::npos);
}

TEST(EmitTest, TheSameCodeEveryTime) {
  const std::string steps =
      "split(t2.a0, [8])\nbind(t2.a0.0, parallel)\ncache_read(t0, t2, t2.a0.0, local)\n";
  EXPECT_EQ(Emit(kGemm, steps, AvxTarget(), EmitKind::kObject),
            Emit(kGemm, steps, AvxTarget(), EmitKind::kObject));
}

TEST(EmitTest, CallsNothingButOpenMpAndLibm) {
  const std::string text =
      R"(workload w(x: f32[64,40], d: f64[40], h: f16[40]) -> (y: f32[64,40], z: f64[40], g: f16[40]) {
  y[i,j] = exp(x[i,j]) + sin(x[i,j]) + pow(x[i,j], 1.5) + floor(x[i,j])
  z[j] = tanh(d[j])
  g[j] = h[j] * h[j] + sqrt(h[j])
})";
  for (const char* mcpu : {"x86-64", "haswell", "sapphirerapids"}) {
    const auto target = ParseTarget(absl::StrCat("v1 cpu mcpu=", mcpu, " l1d=32K l2=1M threads=4"));
    const std::string assembly =
        Emit(text, "bind(t3.a0, parallel)\nbind(t3.a1, vector)\nbind(t5.a0, vector)\n", *target,
             EmitKind::kAssembly);
    for (const absl::string_view line : absl::StrSplit(assembly, '\n')) {
      if (line.find("\tcall") != 0) continue;
      const std::string callee(line.substr(line.rfind('\t') + 1));
      const std::string name = callee.substr(0, callee.find('@'));
      static const std::vector<std::string> kKnown = {
          "GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "sinf", "tanh", "rint", "floorf"};
      EXPECT_NE(std::ranges::find(kKnown, name), kKnown.end()) << mcpu << ": " << line;
    }
  }
}

}  // namespace
}  // namespace mycc
