// oneDNN's way of computing each workload. Weights in the layout the library likes best (format any),
// activations as the workload has them, work and weight reordering done before the timing.
#include <cstdio>
#include <dnnl.hpp>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>

#include "tests/perf/peer_workloads.h"
#include "tests/perf/timer.h"

namespace mycc {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using tag = memory::format_tag;
using Args = std::unordered_map<int, memory>;

constexpr auto kF32 = memory::data_type::f32;

// The engine, the stream, and what every primitive here needs of them.
class OneDnn {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  const dnnl::engine& engine() const { return engine_; }

  // Uniform random values in [-1, 1), whatever the layout.
  memory Random(const memory::desc& desc) {
    memory result(desc, engine_);
    auto* values = static_cast<float*>(result.get_data_handle());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t i = 0; i < desc.get_size() / sizeof(float); ++i) values[i] = uniform(random_);
    return result;
  }

  void Time(const PeerWorkload& workload, const char* way, const dnnl::primitive& primitive, const Args& args,
            double budget_seconds) {
    const double milliseconds = MedianMilliseconds(
        [&] {
          primitive.execute(stream_, args);
          stream_.wait();
        },
        budget_seconds);
    std::printf("%s onednn%s %.6f\n", std::string(workload.name).c_str(), way, milliseconds);
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::mt19937 random_{1};
};

memory::desc Matrix(int m, int n, tag layout = tag::ab) { return {{m, n}, kF32, layout}; }
memory::desc Image(int c, int h) { return {{1, c, h, h}, kF32, tag::nhwc}; }
int OutputSize(const PeerWorkload& w) { return (w.h + 2 * w.pad - w.r) / w.stride + 1; }

void TimeGemm(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  const bool bias = w.epilogue != Epilogue::kNone;
  const memory::desc src = Matrix(w.m, w.k), weights = Matrix(w.k, w.n, tag::any), dst = Matrix(w.m, w.n);
  const dnnl::matmul::desc desc =
      bias ? dnnl::matmul::desc(src, weights, Matrix(1, w.n), dst) : dnnl::matmul::desc(src, weights, dst);
  const dnnl::matmul::primitive_desc pd(desc, dnn.engine());
  Args args = {{DNNL_ARG_SRC, dnn.Random(pd.src_desc())},
               {DNNL_ARG_WEIGHTS, dnn.Random(pd.weights_desc())},
               {DNNL_ARG_DST, memory(pd.dst_desc(), dnn.engine())}};
  if (bias) args.emplace(DNNL_ARG_BIAS, dnn.Random(pd.bias_desc()));
  dnn.Time(w, "", dnnl::matmul(pd), args, budget_seconds);
}

// How a residual is added: read from a tensor of its own, or accumulated in place in the output. Users have
// both; each is timed.
enum class Residual { kNone, kBinary, kInPlace };

void TimeConvWay(OneDnn& dnn, const PeerWorkload& w, Residual residual, const char* way,
                 double budget_seconds) {
  const int out = OutputSize(w);
  const memory::dims weight_dims = w.groups == 1
                                       ? memory::dims{w.out_c, w.c, w.r, w.r}
                                       : memory::dims{w.groups, w.out_c / w.groups, w.c / w.groups, w.r, w.r};
  const memory::desc src = Image(w.c, w.h), weights(weight_dims, kF32, tag::any),
                     bias({w.out_c}, kF32, tag::a), dst = Image(w.out_c, out);
  dnnl::post_ops post;
  if (residual == Residual::kBinary) post.append_binary(algorithm::binary_add, dst);
  if (residual == Residual::kInPlace) post.append_sum(1.0f);
  if (w.epilogue != Epilogue::kBias) post.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
  dnnl::primitive_attr attr;
  attr.set_post_ops(post);
  const memory::dims strides = {w.stride, w.stride}, padding = {w.pad, w.pad};
  const dnnl::convolution_forward::primitive_desc pd(
      dnnl::convolution_forward::desc(prop_kind::forward_inference, algorithm::convolution_direct, src,
                                      weights, bias, dst, strides, padding, padding),
      attr, dnn.engine());
  Args args = {{DNNL_ARG_SRC, dnn.Random(pd.src_desc())},
               {DNNL_ARG_WEIGHTS, dnn.Random(pd.weights_desc())},
               {DNNL_ARG_BIAS, dnn.Random(pd.bias_desc())},
               {DNNL_ARG_DST, dnn.Random(pd.dst_desc())}};
  if (residual == Residual::kBinary)
    args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, dnn.Random(dst));
  dnn.Time(w, way, dnnl::convolution_forward(pd), args, budget_seconds);
}

void TimeConv(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  if (w.epilogue == Epilogue::kBiasAddRelu) {
    TimeConvWay(dnn, w, Residual::kBinary, ".binary", budget_seconds);
    TimeConvWay(dnn, w, Residual::kInPlace, ".in_place", budget_seconds);
  } else {
    TimeConvWay(dnn, w, Residual::kNone, "", budget_seconds);
  }
}

void TimePool(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  const algorithm how = w.kind == PeerKind::kMaxPool ? algorithm::pooling_max : algorithm::pooling_avg;
  const dnnl::pooling_forward::primitive_desc pd(
      dnnl::pooling_forward::desc(prop_kind::forward_inference, how, Image(w.c, w.h),
                                  Image(w.c, OutputSize(w)), {w.stride, w.stride}, {w.r, w.r}, {w.pad, w.pad},
                                  {w.pad, w.pad}),
      dnn.engine());
  dnn.Time(w, "", dnnl::pooling_forward(pd),
           {{DNNL_ARG_SRC, dnn.Random(pd.src_desc())}, {DNNL_ARG_DST, memory(pd.dst_desc(), dnn.engine())}},
           budget_seconds);
}

void TimeSoftmax(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  const dnnl::softmax_forward::primitive_desc pd(
      dnnl::softmax_forward::desc(prop_kind::forward_inference, Matrix(w.m, w.n), 1), dnn.engine());
  dnn.Time(w, "", dnnl::softmax_forward(pd),
           {{DNNL_ARG_SRC, dnn.Random(pd.src_desc())}, {DNNL_ARG_DST, memory(pd.dst_desc(), dnn.engine())}},
           budget_seconds);
}

void TimeLayerNorm(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  using flags = dnnl::normalization_flags;
  const dnnl::layer_normalization_forward::primitive_desc pd(
      dnnl::layer_normalization_forward::desc(prop_kind::forward_inference, Matrix(w.m, w.n), 1e-5f,
                                              flags::use_scale | flags::use_shift),
      dnn.engine());
  const memory::desc row({w.n}, kF32, tag::a);
  dnn.Time(w, "", dnnl::layer_normalization_forward(pd),
           {{DNNL_ARG_SRC, dnn.Random(pd.src_desc())},
            {DNNL_ARG_SCALE, dnn.Random(row)},
            {DNNL_ARG_SHIFT, dnn.Random(row)},
            {DNNL_ARG_DST, memory(pd.dst_desc(), dnn.engine())}},
           budget_seconds);
}

void TimeTranspose(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  const memory::desc src = Matrix(w.m, w.n), dst = Matrix(w.m, w.n, tag::ba);
  const dnnl::reorder::primitive_desc pd(dnn.engine(), src, dnn.engine(), dst);
  dnn.Time(w, "", dnnl::reorder(pd),
           {{DNNL_ARG_SRC, dnn.Random(src)}, {DNNL_ARG_DST, memory(dst, dnn.engine())}}, budget_seconds);
}

void TimeGelu(OneDnn& dnn, const PeerWorkload& w, double budget_seconds) {
  const dnnl::eltwise_forward::primitive_desc pd(
      dnnl::eltwise_forward::desc(prop_kind::forward_inference, algorithm::eltwise_gelu_tanh,
                                  Matrix(w.m, w.n), 0.0f, 0.0f),
      dnn.engine());
  dnn.Time(w, "", dnnl::eltwise_forward(pd),
           {{DNNL_ARG_SRC, dnn.Random(pd.src_desc())}, {DNNL_ARG_DST, memory(pd.dst_desc(), dnn.engine())}},
           budget_seconds);
}

}  // namespace

bool TimeOneDnn(const PeerWorkload& workload, double budget_seconds) {
  OneDnn dnn;
  switch (workload.kind) {
    case PeerKind::kGemm: TimeGemm(dnn, workload, budget_seconds); return true;
    case PeerKind::kConv: TimeConv(dnn, workload, budget_seconds); return true;
    case PeerKind::kMaxPool:
    case PeerKind::kAvgPool: TimePool(dnn, workload, budget_seconds); return true;
    case PeerKind::kSoftmax: TimeSoftmax(dnn, workload, budget_seconds); return true;
    case PeerKind::kLayerNorm: TimeLayerNorm(dnn, workload, budget_seconds); return true;
    case PeerKind::kTranspose: TimeTranspose(dnn, workload, budget_seconds); return true;
    case PeerKind::kGelu: TimeGelu(dnn, workload, budget_seconds); return true;
  }
  return false;
}

}  // namespace mycc
