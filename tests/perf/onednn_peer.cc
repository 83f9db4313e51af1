// oneDNN's way of computing each workload. Weights in the layout the library likes best (format any),
// activations as the workload has them, work and weight reordering done before the timing.
#include <algorithm>
#include <cstdio>
#include <dnnl.hpp>
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
constexpr auto kS32 = memory::data_type::s32;

memory::data_type TypeOf(PeerType type) {
  switch (type) {
    case PeerType::kF32: return kF32;
    case PeerType::kBf16: return memory::data_type::bf16;
    case PeerType::kI8: return memory::data_type::s8;
    case PeerType::kU8: return memory::data_type::u8;
  }
  return memory::data_type::undef;
}

memory::data_type SumType(PeerType operands) {
  return operands == PeerType::kF32 || operands == PeerType::kBf16 ? kF32 : kS32;
}

// The engine, the stream, and what every primitive here needs of them.
class OneDnn {
 public:
  OneDnn(const PeerWorkload& workload, const PeerData& data, double budget_seconds)
      : engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        workload_(workload),
        data_(data),
        budget_seconds_(budget_seconds) {}

  const dnnl::engine& engine() const { return engine_; }

  // The next tensor of the workload, which lies as `stored` says.
  memory Next(const memory::desc& stored) {
    memory result(stored, engine_);
    data_.Read(next_++, result.get_data_handle(), stored.get_size());
    return result;
  }
  // The same, reordered to the layout that a primitive asks for.
  memory Next(const memory::desc& stored, const memory::desc& wanted) {
    memory plain = Next(stored);
    if (stored == wanted) return plain;
    memory result(wanted, engine_);
    dnnl::reorder(plain, result).execute(stream_, plain, result);
    stream_.wait();
    return result;
  }
  // Memory for a result, with what no result has in it.
  memory Result(const memory::desc& desc) const {
    memory result(desc, engine_);
    std::fill_n(static_cast<char*>(result.get_data_handle()), desc.get_size(), '\xff');
    return result;
  }

  // Computes once and compares with the tensor after those that Next() gave, then times.
  void Time(const char* way, const dnnl::primitive& primitive, const Args& args,
            int output_argument = DNNL_ARG_DST) {
    const auto execute = [&] {
      primitive.execute(stream_, args);
      stream_.wait();
    };
    execute();
    const double difference = Difference(args.at(output_argument));
    PrintPeer(workload_.spec, std::string("onednn") + way, MedianMilliseconds(execute, budget_seconds_),
              difference);
  }

 private:
  double Difference(const memory& result) const {
    const size_t count = result.get_desc().get_size() / 4;
    const void* values = result.get_data_handle();
    return result.get_desc().data_type() == kS32
               ? data_.Difference(next_, static_cast<const int*>(values), count)
               : data_.Difference(next_, static_cast<const float*>(values), count);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  const PeerWorkload& workload_;
  const PeerData& data_;
  const double budget_seconds_;
  int next_ = 0;
};

memory::desc Matrix(int m, int n, tag layout = tag::ab) { return {{m, n}, kF32, layout}; }

void TimeGemm(OneDnn& dnn, const PeerWorkload& w) {
  const bool bias = w.epilogue != Epilogue::kNone;
  const memory::dims inner = {w.k, w.n};
  const memory::desc src({w.m, w.k}, TypeOf(w.a), tag::ab), weights(inner, TypeOf(w.b), tag::any),
      stored(inner, TypeOf(w.b), w.transposed ? tag::ba : tag::ab), dst({w.m, w.n}, SumType(w.a), tag::ab);
  const dnnl::matmul::desc desc =
      bias ? dnnl::matmul::desc(src, weights, Matrix(1, w.n), dst) : dnnl::matmul::desc(src, weights, dst);
  const dnnl::matmul::primitive_desc pd(desc, dnn.engine());
  Args args = {{DNNL_ARG_DST, dnn.Result(dst)}};
  args.emplace(DNNL_ARG_SRC, dnn.Next(src));
  args.emplace(DNNL_ARG_WEIGHTS, dnn.Next(stored, pd.weights_desc()));
  if (bias) args.emplace(DNNL_ARG_BIAS, dnn.Next(pd.bias_desc()));
  dnn.Time("", dnnl::matmul(pd), args);
}

void TimeBatchedGemm(OneDnn& dnn, const PeerWorkload& w) {
  const memory::desc src({w.batch, w.m, w.k}, kF32, tag::abc), weights({w.batch, w.k, w.n}, kF32, tag::abc),
      dst({w.batch, w.m, w.n}, kF32, tag::abc);
  const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(src, weights, dst), dnn.engine());
  Args args = {{DNNL_ARG_DST, dnn.Result(dst)}};
  args.emplace(DNNL_ARG_SRC, dnn.Next(src));
  args.emplace(DNNL_ARG_WEIGHTS, dnn.Next(weights));
  dnn.Time("", dnnl::matmul(pd), args);
}

// Images of `c` channels as the workload has them.
memory::desc Image(const PeerWorkload& w, memory::data_type type, int c, int height, int width) {
  tag layout = tag::nhwc;
  if (w.layout == PeerLayout::kNchw || (w.layout == PeerLayout::kBlocked && c < 16)) layout = tag::nchw;
  if (w.layout == PeerLayout::kBlocked && c >= 16) layout = tag::nChw16c;
  return {{w.images, c, height, width}, type, layout};
}

// How a residual is added: read from a tensor of its own, or accumulated in place in the output. Users have
// both; each is timed.
enum class Residual { kNone, kBinary, kInPlace };

void TimeConvWay(const PeerWorkload& w, const PeerData& data, double budget_seconds, Residual residual,
                 const char* way) {
  OneDnn dnn(w, data, budget_seconds);
  const memory::dims weight_dims =
      w.groups == 1 ? memory::dims{w.out_c, w.c, w.kernel, w.kernel}
                    : memory::dims{w.groups, w.out_c / w.groups, w.c / w.groups, w.kernel, w.kernel};
  const memory::desc src = Image(w, TypeOf(w.a), w.c, w.h, w.w), weights(weight_dims, TypeOf(w.b), tag::any),
                     stored(weight_dims, TypeOf(w.b), w.groups == 1 ? tag::oihw : tag::goihw),
                     bias({w.out_c}, kF32, tag::a),
                     dst = Image(w, SumType(w.a), w.out_c, w.OutputExtent(w.h), w.OutputExtent(w.w));
  dnnl::post_ops post;
  if (residual == Residual::kBinary) post.append_binary(algorithm::binary_add, dst);
  if (residual == Residual::kInPlace) post.append_sum(1.0f);
  if (w.epilogue == Epilogue::kBiasRelu || w.epilogue == Epilogue::kBiasAddRelu)
    post.append_eltwise(1.0f, algorithm::eltwise_relu, 0.0f, 0.0f);
  dnnl::primitive_attr attr;
  attr.set_post_ops(post);
  const memory::dims strides = {w.stride, w.stride}, dilates = {w.dilation - 1, w.dilation - 1},
                     padding = {w.pad, w.pad};
  const bool with_bias = w.epilogue != Epilogue::kNone;
  const dnnl::convolution_forward::primitive_desc pd(
      dnnl::convolution_forward::desc(prop_kind::forward_inference, algorithm::convolution_direct, src,
                                      weights, with_bias ? bias : memory::desc(), dst, strides, dilates,
                                      padding, padding),
      attr, dnn.engine());
  Args args;
  args.emplace(DNNL_ARG_SRC, dnn.Next(src));
  args.emplace(DNNL_ARG_WEIGHTS, dnn.Next(stored, pd.weights_desc()));
  if (with_bias) args.emplace(DNNL_ARG_BIAS, dnn.Next(bias));
  if (residual == Residual::kBinary)
    args.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, dnn.Next(dst));
  args.emplace(DNNL_ARG_DST, residual == Residual::kInPlace ? dnn.Next(dst) : dnn.Result(dst));
  dnn.Time(way, dnnl::convolution_forward(pd), args);
}

void TimeConv(const PeerWorkload& w, const PeerData& data, double budget_seconds) {
  if (w.epilogue == Epilogue::kBiasAddRelu) {
    TimeConvWay(w, data, budget_seconds, Residual::kBinary, ".binary");
    TimeConvWay(w, data, budget_seconds, Residual::kInPlace, ".in_place");
  } else {
    TimeConvWay(w, data, budget_seconds, Residual::kNone, "");
  }
}

// A primitive over one input, whose output is laid out like `dst`.
template <typename Primitive>
void TimeOneInput(OneDnn& dnn, const typename Primitive::primitive_desc& pd, const memory::desc& src,
                  const memory::desc& dst) {
  Args args = {{DNNL_ARG_DST, dnn.Result(dst)}};
  args.emplace(DNNL_ARG_SRC, dnn.Next(src));
  dnn.Time("", Primitive(pd), args);
}

void TimePool(OneDnn& dnn, const PeerWorkload& w) {
  const bool max = w.kind == PeerKind::kMaxPool;
  const memory::dims kernel = max ? memory::dims{w.kernel, w.kernel} : memory::dims{w.h, w.w},
                     strides = {w.stride, w.stride}, padding = {w.pad, w.pad};
  const memory::desc src = Image(w, kF32, w.c, w.h, w.w),
                     dst = max ? Image(w, kF32, w.c, w.OutputExtent(w.h), w.OutputExtent(w.w))
                               : Image(w, kF32, w.c, 1, 1);
  const dnnl::pooling_forward::primitive_desc pd(
      dnnl::pooling_forward::desc(prop_kind::forward_inference,
                                  max ? algorithm::pooling_max : algorithm::pooling_avg, src, dst, strides,
                                  kernel, padding, padding),
      dnn.engine());
  TimeOneInput<dnnl::pooling_forward>(dnn, pd, src, dst);
}

void TimeSoftmax(OneDnn& dnn, const PeerWorkload& w) {
  const memory::desc rows = Matrix(w.m, w.n);
  TimeOneInput<dnnl::softmax_forward>(dnn, {{prop_kind::forward_inference, rows, 1}, dnn.engine()}, rows,
                                      rows);
}

void TimeLayerNorm(OneDnn& dnn, const PeerWorkload& w) {
  using flags = dnnl::normalization_flags;
  const memory::desc rows = Matrix(w.m, w.n), row({w.n}, kF32, tag::a);
  const dnnl::layer_normalization_forward::primitive_desc pd(
      dnnl::layer_normalization_forward::desc(prop_kind::forward_inference, rows, 1e-5f,
                                              flags::use_scale | flags::use_shift),
      dnn.engine());
  Args args = {{DNNL_ARG_DST, dnn.Result(rows)}};
  args.emplace(DNNL_ARG_SRC, dnn.Next(rows));
  args.emplace(DNNL_ARG_SCALE, dnn.Next(row));
  args.emplace(DNNL_ARG_SHIFT, dnn.Next(row));
  dnn.Time("", dnnl::layer_normalization_forward(pd), args);
}

void TimeTranspose(OneDnn& dnn, const PeerWorkload& w) {
  const memory::desc src = Matrix(w.m, w.n), dst = Matrix(w.m, w.n, tag::ba);
  const dnnl::reorder::primitive_desc pd(dnn.engine(), src, dnn.engine(), dst);
  Args args = {{DNNL_ARG_DST, dnn.Result(dst)}};
  args.emplace(DNNL_ARG_SRC, dnn.Next(src));
  dnn.Time("", dnnl::reorder(pd), args);
}

void TimeGelu(OneDnn& dnn, const PeerWorkload& w) {
  const memory::desc rows = Matrix(w.m, w.n);
  TimeOneInput<dnnl::eltwise_forward>(
      dnn, {{prop_kind::forward_inference, algorithm::eltwise_gelu_tanh, rows, 0.0f, 0.0f}, dnn.engine()},
      rows, rows);
}

void TimeKind(const PeerWorkload& w, const PeerData& data, double budget_seconds) {
  OneDnn dnn(w, data, budget_seconds);
  switch (w.kind) {
    case PeerKind::kGemm: return TimeGemm(dnn, w);
    case PeerKind::kBatchedGemm: return TimeBatchedGemm(dnn, w);
    case PeerKind::kConv: return TimeConv(w, data, budget_seconds);
    case PeerKind::kMaxPool:
    case PeerKind::kAverageAll: return TimePool(dnn, w);
    case PeerKind::kSoftmax: return TimeSoftmax(dnn, w);
    case PeerKind::kLayerNorm: return TimeLayerNorm(dnn, w);
    case PeerKind::kTranspose: return TimeTranspose(dnn, w);
    case PeerKind::kGelu: return TimeGelu(dnn, w);
    case PeerKind::kChain: return;  // takes three primitives, each over all of memory
  }
}

}  // namespace

void TimeOneDnn(const PeerWorkload& workload, const PeerData& data, double budget_seconds) {
  try {
    TimeKind(workload, data, budget_seconds);
  } catch (const dnnl::error& error) {
    // bf16, for one, needs more than AVX2: the other libraries are compared with, and the reader is told.
    if (error.status != dnnl_unimplemented) throw;
    std::fprintf(stderr, "onednn has no primitive for %s on this processor\n", workload.spec.c_str());
  }
}

}  // namespace mycc
