// The kernels into which faults are planted: workloads with traces that use every kind of statement.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/status.h"
#include "codegen/schedule/schedule.h"
#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "tests/passes/tensor_core_traces.h"
#include "tests/perf/planted/kernel.h"
#include "tuner/space/space.h"

namespace mycc::planted {
namespace {

constexpr char kHaswell[] = "v1 cpu mcpu=haswell l1d=32K l2=512K threads=2";
constexpr char kAvx512[] = "v1 cpu mcpu=znver4 l1d=32K l2=1M threads=2";
constexpr char kAmx[] = "v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2";
constexpr char kHopper[] = "h200";
constexpr char kAmpere[] = "a100";

// A product of halves with a bias, rows by rows.
std::string HalfProduct(int m, int n, int k) {
  return absl::Substitute(R"(workload g(a: f16[$0,$2], b: f16[$1,$2], d: f16[$1]) -> (c: f16[$0,$1]) {
  s[i,j]: f32[$0,$1] = sum[k:$2](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(max(s[i,j] + f32(d[j]), 0.0))
})",
                          m, n, k);
}

std::string Softmax(int rows, int columns) {
  return absl::Substitute(R"(workload softmax(x: f32[$0,$1]) -> (y: f32[$0,$1]) {
  m[i]: f32[$0] = max[j:$1](x[i,j])
  e[i,j]: f32[$0,$1] = exp(x[i,j] - m[i])
  s[i]: f32[$0] = sum[j:$1](e[i,j])
  y[i,j] = e[i,j] / s[i]
})",
                          rows, columns);
}

// Tiles of 64 rows for each warpgroup, 32 columns and a depth of 64 of a half product, through a ring of
// three. `deal` says how blocks share the tiles.
std::string Ring(const std::string& deal, int warpgroups = 1) {
  return WarpSpecializedTrace({64 * warpgroups, 32, 64}, warpgroups, /*slots=*/3, deal);
}

// Every thread copies; after a barrier each computes from the elements that the others copied.
constexpr char kTiles[] = R"(split(t2.a0, [8, 4])
split(t2.a1, [8, 4])
split(t2.r0, [16])
reorder([t2.a0.0, t2.a1.0, t2.a0.1, t2.a1.1, t2.r0.0, t2.r0.1, t2.a0.2, t2.a1.2])
bind(t2.a0.0, block)
bind(t2.a1.0, block)
cache_write(t2, t2.a1.0)
reorder([t2.r0.0, t2.a0.1, t2.a1.1])
bind(t2.a0.1, thread)
bind(t2.a1.1, thread)
bind(t2.i.a0.1, thread)
bind(t2.i.a1.1, thread)
bind(t2.w.a0.1, thread)
bind(t2.w.a1.1, thread)
bind(t2.w.a1.2, vector)
bind(t2.r0.1, unroll)
cache_read(t0, t2, t2.r0.0, shared)
layout(t0.r, 4, 0)
fuse([t0.r.a0, t0.r.a1])
split(t0.r.a0+r.a1, [64, 4])
bind(t0.r.a0+r.a1.1, thread)
bind(t0.r.a0+r.a1.2, vector)
cache_read(t1, t2, t2.r0.0, shared)
fuse([t1.r.a0, t1.r.a1])
split(t1.r.a0+r.a1, [64, 4])
bind(t1.r.a0+r.a1.1, thread)
bind(t1.r.a0+r.a1.2, vector)
)";
constexpr char kTurned[] = R"(split(t2.a0, [4, 8])
split(t2.a1, [32])
reorder([t2.a0.0, t2.a1.0, t2.a0.2, t2.a1.1, t2.a0.1])
bind(t2.a0.0, block)
bind(t2.a1.0, block)
cache_read(t0, t2, t2.a1.0, shared)
layout(t0.r, 1, 0)
split(t0.r.a0, [8])
reorder([t0.r.a0.1, t0.r.a1, t0.r.a0.0])
bind(t0.r.a0.1, thread)
bind(t0.r.a1, thread)
bind(t0.r.a0.0, unroll)
bind(t2.a0.2, thread)
bind(t2.a1.1, thread)
bind(t2.a0.1, unroll)
)";

constexpr char kProduct[] = R"(workload g(a: f32[37,70], b: f32[70,45], d: f32[45]) -> (c: f32[37,45]) {
  s[i,j]: f32[37,45] = sum[k:70](a[i,k] * b[k,j])
  c[i,j] = max(s[i,j] + d[j], 0.0)
})";
constexpr char kWeights[] =
    R"(workload g(a: f32[19,40], b: const f32[50,40], d: const f32[50]) -> (c: f32[19,50]) {
  s[i,j]: f32[19,50] = sum[k:40](a[i,k] * b[j,k])
  c[i,j] = s[i,j] * 0.5 + d[j]
})";
constexpr char kBf16[] = R"(workload g(a: bf16[40,72], b: const bf16[48,72]) -> (c: f32[40,48]) {
  c[i,j] = sum[k:72](f32(a[i,k]) * f32(b[j,k]))
})";
constexpr char kBytes[] = R"(workload g(a: u8[21,72], b: const i8[40,72]) -> (c: i32[21,40]) {
  c[i,j] = sum[k:72](i32(a[i,k]) * i32(b[j,k]))
})";
constexpr char kConvolution[] =
    R"(workload c(x: f32[1,7,9,12], w: const f32[20,3,3,12], b: const f32[20]) -> (y: f32[1,7,9,20]) {
  p[n,i,j,c]: f32[1,9,11,12] = select(1 <= i && 1 <= j && i < 8 && j < 10, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,7,9,20] = sum[r:3, s:3, c:12](p[n,i+r,j+s,c] * w[k,r,s,c])
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0)
})";
constexpr char kDepthwise[] = R"(workload c(x: f32[1,9,8,20], w: f32[20,3,3]) -> (y: f32[1,7,6,20]) {
  y[n,i,j,c] = sum[r:3, s:3](x[n,i+r,j+s,c] * w[c,r,s])
})";
constexpr char kSquares[] =
    R"(workload c(x: f32[1,6,7,32], w: const f32[32,3,3,32]) -> (y: f32[1,6,7,32]) {
  p[n,i,j,c]: f32[1,8,9,32] = select(1 <= i && i < 7 && 1 <= j && j < 8, x[n,i-1,j-1,c], 0.0)
  y[n,i,j,k] = sum[r:3, s:3, c:32](p[n,i+r,j+s,c] * w[k,r,s,c])
})";
constexpr char kNorm[] = R"(workload norm(x: f32[5,203], g: f32[203], b: f32[203]) -> (y: f32[5,203]) {
  m[i]: f32[5] = sum[j:203](x[i,j])
  d[i,j]: f32[5,203] = x[i,j] - m[i] / 203.0
  v[i]: f32[5] = sum[j:203](d[i,j] * d[i,j])
  y[i,j] = d[i,j] * rsqrt(v[i] / 203.0 + 0.00001) * g[j] + b[j]
})";
constexpr char kColumns[] = R"(workload columns(x: f32[90,70]) -> (y: f32[70]) {
  y[j] = sum[i:90](x[i,j])
})";
constexpr char kWholeSum[] = R"(workload all(x: f32[2100]) -> (y: f32[]) {
  y[] = sum[i:2100](x[i])
})";
constexpr char kVector[] = R"(workload v(a: f32[30,120], x: f32[120]) -> (y: f32[30]) {
  y[i] = sum[k:120](a[i,k] * x[k])
})";
constexpr char kBest[] = R"(workload best(x: f32[60,41]) -> (y: i32[60]) {
  y[i] = argmax[j:41](x[i,j])
})";
constexpr char kShift[] = R"(workload shift(x: f32[9,37], b: f32[37]) -> (y: f32[9,43]) {
  y[i,j] = select(2 <= j && j < 39, x[i,j-2] - b[j-2], 0.0)
})";
constexpr char kGates[] = R"(workload gates(x: f32[13,50], g: f32[13,50], b: f32[50]) -> (y: f32[13,50]) {
  y[i,j] = max(x[i,j], 0.0) / (1.0 + exp(b[j] - g[i,j]))
})";
constexpr char kTranspose[] = R"(workload t(x: f32[45,70], b: f32[45]) -> (y: f32[70,45]) {
  y[i,j] = x[j,i] + b[j]
})";
constexpr char kDeep[] = R"(workload g(a: bf16[40,1000], b: bf16[40,1000]) -> (c: f32[40,40]) {
  c[i,j] = sum[k:1000](f32(a[i,k]) * f32(b[j,k]))
})";
constexpr char kImages[] =
    R"(workload c(x: f16[1,6,7,24], w: f16[40,3,3,24], b: f16[40]) -> (y: f16[1,6,7,40]) {
  p[n,i,j,c]: f16[1,8,9,24] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,7,40] = sum[r:3, s:3, c:24](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0))
})";
constexpr char kPlain[] = R"(workload g(a: f32[70,90], b: f32[90,75]) -> (c: f32[70,75]) {
  c[i,j] = sum[k:90](a[i,k] * b[k,j])
})";
constexpr char kShallow[] = R"(workload g(a: f32[70,40], b: f32[40,64]) -> (c: f32[70,64]) {
  c[i,j] = sum[k:40](a[i,k] * b[k,j])
})";

}  // namespace

const std::vector<Recipe>& Recipes() {
  static const auto& recipes = *new std::vector<Recipe>{
      {"product on AVX2", kHaswell, kProduct, "contraction", ""},
      {"product on AVX-512", kAvx512, kProduct, "contraction", ""},
      {"product with weights", kHaswell, kWeights, "contraction", ""},
      {"product in tile registers", kAmx, kBf16, "contraction", ""},
      {"product of bytes", kAvx512, kBytes, "contraction", ""},
      {"convolution", kHaswell, kConvolution, "contraction", ""},
      {"convolution by Winograd", kHaswell, kSquares, "winograd", ""},
      {"depthwise convolution", kHaswell, kDepthwise, "", ""},
      {"matrix times vector", kHaswell, kVector, "", ""},
      {"softmax", kHaswell, Softmax(7, 150), "", ""},
      {"softmax of rows too long for a stack", kHaswell, Softmax(3, 9000), "", ""},
      {"norm", kAvx512, kNorm, "", ""},
      {"sums of columns", kHaswell, kColumns, "", ""},
      {"places of the best", kHaswell, kBest, "", ""},
      {"shift", kHaswell, kShift, "", ""},
      {"gates", kAvx512, kGates, "", ""},
      {"transpose", kHaswell, kTranspose, "", ""},
      {"GPU product", kHopper, kPlain, "simt", "", true},
      {"GPU product, tiles in shared memory", kHopper, kShallow, "", kTiles, true},
      {"GPU product, threads copy ahead", kAmpere, HalfProduct(72, 40, 200), "",
       MultistageTrace({64, 32, 32}), true},
      {"GPU product, a ring", kHopper, HalfProduct(130, 56, 440), "",
       Ring("persist(t3.a0.0+a1.0, 3)\n", /*warpgroups=*/2), true},
      {"GPU product, warps take turns", kHopper, HalfProduct(194, 40, 312), "",
       Ring("persist(t3.a0.0+a1.0, 2)\npingpong(t3.a0.0+a1.0, 2)\n"), true},
      {"GPU product, a cluster", kHopper, HalfProduct(130, 56, 440), "",
       InClustersOfTwo(Ring("persist(t3.a0.0+a1.0, 2)\n")), true},
      {"GPU product, shared out by steps", kHopper, HalfProduct(130, 56, 440), "",
       Ring("stream_k(t3.a0.0+a1.0, 5, 1, 5)\n"), true},
      {"GPU product, odd", kAmpere, HalfProduct(37, 53, 61), "", ""},
      {"GPU product, deep", kAmpere, kDeep, "", ""},
      {"GPU convolution", kHopper, kImages, "", ""},
      {"GPU softmax", kHopper, Softmax(7, 150), "row", ""},
      {"GPU norm", kHopper, kNorm, "row", ""},
      {"GPU sums of columns", kHopper, kColumns, "", "", true},
      {"GPU sum of all", kHopper, kWholeSum, "", "", true},
      {"GPU places of the best", kHopper, kBest, "", ""},
      {"GPU shift", kHopper, kShift, "elementwise", ""},
      {"GPU gates", kHopper, kGates, "elementwise", ""},
      {"GPU transpose", kHopper, kTranspose, "transpose", "", true},
      {"GPU transpose, a tile in shared memory", kHopper, kTranspose, "", kTurned, true},
  };
  return recipes;
}

absl::StatusOr<Kernel> Make(const Recipe& recipe) {
  Kernel kernel;
  kernel.name = recipe.name;
  kernel.barriers_matter = recipe.barriers_matter;
  MYCC_ASSIGN_OR_RETURN(kernel.target, ParseTarget(recipe.target));
  MYCC_ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(recipe.workload, recipe.name));
  kernel.workload = Canonicalize(workload);
  Trace trace;
  const std::string& wanted = recipe.sketch;
  if (!recipe.trace.empty()) {
    MYCC_ASSIGN_OR_RETURN(trace, ParseTrace("v1\n" + recipe.trace));
  } else {
    const std::vector<Sketch> sketches = GenerateSketches(kernel.workload, kernel.target);
    const auto found = std::ranges::find_if(
        sketches, [&wanted](const Sketch& sketch) { return absl::StartsWith(sketch.name, wanted); });
    if (found == sketches.end())
      return absl::NotFoundError(
          absl::StrCat(recipe.name, ": no sketch ", wanted, "; the first is ", sketches[0].name));
    MYCC_ASSIGN_OR_RETURN(trace, found->instantiate(found->default_choice));
  }
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(kernel.workload, kernel.target, trace));
  MYCC_ASSIGN_OR_RETURN(kernel.code, Lower(schedule.function(), kernel.target));
  kernel.inputs = RandomInputs(kernel.workload, 7);
  MYCC_ASSIGN_OR_RETURN(kernel.expected, RunReference(kernel.workload, kernel.inputs));
  return kernel;
}

}  // namespace mycc::planted
