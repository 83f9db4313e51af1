#include "tests/perf/peer_workloads.h"

namespace mycc {
namespace {

using enum PeerKind;
using enum Epilogue;

constexpr PeerWorkload Gemm(std::string_view name, int m, int n, int k, Epilogue epilogue = kNone) {
  return {.name = name, .kind = kGemm, .m = m, .n = n, .k = k, .epilogue = epilogue};
}

constexpr PeerWorkload Conv(std::string_view name, int h, int c, int out_c, int r, int stride,
                            Epilogue epilogue, int groups = 1) {
  return {.name = name,
          .kind = kConv,
          .h = h,
          .c = c,
          .out_c = out_c,
          .r = r,
          .stride = stride,
          .pad = r / 2,
          .groups = groups,
          .epilogue = epilogue};
}

constexpr PeerWorkload Pool(std::string_view name, PeerKind kind, int h, int c, int r, int stride, int pad) {
  return {.name = name, .kind = kind, .h = h, .c = c, .out_c = c, .r = r, .stride = stride, .pad = pad};
}

constexpr PeerWorkload Rows(std::string_view name, PeerKind kind, int m, int n) {
  return {.name = name, .kind = kind, .m = m, .n = n};
}

constexpr PeerWorkload kWorkloads[] = {
    // suite_cpu_f32.te
    Gemm("gemm_512x512x512", 512, 512, 512),
    Gemm("gemm_1024x1024x1024", 1024, 1024, 1024),
    Gemm("gemm_2048x2048x2048", 2048, 2048, 2048),
    Gemm("gemm_128x768x3072", 128, 768, 3072),
    Gemm("gemm_128x3072x768", 128, 3072, 768),
    Gemm("gemm_1x4096x4096", 1, 4096, 4096),
    Gemm("gemm_16x4096x4096", 16, 4096, 4096),
    Gemm("gemm_3136x64x576", 3136, 64, 576),
    Conv("conv_c3_h224_k64_7x7_s2", 224, 3, 64, 7, 2, kBiasRelu),
    Conv("conv_c64_h56_k64_3x3", 56, 64, 64, 3, 1, kBiasRelu),
    Conv("conv_c128_h28_k128_3x3", 28, 128, 128, 3, 1, kBiasRelu),
    Conv("conv_c256_h14_k256_3x3", 14, 256, 256, 3, 1, kBiasRelu),
    Conv("conv_c512_h7_k512_3x3", 7, 512, 512, 3, 1, kBiasRelu),
    Conv("conv_c64_h56_k256_1x1", 56, 64, 256, 1, 1, kBiasRelu),
    Conv("conv_c256_h56_k64_1x1", 56, 256, 64, 1, 1, kBiasRelu),
    Conv("dwconv_c144_h56_k144_3x3", 56, 144, 144, 3, 1, kBiasRelu, 144),
    Rows("softmax_512x1024", kSoftmax, 512, 1024),
    Rows("softmax_4x50257", kSoftmax, 4, 50257),
    Rows("layernorm_512x1024", kLayerNorm, 512, 1024),
    Rows("layernorm_197x768", kLayerNorm, 197, 768),
    Rows("transpose_4096x1024", kTranspose, 4096, 1024),
    Rows("gelu_1024x4096", kGelu, 1024, 4096),
    // examples/resnet50_b1_f32.te
    Conv("conv1_7x7_s2_3_64", 224, 3, 64, 7, 2, kBiasRelu),
    Pool("pool1_max_3x3_s2", kMaxPool, 112, 64, 3, 2, 1),
    Conv("conv2_1x1_64_64", 56, 64, 64, 1, 1, kBiasRelu),
    Conv("conv2_3x3_64_64", 56, 64, 64, 3, 1, kBiasRelu),
    Conv("conv2_1x1_64_256_add", 56, 64, 256, 1, 1, kBiasAddRelu),
    Conv("conv2_1x1_64_256", 56, 64, 256, 1, 1, kBias),
    Conv("conv2_1x1_256_64", 56, 256, 64, 1, 1, kBiasRelu),
    Conv("conv3_1x1_256_128", 56, 256, 128, 1, 1, kBiasRelu),
    Conv("conv3_3x3_s2_128_128", 56, 128, 128, 3, 2, kBiasRelu),
    Conv("conv3_3x3_128_128", 28, 128, 128, 3, 1, kBiasRelu),
    Conv("conv3_1x1_128_512_add", 28, 128, 512, 1, 1, kBiasAddRelu),
    Conv("conv3_1x1_s2_256_512", 56, 256, 512, 1, 2, kBias),
    Conv("conv3_1x1_512_128", 28, 512, 128, 1, 1, kBiasRelu),
    Conv("conv4_1x1_512_256", 28, 512, 256, 1, 1, kBiasRelu),
    Conv("conv4_3x3_s2_256_256", 28, 256, 256, 3, 2, kBiasRelu),
    Conv("conv4_3x3_256_256", 14, 256, 256, 3, 1, kBiasRelu),
    Conv("conv4_1x1_256_1024_add", 14, 256, 1024, 1, 1, kBiasAddRelu),
    Conv("conv4_1x1_s2_512_1024", 28, 512, 1024, 1, 2, kBias),
    Conv("conv4_1x1_1024_256", 14, 1024, 256, 1, 1, kBiasRelu),
    Conv("conv5_1x1_1024_512", 14, 1024, 512, 1, 1, kBiasRelu),
    Conv("conv5_3x3_s2_512_512", 14, 512, 512, 3, 2, kBiasRelu),
    Conv("conv5_3x3_512_512", 7, 512, 512, 3, 1, kBiasRelu),
    Conv("conv5_1x1_512_2048_add", 7, 512, 2048, 1, 1, kBiasAddRelu),
    Conv("conv5_1x1_s2_1024_2048", 14, 1024, 2048, 1, 2, kBias),
    Conv("conv5_1x1_2048_512", 7, 2048, 512, 1, 1, kBiasRelu),
    Pool("pool5_avg_7x7", kAvgPool, 7, 2048, 7, 1, 0),
    Gemm("fc_2048_1000", 1, 1000, 2048, kBias),
};

}  // namespace

std::span<const PeerWorkload> AllPeerWorkloads() { return kWorkloads; }

const PeerWorkload* FindPeerWorkload(std::string_view name) {
  for (const PeerWorkload& workload : kWorkloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace mycc
