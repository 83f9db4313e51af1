// The workloads that tests of the rules for tensor cores run on.
#pragma once

namespace mycc {

struct Case {
  const char* name;
  const char* workload;
};

// For every kind of tensor cores.
constexpr Case kGemm = {"gemm", R"(workload g(a: bf16[136,72], b: bf16[88,72]) -> (c: bf16[136,88]) {
  s[i,j]: f32[136,88] = sum[k:72](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j]) })"};
constexpr Case kGemmNn = {"gemm_nn", R"(workload g(a: f16[70,64], b: f16[64,136]) -> (c: f16[70,136]) {
  s[i,j]: f32[70,136] = sum[k:64](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = f16(s[i,j]) })"};
constexpr Case kGemmTn = {"gemm_tn", R"(workload g(a: f16[64,72], b: f16[64,136]) -> (c: f16[72,136]) {
  s[i,j]: f32[72,136] = sum[k:64](f32(a[k,i]) * f32(b[k,j]))
  c[i,j] = f16(s[i,j]) })"};

constexpr Case kCases[] = {
    kGemm,
    kGemmNn,
    kGemmTn,
    {"gemm_tt", R"(workload g(a: f16[64,72], b: f16[136,64]) -> (c: f16[72,136]) {
  s[i,j]: f32[72,136] = sum[k:64](f32(a[k,i]) * f32(b[j,k]))
  c[i,j] = f16(s[i,j]) })"},
    {"few_rows", R"(workload g(a: bf16[16,128], b: bf16[200,128], d: bf16[200]) -> (c: bf16[16,200]) {
  s[i,j]: f32[16,200] = sum[k:128](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(max(s[i,j] + f32(d[j]), 0.0)) })"},
    {"deep", R"(workload g(a: bf16[40,2000], b: bf16[72,2000], d: bf16[72]) -> (c: bf16[40,72]) {
  s[i,j]: f32[40,72] = sum[k:2000](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(max(s[i,j] + f32(d[j]), 0.0)) })"},
    {"deep_f32", R"(workload g(a: bf16[40,1024], b: bf16[72,1024]) -> (s: f32[40,72]) {
  s[i,j] = sum[k:1024](f32(a[i,k]) * f32(b[j,k])) })"},
    {"batched", R"(workload g(a: f16[3,72,64], b: f16[3,80,64]) -> (c: f16[3,72,80]) {
  s[g,i,j]: f32[3,72,80] = sum[k:64](f32(a[g,i,k]) * f32(b[g,j,k]))
  c[g,i,j] = f16(s[g,i,j]) })"},
    {"f32_output", R"(workload g(a: f16[72,64], b: f16[40,64], r: f32[72,40]) -> (c: f32[72,40]) {
  s[i,j]: f32[72,40] = sum[k:64](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = s[i,j] + r[i,j] })"},
    {"gemm_e4m3", R"(workload g(a: f8e4m3[72,272], b: f8e4m3[88,272], d: f32[88]) -> (c: bf16[72,88]) {
  s[i,j]: f32[72,88] = sum[k:272](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j] * d[j]) })"},
    {"gemm_e5m2", R"(workload g(a: f8e5m2[72,160], b: f8e5m2[136,160]) -> (c: f8e5m2[72,136]) {
  s[i,j]: f32[72,136] = sum[k:160](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f8e5m2(s[i,j]) })"},
    {"few_rows_e4m3", R"(workload g(a: f8e4m3[16,256], b: f8e4m3[208,256]) -> (c: f8e4m3[16,208]) {
  s[i,j]: f32[16,208] = sum[k:256](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f8e4m3(max(s[i,j] * 0.125, 0.0)) })"},
    {"deep_e4m3", R"(workload g(a: f8e4m3[24,1024], b: f8e4m3[72,1024]) -> (s: f32[24,72]) {
  s[i,j] = sum[k:1024](f32(a[i,k]) * f32(b[j,k])) })"},
    {"conv_3x3_e4m3", R"(workload c(x: f8e4m3[1,6,7,64], w: f8e4m3[40,3,3,64]) -> (y: f16[1,6,7,40]) {
  p[n,i,j,c]: f8e4m3[1,8,9,64] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,7,40] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"},
    {"gemm_i8_scaled", R"(workload g(a: i8[72,160], b: i8[136,160], d: f32[136]) -> (c: i8[72,136]) {
  s[i,j]: i32[72,136] = sum[k:160](i32(a[i,k]) * i32(b[j,k]))
  c[i,j] = i8(clamp(round(f32(s[i,j]) * d[j]), -128.0, 127.0)) })"},
    {"conv_3x3", R"(workload c(x: f16[2,6,7,64], w: f16[40,3,3,64], b: f16[40]) -> (y: f16[2,6,7,40]) {
  p[n,i,j,c]: f16[2,8,9,64] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[2,6,7,40] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"conv_strided", R"(workload c(x: f16[1,13,11,72], w: f16[24,3,3,72]) -> (y: f16[1,6,5,24]) {
  a[n,i,j,k]: f32[1,6,5,24] = sum[r:3, s:3, c:72](f32(x[n,i*2+r,j*2+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"},
    // Operands that are repacked first.
    {"odd", R"(workload g(a: f16[70,131], b: f16[53,131], d: f16[53]) -> (c: f16[70,53]) {
  s[i,j]: f32[70,53] = sum[k:131](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(max(s[i,j] + f32(d[j]), 0.0)) })"},
    {"odd_columns", R"(workload g(a: bf16[70,128], b: bf16[128,53]) -> (c: bf16[70,53]) {
  s[i,j]: f32[70,53] = sum[k:128](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = bf16(s[i,j]) })"},
    {"odd_batches", R"(workload g(a: f16[3,40,65], b: f16[3,65,33]) -> (c: f16[3,40,33]) {
  s[g,i,j]: f32[3,40,33] = sum[k:65](f32(a[g,i,k]) * f32(b[g,k,j]))
  c[g,i,j] = f16(s[g,i,j]) })"},
    {"conv_nchw", R"(workload c(x: f16[2,40,6,7], w: f16[24,40,3,3], b: f16[24]) -> (y: f16[2,24,6,7]) {
  p[n,c,i,j]: f16[2,40,8,9] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[2,24,6,7] = sum[c:40, r:3, s:3](f32(p[n,c,i+r,j+s]) * f32(w[k,c,r,s]))
  y[n,k,i,j] = f16(max(a[n,k,i,j] + f32(b[k]), 0.0)) })"},
    // Groups, in the channel or along an axis of their own; tiles of depth as deep as a group, or parts of
    // it.
    {"groups_nhwc", R"(workload c(x: f16[1,6,5,192], w: f16[96,3,3,64], b: f16[96]) -> (y: f16[1,6,5,96]) {
  p[n,i,j,c]: f16[1,8,7,192] = select(1 <= i && 1 <= j && i < 7 && j < 6, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,5,96] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,(k//32)*64+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"groups_of_24_columns", R"(workload c(x: f16[1,5,5,64], w: f16[48,3,3,32]) -> (y: f16[1,3,3,48]) {
  a[n,i,j,k]: f32[1,3,3,48] = sum[r:3, s:3, c:32](f32(x[n,i+r,j+s,(k//24)*32+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"},
    {"groups_nchw", R"(workload c(x: f16[2,96,4,5], w: f16[60,32,3,3], b: f16[60]) -> (y: f16[2,60,4,5]) {
  p[n,c,i,j]: f16[2,96,6,7] = select(1 <= i && 1 <= j && i < 5 && j < 6, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[2,60,4,5] = sum[c:32, r:3, s:3](f32(p[n,(k//20)*32+c,i+r,j+s]) * f32(w[k,c,r,s]))
  y[n,k,i,j] = f16(max(a[n,k,i,j] + f32(b[k]), 0.0)) })"},
    {"group_axis_nhwc", R"(workload c(x: f16[1,6,5,192], w: f16[3,32,3,3,64]) -> (y: f16[1,6,5,3,32]) {
  p[n,i,j,c]: f16[1,8,7,192] = select(1 <= i && 1 <= j && i < 7 && j < 6, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,g,k]: f32[1,6,5,3,32] = sum[r:3, s:3, c:64](f32(p[n,i+r,j+s,g*64+c]) * f32(w[g,k,r,s,c]))
  y[n,i,j,g,k] = f16(a[n,i,j,g,k]) })"},
    {"group_axes_of_both", R"(workload c(x: f16[1,6,5,3,40], w: f16[3,24,3,3,40]) -> (y: f16[1,4,3,3,24]) {
  a[n,i,j,g,k]: f32[1,4,3,3,24] = sum[r:3, s:3, c:40](f32(x[n,i+r,j+s,g,c]) * f32(w[g,k,r,s,c]))
  y[n,i,j,g,k] = f16(a[n,i,j,g,k]) })"},
    {"group_axis_nchw", R"(workload c(x: f16[1,3,40,5,5], w: f16[3,24,40,3,3]) -> (y: f16[1,3,24,3,3]) {
  a[n,g,k,i,j]: f32[1,3,24,3,3] = sum[c:40, r:3, s:3](f32(x[n,g,c,i+r,j+s]) * f32(w[g,k,c,r,s]))
  y[n,g,k,i,j] = f16(a[n,g,k,i,j]) })"},
    {"grouped_gemm", R"(workload g(x: bf16[70,96], w: bf16[64,48]) -> (y: bf16[70,64]) {
  a[i,k]: f32[70,64] = sum[c:48](f32(x[i,(k//32)*48+c]) * f32(w[k,c]))
  y[i,k] = bf16(a[i,k]) })"},
    // Both operands of one tensor; axes of one element.
    {"gram", R"(workload g(a: f16[72,136]) -> (y: f16[72,72]) {
  s[i,j]: f32[72,72] = sum[k:136](f32(a[i,k]) * f32(a[j,k]))
  y[i,j] = f16(s[i,j]) })"},
    {"square", R"(workload g(a: f16[72,72]) -> (y: f32[72,72]) {
  y[i,j] = sum[k:72](f32(a[i,k]) * f32(a[k,j])) })"},
    {"gram_odd", R"(workload g(a: f16[37,131]) -> (y: f32[37,37]) {
  y[i,j] = sum[k:131](f32(a[i,k]) * f32(a[j,k])) })"},
    {"unit_axes", R"(workload g(a: f16[1,40,1,64], b: f16[24,1,64]) -> (y: f32[1,40,24,1]) {
  y[n,i,j,m] = sum[l:1, k:64](f32(a[n,i,l,k]) * f32(b[j,m,k])) })"},
    {"deep_groups", R"(workload g(x: bf16[33,2048], w: bf16[64,1024]) -> (y: bf16[33,64]) {
  a[i,k]: f32[33,64] = sum[c:1024](f32(x[i,(k//32)*1024+c]) * f32(w[k,c]))
  y[i,k] = bf16(a[i,k]) })"},
};

// For sm_80, and where the copy engine cannot.
constexpr Case kMultistageCases[] = {
    kGemm,
    kGemmNn,
    kGemmTn,
    {"odd", R"(workload g(a: f16[37,61], b: f16[53,61], d: f16[53]) -> (c: f16[37,53]) {
  s[i,j]: f32[37,53] = sum[k:61](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f16(max(s[i,j] + f32(d[j]), 0.0)) })"},
    {"stem", R"(workload c(x: f16[1,20,18,3], w: f16[24,7,7,3], b: f16[24]) -> (y: f16[1,10,9,24]) {
  p[n,i,j,c]: f16[1,25,23,3] = select(3 <= i && 3 <= j && i < 23 && j < 21, x[n,i-3,j-3,c], 0.0)
  a[n,i,j,k]: f32[1,10,9,24] = sum[r:7, s:7, c:3](f32(p[n,i*2+r,j*2+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"conv_3x3", R"(workload c(x: f16[2,6,7,24], w: f16[40,3,3,24], b: f16[40]) -> (y: f16[2,6,7,40]) {
  p[n,i,j,c]: f16[2,8,9,24] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[2,6,7,40] = sum[r:3, s:3, c:24](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"gemm_tt", R"(workload g(a: f16[64,72], b: f16[136,64]) -> (c: f16[72,136]) {
  s[i,j]: f32[72,136] = sum[k:64](f32(a[k,i]) * f32(b[j,k]))
  c[i,j] = f16(s[i,j]) })"},
    {"deep", R"(workload g(a: bf16[40,1001], b: bf16[72,1001], d: bf16[72]) -> (c: bf16[40,72]) {
  s[i,j]: f32[40,72] = sum[k:1001](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(max(s[i,j] + f32(d[j]), 0.0)) })"},
    {"odd_weights", R"(workload g(a: f16[37,64], b: const f16[64,53]) -> (c: f16[37,53]) {
  s[i,j]: f32[37,53] = sum[k:64](f32(a[i,k]) * f32(b[k,j]))
  c[i,j] = f16(s[i,j]) })"},
    {"conv_odd", R"(workload c(x: f16[2,6,7,25], w: f16[40,3,3,25], b: f16[40]) -> (y: f16[2,6,7,40]) {
  p[n,i,j,c]: f16[2,8,9,25] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[2,6,7,40] = sum[r:3, s:3, c:25](f32(p[n,i+r,j+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"conv_nchw", R"(workload c(x: f16[2,12,9,11], w: f16[24,12,3,3]) -> (y: f16[2,24,4,5]) {
  a[n,k,i,j]: f32[2,24,4,5] = sum[c:12, r:3, s:3](f32(x[n,c,i*2+r,j*2+s]) * f32(w[k,c,r,s]))
  y[n,k,i,j] = f16(a[n,k,i,j]) })"},
    {"gemm_tf32", R"(workload g(a: f32[136,72], b: f32[88,72]) -> (s: f32[136,88]) {
  s[i,j] = sum[k:72](tf32(a[i,k]) * tf32(b[j,k])) })"},
    {"gemm_nn_tf32", R"(workload g(a: f32[70,64], b: f32[64,136], d: f32[136]) -> (c: f32[70,136]) {
  s[i,j]: f32[70,136] = sum[k:64](tf32(a[i,k]) * tf32(b[k,j]))
  c[i,j] = max(s[i,j] + d[j], 0.0) })"},
    {"gemm_tn_tf32", R"(workload g(a: f32[64,72], b: f32[64,136]) -> (s: f32[72,136]) {
  s[i,j] = sum[k:64](tf32(a[k,i]) * tf32(b[k,j])) })"},
    {"odd_tf32", R"(workload g(a: f32[37,61], b: f32[53,61]) -> (s: f32[37,53]) {
  s[i,j] = sum[k:61](tf32(a[i,k]) * tf32(b[j,k])) })"},
    {"conv_3x3_tf32", R"(workload c(x: f32[2,6,7,24], w: f32[40,3,3,24], b: f32[40]) -> (y: f32[2,6,7,40]) {
  p[n,i,j,c]: f32[2,8,9,24] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[2,6,7,40] = sum[r:3, s:3, c:24](tf32(p[n,i+r,j+s,c]) * tf32(w[k,r,s,c]))
  y[n,i,j,k] = max(a[n,i,j,k] + b[k], 0.0) })"},
    {"gemm_i8", R"(workload g(a: i8[136,96], b: i8[88,96]) -> (s: i32[136,88]) {
  s[i,j] = sum[k:96](i32(a[i,k]) * i32(b[j,k])) })"},
    {"odd_i8", R"(workload g(a: i8[37,61], b: i8[53,61], d: f32[53]) -> (c: i8[37,53]) {
  s[i,j]: i32[37,53] = sum[k:61](i32(a[i,k]) * i32(b[j,k]))
  c[i,j] = i8(clamp(round(f32(s[i,j]) * 0.001 + d[j]), -128.0, 127.0)) })"},
    {"gemm_nn_i8", R"(workload g(a: i8[136,96], b: i8[96,88]) -> (s: i32[136,88]) {
  s[i,j] = sum[k:96](i32(a[i,k]) * i32(b[k,j])) })"},
    {"batched_i8", R"(workload g(a: i8[3,40,64], b: i8[3,24,64]) -> (s: i32[3,40,24]) {
  s[g,i,j] = sum[k:64](i32(a[g,i,k]) * i32(b[g,j,k])) })"},
    {"stem_i8", R"(workload c(x: i8[1,20,18,3], w: i8[24,7,7,3]) -> (y: i32[1,10,9,24]) {
  p[n,i,j,c]: i8[1,25,23,3] = select(3 <= i && 3 <= j && i < 23 && j < 21, x[n,i-3,j-3,c], 0)
  y[n,i,j,k] = sum[r:7, s:7, c:3](i32(p[n,i*2+r,j*2+s,c]) * i32(w[k,r,s,c])) })"},
    {"conv_3x3_i8", R"(workload c(x: i8[2,6,7,48], w: i8[40,3,3,48], b: i32[40]) -> (y: f16[2,6,7,40]) {
  p[n,i,j,c]: i8[2,8,9,48] = select(1 <= i && 1 <= j && i < 7 && j < 8, x[n,i-1,j-1,c], 0)
  a[n,i,j,k]: i32[2,6,7,40] = sum[r:3, s:3, c:48](i32(p[n,i+r,j+s,c]) * i32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(f32(a[n,i,j,k] + b[k]) * 0.001, 0.0)) })"},
    {"groups_nhwc", R"(workload c(x: f16[1,6,5,48], w: f16[72,3,3,16], b: f16[72]) -> (y: f16[1,6,5,72]) {
  p[n,i,j,c]: f16[1,8,7,48] = select(1 <= i && 1 <= j && i < 7 && j < 6, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,5,72] = sum[r:3, s:3, c:16](f32(p[n,i+r,j+s,(k//24)*16+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"groups_odd", R"(workload c(x: f16[1,6,5,39], w: f16[33,3,3,13], b: f16[33]) -> (y: f16[1,6,5,33]) {
  p[n,i,j,c]: f16[1,8,7,39] = select(1 <= i && 1 <= j && i < 7 && j < 6, x[n,i-1,j-1,c], 0.0)
  a[n,i,j,k]: f32[1,6,5,33] = sum[r:3, s:3, c:13](f32(p[n,i+r,j+s,(k//11)*13+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(max(a[n,i,j,k] + f32(b[k]), 0.0)) })"},
    {"groups_of_4", R"(workload c(x: f16[1,6,5,16], w: f16[16,3,3,4]) -> (y: f16[1,4,3,16]) {
  a[n,i,j,k]: f32[1,4,3,16] = sum[r:3, s:3, c:4](f32(x[n,i+r,j+s,(k//4)*4+c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"},
    {"groups_nchw", R"(workload c(x: f16[2,24,9,7], w: f16[32,12,3,3]) -> (y: f16[2,32,4,3]) {
  a[n,k,i,j]: f32[2,32,4,3] = sum[c:12, r:3, s:3](f32(x[n,(k//16)*12+c,i*2+r,j*2+s]) * f32(w[k,c,r,s]))
  y[n,k,i,j] = f16(a[n,k,i,j]) })"},
    {"groups_nchw_odd", R"(workload c(x: f16[1,10,5,7], w: f16[24,5,3,3]) -> (y: f16[1,24,5,7]) {
  p[n,c,i,j]: f16[1,10,7,9] = select(1 <= i && 1 <= j && i < 6 && j < 8, x[n,c,i-1,j-1], 0.0)
  a[n,k,i,j]: f32[1,24,5,7] = sum[c:5, r:3, s:3](f32(p[n,(k//12)*5+c,i+r,j+s]) * f32(w[k,c,r,s]))
  y[n,k,i,j] = f16(a[n,k,i,j]) })"},
    {"group_axis_nhwc", R"(workload c(x: f16[1,6,5,39], w: f16[3,11,3,3,13]) -> (y: f16[1,4,3,3,11]) {
  a[n,i,j,g,k]: f32[1,4,3,3,11] = sum[r:3, s:3, c:13](f32(x[n,i+r,j+s,g*13+c]) * f32(w[g,k,r,s,c]))
  y[n,i,j,g,k] = f16(a[n,i,j,g,k]) })"},
    {"group_axis_nchw", R"(workload c(x: f16[1,2,12,5,5], w: f16[2,24,12,3,3]) -> (y: f16[1,2,24,3,3]) {
  a[n,g,k,i,j]: f32[1,2,24,3,3] = sum[c:12, r:3, s:3](f32(x[n,g,c,i+r,j+s]) * f32(w[g,k,c,r,s]))
  y[n,g,k,i,j] = f16(a[n,g,k,i,j]) })"},
    {"gram", R"(workload g(a: f16[24,37]) -> (y: f16[37,37]) {
  s[i,j]: f32[37,37] = sum[k:24](f32(a[k,i]) * f32(a[k,j]))
  y[i,j] = f16(s[i,j]) })"},
    {"gram_shifted", R"(workload g(a: f16[45,24]) -> (y: f32[37,37]) {
  y[i,j] = sum[k:24](f32(a[i,k]) * f32(a[j+8,k])) })"},
    {"gram_i8", R"(workload g(a: i8[48,40]) -> (y: i32[40,40]) {
  y[i,j] = sum[k:48](i32(a[k,i]) * i32(a[k,j])) })"},
    {"unit_axes", R"(workload g(a: f16[1,37,1,64], b: f16[24,1,64]) -> (y: f32[1,37,24,1]) {
  y[n,i,j,m] = sum[l:1, k:64](f32(a[n,i,l,k]) * f32(b[j,m,k])) })"},
    {"deep_groups", R"(workload g(x: f16[33,1002], w: f16[64,501]) -> (y: f16[33,64]) {
  a[i,k]: f32[33,64] = sum[c:501](f32(x[i,(k//32)*501+c]) * f32(w[k,c]))
  y[i,k] = f16(a[i,k]) })"},
    {"groups_tf32", R"(workload c(x: f32[1,6,5,24], w: f32[36,3,3,8]) -> (y: f32[1,4,3,36]) {
  y[n,i,j,k] = sum[r:3, s:3, c:8](tf32(x[n,i+r,j+s,(k//12)*8+c]) * tf32(w[k,r,s,c])) })"},
    {"groups_i8", R"(workload c(x: i8[1,6,5,96], w: i8[36,3,3,32]) -> (y: i32[1,4,3,36]) {
  y[n,i,j,k] = sum[r:3, s:3, c:32](i32(x[n,i+r,j+s,(k//12)*32+c]) * i32(w[k,r,s,c])) })"},
};

// For sm_89, the first that has them.
constexpr Case kFloat8Cases[] = {
    {"gemm", R"(workload g(a: f8e4m3[136,272], b: f8e4m3[88,272], d: f32[88]) -> (c: bf16[136,88]) {
  s[i,j]: f32[136,88] = sum[k:272](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = bf16(s[i,j] * d[j]) })"},
    {"odd", R"(workload g(a: f8e5m2[37,61], b: f8e5m2[53,61]) -> (c: f8e4m3[37,53]) {
  s[i,j]: f32[37,53] = sum[k:61](f32(a[i,k]) * f32(b[j,k]))
  c[i,j] = f8e4m3(s[i,j]) })"},
    {"stem", R"(workload c(x: f8e4m3[1,20,18,3], w: f8e4m3[24,7,7,3]) -> (y: f16[1,10,9,24]) {
  p[n,i,j,c]: f8e4m3[1,25,23,3] = select(3 <= i && 3 <= j && i < 23 && j < 21, x[n,i-3,j-3,c], 0.0)
  a[n,i,j,k]: f32[1,10,9,24] = sum[r:7, s:7, c:3](f32(p[n,i*2+r,j*2+s,c]) * f32(w[k,r,s,c]))
  y[n,i,j,k] = f16(a[n,i,j,k]) })"},
};

}  // namespace mycc
