// Workloads of every kind that has a rule for GPUs, and the sketch that the rule makes.
#pragma once

namespace mycc {

struct GpuCase {
  const char* name;
  const char* sketch;
  const char* workload;
};

inline constexpr GpuCase kGpuCases[] = {
    {"flat", "elementwise",
     R"(workload e(x: f32[6,50]) -> (y: f32[6,50]) { y[i,j] = 1.0 / (1.0 + exp(-max(x[i,j], 0.0))) })"},
    {"gelu", "elementwise",
     R"(workload e(x: f32[6,50]) -> (y: f32[6,50]) {
          t[i,j]: f32[6,50] = tanh(0.79788456 * (x[i,j] + 0.044715 * x[i,j] * x[i,j] * x[i,j]))
          y[i,j] = 0.5 * x[i,j] * (1.0 + t[i,j]) })"},
    {"broadcast", "elementwise",
     R"(workload e(x: f32[6,50], b: f32[50], s: f32[6]) -> (y: f32[6,50]) { y[i,j] = x[i,j] * s[i] + b[j] })"},
    {"cast", "elementwise", R"(workload e(x: f32[6,48]) -> (y: f16[6,48]) { y[i,j] = f16(x[i,j]) })"},
    {"relu_of_8_bits", "elementwise",
     R"(workload e(x: f8e5m2[6,50]) -> (y: f8e4m3[6,50]) { y[i,j] = f8e4m3(max(x[i,j], 0.0)) })"},
    {"gather", "elementwise",
     R"(workload g(x: f32[40,16], idx: i32[9]) -> (y: f32[9,16]) { y[i,j] = x[clamp(idx[i], 0, 39), j] })"},
    {"shift", "elementwise",
     R"(workload p(x: f32[5,7]) -> (y: f32[5,9]) { y[i,j] = select(1 <= j && j < 8, x[i,j-1], 0.0) })"},
    {"scalar", "elementwise", R"(workload s(x: f32[]) -> (y: f32[]) { y[] = x[] + 1.0 })"},
    {"two_outputs", "elementwise+elementwise",
     R"(workload t(x: f32[70]) -> (y: f32[70], z: f32[70]) {
          e[i]: f32[70] = exp(x[i])
          y[i] = e[i] + 1.0
          z[i] = e[i] * 2.0 })"},
    {"transpose", "transpose", R"(workload t(x: f32[33,50]) -> (y: f32[50,33]) { y[i,j] = x[j,i] })"},
    {"transpose_half", "transpose", R"(workload t(x: f16[72,48]) -> (y: f16[48,72]) { y[i,j] = x[j,i] })"},
    {"transpose_of_8_bits", "transpose",
     R"(workload t(x: f8e4m3[72,48]) -> (y: f8e4m3[48,72]) { y[i,j] = x[j,i] })"},
    {"transpose_cast", "transpose",
     R"(workload t(x: f32[40,48], b: f32[40]) -> (y: f16[48,40]) { y[i,j] = f16(x[j,i] + b[j]) })"},
    {"nchw_to_nhwc", "transpose",
     R"(workload t(x: f32[2,11,5,6]) -> (y: f32[2,5,6,11]) { y[n,i,j,c] = x[n,c,i,j] })"},
    {"heads", "elementwise",
     R"(workload t(x: f16[2,5,3,8]) -> (y: f16[2,3,5,8]) { y[n,h,s,d] = x[n,s,h,d] })"},
    {"symmetric", "elementwise",
     R"(workload t(x: f32[20,20]) -> (y: f32[20,20]) { y[i,j] = x[i,j] + x[j,i] })"},
    {"softmax", "row",
     R"(workload softmax(x: f32[5,37]) -> (y: f32[5,37]) {
          m[i]: f32[5] = max[j:37](x[i,j])
          e[i,j]: f32[5,37] = exp(x[i,j] - m[i])
          s[i]: f32[5] = sum[j:37](e[i,j])
          y[i,j] = e[i,j] / s[i] })"},
    {"softmax_half", "row",
     R"(workload softmax(x: f16[3,5,64]) -> (y: f16[3,5,64]) {
          m[b,i]: f32[3,5] = max[j:64](f32(x[b,i,j]))
          e[b,i,j]: f32[3,5,64] = exp(f32(x[b,i,j]) - m[b,i])
          s[b,i]: f32[3,5] = sum[j:64](e[b,i,j])
          y[b,i,j] = f16(e[b,i,j] / s[b,i]) })"},
    {"quantize_rows", "row+elementwise+elementwise",
     R"(workload q(x: f16[5,304]) -> (q: f8e4m3[5,304], s: f32[5]) {
          m[i]: f32[5] = max[j:304](abs(f32(x[i,j])))
          s[i] = max(m[i], 1e-12) / 448.0
          q[i,j] = f8e4m3(f32(x[i,j]) / s[i]) })"},
    {"layer_norm", "row",
     R"(workload norm(x: f16[6,40], g: f16[40], b: f16[40]) -> (y: f16[6,40]) {
          s[i]: f32[6] = sum[j:40](f32(x[i,j]))
          d[i,j]: f32[6,40] = f32(x[i,j]) - s[i] / 40.0
          v[i]: f32[6] = sum[j:40](d[i,j] * d[i,j])
          y[i,j] = f16(d[i,j] * rsqrt(v[i] / 40.0 + 0.00001) * f32(g[j]) + f32(b[j])) })"},
    {"rms_norm", "row",
     R"(workload norm(x: f16[6,40], g: f16[40]) -> (y: f16[6,40]) {
          v[i]: f32[6] = sum[j:40](f32(x[i,j]) * f32(x[i,j]))
          y[i,j] = f16(f32(x[i,j]) * rsqrt(v[i] / 40.0 + 0.00001) * f32(g[j])) })"},
    {"row_sum", "row", R"(workload r(x: f16[5,300]) -> (y: f32[5]) { y[i] = sum[j:300](f32(x[i,j])) })"},
    {"row_mean", "row",
     R"(workload r(x: f32[50,30]) -> (y: f32[50]) {
          s[i]: f32[50] = sum[j:30](x[i,j])
          y[i] = s[i] / 30.0 })"},
    {"log_sum_exp", "row",
     R"(workload r(x: f32[9,30]) -> (y: f32[9]) {
          m[i]: f32[9] = max[j:30](x[i,j])
          s[i]: f32[9] = sum[j:30](exp(x[i,j] - m[i]))
          y[i] = log(s[i]) + m[i] })"},
    {"row_of_one", "elementwise",
     R"(workload r(x: f32[3,1]) -> (y: f32[3,1]) {
          m[i]: f32[3] = max[j:1](x[i,j])
          y[i,j] = x[i,j] - m[i] })"},
    {"average_pool_nchw", "row",
     R"(workload pool(x: f32[2,9,7,7]) -> (y: f32[2,9]) {
          s[n,c]: f32[2,9] = sum[i:7, j:7](x[n,c,i,j])
          y[n,c] = s[n,c] / 49.0 })"},
    {"full_sum", "row_runs", R"(workload r(x: f32[500]) -> (y: f32[]) { y[] = sum[j:500](x[j]) })"},
    {"one_long_row", "row_runs",
     R"(workload softmax(x: f32[1,20000]) -> (y: f32[1,20000]) {
          m[i]: f32[1] = max[j:20000](x[i,j])
          e[i,j]: f32[1,20000] = exp(x[i,j] - m[i])
          s[i]: f32[1] = sum[j:20000](e[i,j])
          y[i,j] = e[i,j] / s[i] })"},
    {"channel_sums_nchw", "row_runs",
     R"(workload r(x: f32[9,3,60,31]) -> (y: f32[3]) { y[c] = sum[n:9, i:60, j:31](x[n,c,i,j]) })"},
    {"one_column", "row",
     R"(workload d(a: f32[8,10], b: f32[1,10]) -> (c: f32[8,1]) { c[i,j] = sum[k:10](a[i,k] * b[j,k]) })"},
    {"one_column_half", "row",
     R"(workload d(a: f16[4,72], b: f16[1,72]) -> (c: f16[4,1]) {
          s[i,j]: f32[4,1] = sum[k:72](f32(a[i,k]) * f32(b[j,k]))
          c[i,j] = f16(s[i,j]) })"},
    {"dot", "row",
     R"(workload d(a: f32[1,300], b: f32[1,300]) -> (c: f32[1,1]) { c[i,j] = sum[k:300](a[i,k] * b[j,k]) })"},
    {"gemv", "gemv",
     R"(workload g(a: f16[1,64], b: f16[50,64]) -> (c: f16[1,50]) {
          s[i,j]: f32[1,50] = sum[k:64](f32(a[i,k]) * f32(b[j,k]))
          c[i,j] = f16(s[i,j]) })"},
    {"gemv_of_8_bits", "gemv",
     R"(workload v(w: f8e4m3[40,272], x: f8e4m3[272]) -> (y: f16[40]) {
          s[i]: f32[40] = sum[k:272](f32(w[i,k]) * f32(x[k]))
          y[i] = f16(s[i]) })"},
    {"gemv_odd", "gemv",
     R"(workload g(a: f32[50], b: f32[33,50]) -> (c: f32[33]) { c[j] = sum[k:50](a[k] * b[j,k]) })"},
    {"few_rows_bias_relu", "gemv",
     R"(workload g(a: f32[3,50], b: f32[33,50], d: f32[33]) -> (y: f32[3,33]) {
          s[i,j]: f32[3,33] = sum[k:50](a[i,k] * b[j,k])
          y[i,j] = max(s[i,j] + d[j], 0.0) })"},
    {"batched_gemv", "gemv",
     R"(workload g(a: f32[4,1,20], b: f32[4,9,20]) -> (c: f32[4,1,9]) { c[n,i,j] = sum[k:20](a[n,i,k] * b[n,j,k]) })"},
    {"depthwise", "window",
     R"(workload conv(x: f16[1,7,7,24], w: f16[24,3,3], b: f16[24]) -> (y: f16[1,7,7,24]) {
          p[n,i,j,c]: f16[1,9,9,24] = select(1 <= i && i < 8 && 1 <= j && j < 8, x[n,i-1,j-1,c], 0.0)
          a[n,i,j,c]: f32[1,7,7,24] = sum[r:3, s:3](f32(p[n,i+r,j+s,c]) * f32(w[c,r,s]))
          y[n,i,j,c] = f16(max(a[n,i,j,c] + f32(b[c]), 0.0)) })"},
    {"depthwise_nchw", "window",
     R"(workload conv(x: f32[1,5,7,9], w: f32[5,3,3]) -> (y: f32[1,5,7,9]) {
          p[n,c,i,j]: f32[1,5,9,11] = select(1 <= i && i < 8 && 1 <= j && j < 10, x[n,c,i-1,j-1], 0.0)
          y[n,c,i,j] = sum[r:3, s:3](p[n,c,i+r,j+s] * w[c,r,s]) })"},
    {"max_pool", "window",
     R"(workload pool(x: f32[1,9,9,12]) -> (y: f32[1,4,4,12]) { y[n,i,j,c] = max[r:3, s:3](x[n,i*2+r,j*2+s,c]) })"},
    {"grouped", "row",
     R"(workload conv(x: f32[1,6,6,8], w: f32[16,4,3,3]) -> (y: f32[1,4,4,16]) {
          y[n,i,j,k] = sum[c:4, r:3, s:3](x[n,i+r,j+s,(k//8)*4+c] * w[k,c,r,s]) })"},
    {"grouped_wide", "simt",
     R"(workload conv(x: f32[1,6,6,8], w: f32[24,4,3,3], b: f32[24]) -> (y: f32[1,4,4,24]) {
          a[n,i,j,k]: f32[1,4,4,24] = sum[c:4, r:3, s:3](x[n,i+r,j+s,(k//12)*4+c] * w[k,c,r,s])
          y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0) })"},
    {"grouped_nchw", "simt",
     R"(workload conv(x: f32[2,8,6,6], w: f32[24,4,3,3]) -> (y: f32[2,24,4,4]) {
          y[n,k,i,j] = sum[c:4, r:3, s:3](x[n,(k//12)*4+c,i+r,j+s] * w[k,c,r,s]) })"},
    {"channel_multiplier", "simt",
     R"(workload conv(x: f16[2,6,6,3], w: f16[48,3,3]) -> (y: f32[2,4,4,48]) {
          y[n,i,j,k] = sum[r:3, s:3](f32(x[n,i+r,j+s,k//16]) * f32(w[k,r,s])) })"},
    {"grouped_deep", "simt",
     R"(workload g(x: f32[10,800], w: f32[24,400]) -> (y: f32[10,24]) {
          y[i,k] = sum[c:400](x[i,(k//12)*400+c] * w[k,c]) })"},
    {"column_sum", "columns", R"(workload r(x: f32[130,21]) -> (y: f32[21]) { y[j] = sum[i:130](x[i,j]) })"},
    {"long_column_sum", "columns",
     R"(workload r(x: f16[5000,8]) -> (y: f32[8]) { y[j] = sum[i:5000](f32(x[i,j])) })"},
    {"column_sums_of_28", "columns",
     R"(workload r(x: f32[4,70,28]) -> (y: f32[4,28]) {
          s[n,j]: f32[4,28] = sum[i:70](x[n,i,j])
          y[n,j] = max(s[n,j], 0.0) })"},
    {"global_average_pool", "columns",
     R"(workload pool(x: f32[2,9,9,20]) -> (y: f32[2,20]) {
          s[n,c]: f32[2,20] = sum[i:9, j:9](x[n,i,j,c])
          y[n,c] = s[n,c] * 0.012345679 })"},
    {"row_times_matrix", "columns",
     R"(workload g(a: f32[100], b: f32[100,33]) -> (c: f32[33]) { c[j] = sum[k:100](a[k] * b[k,j]) })"},
    {"max_of_columns", "columns", R"(workload r(x: i32[70,5]) -> (y: i32[5]) { y[j] = max[i:70](x[i,j]) })"},
    {"gemm", "simt",
     R"(workload g(a: f32[33,40], b: f32[70,40]) -> (c: f32[33,70]) { c[i,j] = sum[k:40](a[i,k] * b[j,k]) })"},
    {"gemm_odd", "simt",
     R"(workload g(a: f32[35,43], b: f32[71,43]) -> (c: f32[35,71]) { c[i,j] = sum[k:43](a[i,k] * b[j,k]) })"},
    {"gemm_kn_odd", "simt",
     R"(workload g(a: f32[67,45], b: f32[45,67], d: f32[67]) -> (y: f32[67,67]) {
          c[i,j]: f32[67,67] = sum[k:45](a[i,k] * b[k,j])
          y[i,j] = max(c[i,j] + d[j], 0.0) })"},
    {"gemm_km_odd", "simt",
     R"(workload g(a: f32[150,37], b: f32[150,34]) -> (c: f32[37,34]) { c[i,j] = sum[k:150](a[k,i] * b[k,j]) })"},
    {"gemm_kn_bias_relu", "simt",
     R"(workload g(a: f32[64,32], b: f32[32,64], d: f32[64]) -> (y: f32[64,64]) {
          c[i,j]: f32[64,64] = sum[k:32](a[i,k] * b[k,j])
          y[i,j] = max(c[i,j] + d[j], 0.0) })"},
    {"gemm_unit_axis", "simt",
     R"(workload g(a: f32[33,40], b: f32[70,40]) -> (c: f32[33,70,1]) { c[i,j,l] = sum[k:40](a[i,k] * b[j,k]) })"},
    {"gram", "simt",
     R"(workload g(a: f32[33,40]) -> (c: f32[33,33]) { c[i,j] = sum[k:40](a[i,k] * a[j,k]) })"},
    {"gemm_long_k", "simt",
     R"(workload g(a: f32[10,500], b: f32[500,12]) -> (c: f32[10,12]) { c[i,j] = sum[k:500](a[i,k] * b[k,j]) })"},
    {"gemm_ints", "simt",
     R"(workload g(a: i32[19,12], b: i32[12,20]) -> (c: i32[19,20]) { c[i,j] = sum[k:12](a[i,k] * b[k,j]) })"},
    {"gemm_of_two_8_bit_types", "simt",
     R"(workload g(a: f8e4m3[40,48], b: f8e5m2[48,56]) -> (c: f8e5m2[40,56]) {
          s[i,j]: f32[40,56] = sum[k:48](f32(a[i,k]) * f32(b[k,j]))
          c[i,j] = f8e5m2(s[i,j]) })"},
    {"gemm_f64", "simt",
     R"(workload g(a: f64[19,12], b: f64[12,20]) -> (c: f64[19,20]) { c[i,j] = sum[k:12](a[i,k] * b[k,j]) })"},
    {"batched_gemm", "simt",
     R"(workload g(a: f32[3,19,12], b: f32[3,12,20]) -> (c: f32[3,19,20]) { c[n,i,j] = sum[k:12](a[n,i,k] * b[n,k,j]) })"},
    {"conv_nhwc", "simt",
     R"(workload conv(x: f32[1,9,8,6], w: f32[20,6,3,3], b: f32[20]) -> (y: f32[1,9,8,20]) {
          p[n,i,j,c]: f32[1,11,10,6] = select(1 <= i && i < 10 && 1 <= j && j < 9, x[n,i-1,j-1,c], 0.0)
          a[n,i,j,k]: f32[1,9,8,20] = sum[c:6, r:3, s:3](p[n,i+r,j+s,c] * w[k,c,r,s])
          y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0) })"},
    {"conv_nchw_strided", "simt",
     R"(workload conv(x: f32[1,6,19,19], w: f32[10,6,3,3], q: f32[1,10,9,9]) -> (y: f32[1,10,9,9]) {
          a[n,k,i,j]: f32[1,10,9,9] = sum[c:6, r:3, s:3](x[n,c,i*2+r,j*2+s] * w[k,c,r,s])
          y[n,k,i,j] = a[n,k,i,j] + q[n,k,i,j] })"},
    {"argmin_half", "row",
     R"(workload r(x: f16[7,64]) -> (y: i32[7]) { y[i] = argmin[j:64](f32(x[i,j]) * 2.0) })"},
    {"argmax_long", "row_runs", R"(workload r(x: f32[20000]) -> (y: i32[]) { y[] = argmax[j:20000](x[j]) })"},
    {"max_and_place", "row",
     R"(workload r(x: f32[9,70]) -> (y: f32[9]) {
          b[i]: i32[9] = argmax[j:70](x[i,j])
          m[i]: f32[9] = max[j:70](x[i,j])
          y[i] = f32(b[i]) + m[i] })"},
    {"argmax", "row", R"(workload r(x: f32[5,30]) -> (y: i32[5]) { y[i] = argmax[j:30](x[i,j]) })"},
};

// Rows that clusters hold, with odd lengths and what stands around them.
inline constexpr GpuCase kClusterCases[] = {
    {"softmax", "row",
     R"(workload softmax(x: f16[2,8243]) -> (y: f16[2,8243]) {
          m[i]: f32[2] = max[j:8243](f32(x[i,j]))
          e[i,j]: f32[2,8243] = exp(f32(x[i,j]) - m[i])
          s[i]: f32[2] = sum[j:8243](e[i,j])
          y[i,j] = f16(e[i,j] / s[i]) })"},
    {"layer_norm", "row",
     R"(workload norm(x: f16[3,4100], g: f16[4100], b: f16[4100]) -> (y: f16[3,4100]) {
          s[i]: f32[3] = sum[j:4100](f32(x[i,j]))
          d[i,j]: f32[3,4100] = f32(x[i,j]) - s[i] / 4100.0
          v[i]: f32[3] = sum[j:4100](d[i,j] * d[i,j])
          y[i,j] = f16(max(d[i,j] * rsqrt(v[i] / 4100.0 + 0.00001) * f32(g[j]) + f32(b[j]), 0.0)) })"},
    {"rms_norm_of_sum", "row",
     R"(workload norm(x: f32[2,2,2057], r: f32[2,2,2057], g: f32[2057]) -> (y: f32[2,2,2057]) {
          h[b,i,j]: f32[2,2,2057] = x[b,i,j] + r[b,i,j]
          v[b,i]: f32[2,2] = sum[j:2057](h[b,i,j] * h[b,i,j])
          y[b,i,j] = h[b,i,j] * rsqrt(v[b,i] / 2057.0 + 0.00001) * g[j] })"},
    {"row_mean", "row",
     R"(workload r(x: f16[3,8200]) -> (y: f32[3]) {
          s[i]: f32[3] = sum[j:8200](f32(x[i,j]))
          y[i] = s[i] / 8200.0 })"},
    {"row_max", "row", R"(workload r(x: f64[1,4099]) -> (y: f64[1]) { y[i] = max[j:4099](x[i,j]) })"},
    {"argmax", "row", R"(workload r(x: f32[3,4099]) -> (y: i32[3]) { y[i] = argmax[j:4099](x[i,j]) })"},
    {"sum_of_ints", "row", R"(workload r(x: i32[3,2052]) -> (y: i32[3]) { y[i] = sum[j:2052](x[i,j]) })"},
};

}  // namespace mycc
