#include "tests/perf/peer_workloads.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace mycc {
namespace {

using Words = std::map<std::string_view, std::string_view>;  // key -> value, those not read yet

const std::map<std::string_view, PeerKind> kKinds = {{"gemm", PeerKind::kGemm},
                                                     {"bmm", PeerKind::kBatchedGemm},
                                                     {"conv", PeerKind::kConv},
                                                     {"max_pool", PeerKind::kMaxPool},
                                                     {"average_all", PeerKind::kAverageAll},
                                                     {"softmax", PeerKind::kSoftmax},
                                                     {"layernorm", PeerKind::kLayerNorm},
                                                     {"transpose", PeerKind::kTranspose},
                                                     {"gelu", PeerKind::kGelu},
                                                     {"chain", PeerKind::kChain}};
const std::map<std::string_view, PeerType> kTypes = {
    {"f32", PeerType::kF32}, {"bf16", PeerType::kBf16}, {"i8", PeerType::kI8}, {"u8", PeerType::kU8}};
const std::map<std::string_view, PeerLayout> kLayouts = {
    {"nhwc", PeerLayout::kNhwc}, {"nchw", PeerLayout::kNchw}, {"blocked", PeerLayout::kBlocked}};
const std::map<std::string_view, Epilogue> kEpilogues = {{"none", Epilogue::kNone},
                                                         {"bias", Epilogue::kBias},
                                                         {"bias_relu", Epilogue::kBiasRelu},
                                                         {"bias_add_relu", Epilogue::kBiasAddRelu}};

// Takes values out of the words of one specification, and keeps the first thing that is wrong.
class Reader {
 public:
  explicit Reader(Words words) : words_(std::move(words)) {}

  void Read(std::string_view key, int* number) {
    const std::string_view value = Take(key);
    const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), *number);
    if (failed != std::errc() || end != value.data() + value.size() || *number < 0) Refuse(key, value);
  }
  void Read(std::string_view key, bool* flag) {
    int number = 0;
    Read(key, &number);
    *flag = number != 0;
  }
  template <typename T>
  void Read(std::string_view key, const std::map<std::string_view, T>& names, T* choice) {
    const std::string_view value = Take(key);
    if (const auto found = names.find(value); found != names.end()) {
      *choice = found->second;
    } else {
      Refuse(key, value);
    }
  }
  // Empty when everything was there and nothing else.
  std::string Error() const {
    if (error_.empty() && !words_.empty()) return "unknown key `" + std::string(words_.begin()->first) + "`";
    return error_;
  }

 private:
  std::string_view Take(std::string_view key) {
    const auto found = words_.find(key);
    if (found == words_.end()) return {};
    const std::string_view value = found->second;
    words_.erase(found);
    return value;
  }
  void Refuse(std::string_view key, std::string_view value) {
    if (error_.empty()) error_ = "`" + std::string(value) + "` is no value of `" + std::string(key) + "`";
  }

  Words words_;
  std::string error_;
};

Words SplitWords(std::string_view text) {
  Words words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    const size_t equals = word.find('=');
    words[word.substr(0, equals)] = equals == word.npos ? std::string_view() : word.substr(equals + 1);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return words;
}

void ReadImages(Reader& reader, PeerWorkload* w) {
  reader.Read("n", &w->images);
  reader.Read("h", &w->h);
  reader.Read("w", &w->w);
  reader.Read("c", &w->c);
}

void ReadKernel(Reader& reader, PeerWorkload* w) {
  reader.Read("kernel", &w->kernel);
  reader.Read("stride", &w->stride);
  reader.Read("pad", &w->pad);
}

void ReadConv(Reader& reader, PeerWorkload* w) {
  ReadImages(reader, w);
  ReadKernel(reader, w);
  reader.Read("k", &w->out_c);
  reader.Read("dilation", &w->dilation);
  reader.Read("groups", &w->groups);
  reader.Read("x", kTypes, &w->a);
  reader.Read("weights", kTypes, &w->b);
  reader.Read("layout", kLayouts, &w->layout);
  reader.Read("epilogue", kEpilogues, &w->epilogue);
}

void ReadGemm(Reader& reader, PeerWorkload* w) {
  reader.Read("m", &w->m);
  reader.Read("n", &w->n);
  reader.Read("k", &w->k);
  if (w->kind == PeerKind::kBatchedGemm) return reader.Read("batch", &w->batch);
  bool bias = false;
  reader.Read("a", kTypes, &w->a);
  reader.Read("b", kTypes, &w->b);
  reader.Read("transposed", &w->transposed);
  reader.Read("bias", &bias);
  w->epilogue = bias ? Epilogue::kBias : Epilogue::kNone;
}

void ReadPool(Reader& reader, PeerWorkload* w) {
  ReadImages(reader, w);
  if (w->kind == PeerKind::kMaxPool) ReadKernel(reader, w);
}

void ReadRows(Reader& reader, PeerWorkload* w) {
  reader.Read("m", &w->m);
  reader.Read("n", &w->n);
}

}  // namespace

bool ParsePeerWorkload(std::string_view spec, PeerWorkload* workload, std::string* error) {
  const size_t colon = spec.find(':');
  const auto kind = kKinds.find(spec.substr(0, colon));
  if (colon == spec.npos || kind == kKinds.end()) {
    *error = "`" + std::string(spec) + "` names no family; expected FAMILY:KEY=VALUE,...";
    return false;
  }
  workload->spec = spec;
  workload->kind = kind->second;
  Reader reader(SplitWords(spec.substr(colon + 1)));
  switch (workload->kind) {
    case PeerKind::kGemm:
    case PeerKind::kBatchedGemm: ReadGemm(reader, workload); break;
    case PeerKind::kConv: ReadConv(reader, workload); break;
    case PeerKind::kMaxPool:
    case PeerKind::kAverageAll: ReadPool(reader, workload); break;
    default: ReadRows(reader, workload);
  }
  *error = reader.Error();
  if (!error->empty()) *error = "`" + std::string(spec) + "`: " + *error;
  return error->empty();
}

}  // namespace mycc
