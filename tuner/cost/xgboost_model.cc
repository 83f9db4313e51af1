// Calls of XGBoost's C interface, the choice of the number of trees, and the stored format.
#include "tuner/cost/xgboost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "tuner/cost/bytes.h"
#include "xgboost/c_api.h"

namespace mycc {
namespace {

constexpr char kModelFormat[] = "mycc-xgboost-1";

// The C API's error is a message followed by a stack trace.
absl::Status Check(int result, const char* what) {
  if (result == 0) return absl::OkStatus();
  std::string message = XGBGetLastError();
  message = message.substr(0, message.find("\nStack trace"));
  return absl::InternalError(absl::StrCat("xgboost: ", what, ": ", message));
}

// Rows in XGBoost's own form.
class Matrix {
 public:
  Matrix() = default;
  ~Matrix() {
    if (handle_ != nullptr) XGDMatrixFree(handle_);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  absl::Status Fill(const std::vector<const Features*>& rows) {
    const size_t width = rows[0]->size();
    std::vector<float> values;
    values.reserve(rows.size() * width);
    for (const Features* row : rows) {
      if (row->size() != width) {
        return absl::InvalidArgumentError(
            absl::StrCat("cost model: rows of ", width, " and of ", row->size(), " features"));
      }
      values.insert(values.end(), row->begin(), row->end());
    }
    return Check(XGDMatrixCreateFromMat_omp(values.data(), rows.size(), width,
                                            std::numeric_limits<float>::quiet_NaN(), &handle_, 1),
                 "filling a matrix");
  }
  absl::Status Set(const char* field, const std::vector<float>& values) {
    return Check(XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()), field);
  }
  DMatrixHandle handle() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

double LogRatio(const Sample& sample) { return std::log(*sample.seconds / sample.analytic_seconds); }

std::map<std::string, double> MeanOffsets(const std::vector<const Sample*>& samples) {
  std::map<std::string, std::pair<double, int>> sums;
  for (const Sample* sample : samples) {
    auto& [sum, count] = sums[sample->group];
    sum += LogRatio(*sample);
    ++count;
  }
  std::map<std::string, double> offsets;
  for (const auto& [group, sum] : sums) offsets[group] = sum.first / sum.second;
  return offsets;
}

std::vector<const Features*> RowsOf(const std::vector<const Sample*>& samples) {
  std::vector<const Features*> rows;
  for (const Sample* sample : samples) rows.push_back(&sample->features);
  return rows;
}

// Labels of the correction, and weights: the fastest of a group counts 1, one that is twice as slow 0.5.
absl::Status FillCorrection(const std::vector<const Sample*>& samples, Matrix* matrix) {
  MYCC_RETURN_IF_ERROR(matrix->Fill(RowsOf(samples)));
  const std::map<std::string, double> offsets = MeanOffsets(samples);
  std::map<std::string, double> best;
  for (const Sample* sample : samples) {
    double& seconds = best.emplace(sample->group, *sample->seconds).first->second;
    seconds = std::min(seconds, *sample->seconds);
  }
  std::vector<float> labels, weights;
  for (const Sample* sample : samples) {
    if (!std::isfinite(LogRatio(*sample))) {
      return absl::InvalidArgumentError(absl::StrCat("cost model: a sample of ", *sample->seconds,
                                                     " s, expected to take ", sample->analytic_seconds,
                                                     " s; expected positive, finite times"));
    }
    labels.push_back(static_cast<float>(LogRatio(*sample) - offsets.at(sample->group)));
    weights.push_back(static_cast<float>(std::max(0.05, best.at(sample->group) / *sample->seconds)));
  }
  MYCC_RETURN_IF_ERROR(matrix->Set("label", labels));
  return matrix->Set("weight", weights);
}

// A fifth of the samples: whole tasks when there are three or more, else every fifth sample.
std::vector<bool> HeldOut(const std::vector<const Sample*>& samples, bool* tasks) {
  std::map<std::string, int> groups;
  for (const Sample* sample : samples) ++groups[sample->group];
  std::vector<bool> held_out(samples.size(), false);
  *tasks = groups.size() >= 3;
  if (!*tasks) {
    for (size_t i = 2; i < samples.size(); i += 5) held_out[i] = true;
    return held_out;
  }
  // By hash, so that neighbours in name do not go together.
  std::vector<std::pair<std::string, std::string>> order;
  for (const auto& [group, count] : groups) order.emplace_back(Sha256Hex(group), group);
  std::sort(order.begin(), order.end());
  std::map<std::string, bool> chosen;
  size_t rows = 0;
  for (const auto& [hash, group] : order) {
    const size_t size = static_cast<size_t>(groups.at(group));
    if (5 * rows >= samples.size() || 2 * (rows + size) > samples.size()) continue;
    chosen[group] = true;
    rows += size;
  }
  for (size_t i = 0; i < samples.size(); ++i) held_out[i] = chosen.count(samples[i]->group) > 0;
  if (rows == 0) {
    *tasks = false;
    for (size_t i = 2; i < samples.size(); i += 5) held_out[i] = true;
  }
  return held_out;
}

}  // namespace

struct XgboostModel::Booster {
  Booster() = default;
  ~Booster() {
    if (handle != nullptr) XGBoosterFree(handle);
  }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;

  absl::Status Create(const std::vector<DMatrixHandle>& matrices, const ModelConfig& config,
                      const char* objective) {
    MYCC_RETURN_IF_ERROR(
        Check(XGBoosterCreate(matrices.data(), matrices.size(), &handle), "creating a booster"));
    const std::pair<const char*, std::string> params[] = {
        {"objective", objective},
        {"nthread", "1"},
        {"verbosity", "0"},
        {"seed", absl::StrCat(config.seed & 0x7fffffff)},
        {"tree_method", "hist"},
        {"max_bin", "64"},
        {"eta", absl::StrCat(config.eta)},
        {"max_depth", absl::StrCat(config.depth)},
        {"min_child_weight", "1"},
        {"gamma", "0.001"},
        {"lambda", "1"},
        {"subsample", "0.9"},
        {"colsample_bytree", "0.5"},
        {"base_score", objective == std::string("binary:logistic") ? "0.5" : "0"},
    };
    for (const auto& [name, value] : params)
      MYCC_RETURN_IF_ERROR(Check(XGBoosterSetParam(handle, name, value.c_str()), name));
    return absl::OkStatus();
  }

  absl::Status Update(int tree, const Matrix& matrix) {
    return Check(XGBoosterUpdateOneIter(handle, tree, matrix.handle()), "boosting");
  }

  absl::StatusOr<std::vector<float>> Predict(const Matrix& matrix) const {
    constexpr char kConfig[] =
        R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})";
    const bst_ulong* shape = nullptr;
    bst_ulong dims = 0;
    const float* values = nullptr;
    MYCC_RETURN_IF_ERROR(Check(
        XGBoosterPredictFromDMatrix(handle, matrix.handle(), kConfig, &shape, &dims, &values), "predicting"));
    bst_ulong count = 1;
    for (bst_ulong d = 0; d < dims; ++d) count *= shape[d];
    return std::vector<float>(values, values + count);
  }

  absl::StatusOr<std::string> Save() const {
    bst_ulong size = 0;
    const char* bytes = nullptr;
    MYCC_RETURN_IF_ERROR(
        Check(XGBoosterSaveModelToBuffer(handle, R"({"format":"ubj"})", &size, &bytes), "saving"));
    return std::string(bytes, size);
  }

  // The objective comes with the bytes.
  absl::Status Load(const std::string& bytes) {
    MYCC_RETURN_IF_ERROR(Check(XGBoosterCreate(nullptr, 0, &handle), "creating a booster"));
    MYCC_RETURN_IF_ERROR(Check(XGBoosterSetParam(handle, "nthread", "1"), "nthread"));
    MYCC_RETURN_IF_ERROR(Check(XGBoosterSetParam(handle, "verbosity", "0"), "verbosity"));
    return Check(XGBoosterLoadModelFromBuffer(handle, bytes.data(), bytes.size()), "loading");
  }

  BoosterHandle handle = nullptr;
};

XgboostModel::XgboostModel(const ModelConfig& config) : config_(config) {}
XgboostModel::~XgboostModel() = default;
XgboostModel::XgboostModel(XgboostModel&&) noexcept = default;
XgboostModel& XgboostModel::operator=(XgboostModel&&) noexcept = default;

absl::Status XgboostModel::Train(const std::vector<const Sample*>& samples) {
  correction_.reset();
  failure_.reset();
  offsets_.clear();
  mean_offset_ = 0;
  metrics_ = {};
  width_ = samples.empty() ? 0 : static_cast<uint32_t>(samples[0]->features.size());
  std::vector<const Sample*> successful;
  for (const Sample* sample : samples) {
    if (sample->seconds) successful.push_back(sample);
  }
  metrics_.samples = static_cast<int>(successful.size());
  metrics_.failures = static_cast<int>(samples.size() - successful.size());
  if (metrics_.samples >= config_.min_samples) MYCC_RETURN_IF_ERROR(TrainCorrection(successful));
  if (metrics_.failures >= config_.min_failures && metrics_.samples >= config_.min_failures)
    return TrainFailures(samples);
  return absl::OkStatus();
}

// The number of trees with which the held-out rows are predicted best; fills in the metrics.
absl::StatusOr<int> XgboostModel::ChooseTrees(const std::vector<const Sample*>& samples) {
  const std::vector<bool> held_out = HeldOut(samples, &metrics_.held_out_tasks);
  std::vector<const Sample*> trained, tested;
  for (size_t i = 0; i < samples.size(); ++i) (held_out[i] ? tested : trained).push_back(samples[i]);
  Matrix train, test;
  MYCC_RETURN_IF_ERROR(FillCorrection(trained, &train));
  MYCC_RETURN_IF_ERROR(FillCorrection(tested, &test));
  Booster booster;
  MYCC_RETURN_IF_ERROR(booster.Create({train.handle(), test.handle()}, config_, "reg:squarederror"));

  std::vector<Predicted> rows;
  for (const Sample* sample : tested) {
    rows.push_back({std::log(sample->analytic_seconds), std::log(*sample->seconds), sample->group});
  }
  metrics_.analytic = metrics_.corrected = EvaluateOrder(rows);
  int best_trees = 0;
  for (int tree = 0; tree < config_.max_trees && tree < best_trees + config_.patience; ++tree) {
    MYCC_RETURN_IF_ERROR(booster.Update(tree, train));
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> corrections, booster.Predict(test));
    for (size_t i = 0; i < tested.size(); ++i)
      rows[i].predicted = std::log(tested[i]->analytic_seconds) + corrections[i];
    const OrderMetrics metrics = EvaluateOrder(rows);
    if (metrics.rmse >= metrics_.corrected.rmse) continue;
    metrics_.corrected = metrics;
    best_trees = tree + 1;
  }
  return best_trees;
}

absl::Status XgboostModel::TrainCorrection(const std::vector<const Sample*>& samples) {
  offsets_ = MeanOffsets(samples);
  metrics_.groups = static_cast<int>(offsets_.size());
  for (const auto& [group, offset] : offsets_) mean_offset_ += offset / static_cast<double>(offsets_.size());
  MYCC_ASSIGN_OR_RETURN(metrics_.trees, ChooseTrees(samples));
  if (metrics_.trees == 0) return absl::OkStatus();
  Matrix matrix;
  MYCC_RETURN_IF_ERROR(FillCorrection(samples, &matrix));
  correction_ = std::make_unique<Booster>();
  MYCC_RETURN_IF_ERROR(correction_->Create({matrix.handle()}, config_, "reg:squarederror"));
  for (int tree = 0; tree < metrics_.trees; ++tree) MYCC_RETURN_IF_ERROR(correction_->Update(tree, matrix));
  return absl::OkStatus();
}

absl::Status XgboostModel::TrainFailures(const std::vector<const Sample*>& samples) {
  constexpr int kTrees = 60;
  Matrix matrix;
  MYCC_RETURN_IF_ERROR(matrix.Fill(RowsOf(samples)));
  std::vector<float> labels;
  for (const Sample* sample : samples) labels.push_back(sample->seconds ? 0.0f : 1.0f);
  MYCC_RETURN_IF_ERROR(matrix.Set("label", labels));
  failure_ = std::make_unique<Booster>();
  MYCC_RETURN_IF_ERROR(failure_->Create({matrix.handle()}, config_, "binary:logistic"));
  for (int tree = 0; tree < kTrees; ++tree) MYCC_RETURN_IF_ERROR(failure_->Update(tree, matrix));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Correction>> XgboostModel::Predict(const std::vector<const Features*>& rows,
                                                              const std::string& group) const {
  constexpr double kMaxLog = 7;  // a factor of a thousand either way is no correction any more
  const auto offset = offsets_.find(group);
  std::vector<Correction> corrections(
      rows.size(), Correction{std::exp(offset == offsets_.end() ? mean_offset_ : offset->second), 0});
  if (rows.empty() || (correction_ == nullptr && failure_ == nullptr)) return corrections;
  if (rows[0]->size() != width_) {
    return absl::InvalidArgumentError(
        absl::StrCat("cost model: trained on ", width_, " features, asked about ", rows[0]->size()));
  }
  Matrix matrix;
  MYCC_RETURN_IF_ERROR(matrix.Fill(rows));
  if (correction_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> logs, correction_->Predict(matrix));
    for (size_t i = 0; i < rows.size(); ++i)
      corrections[i].factor *= std::exp(std::clamp<double>(logs[i], -kMaxLog, kMaxLog));
  }
  if (failure_ != nullptr) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> odds, failure_->Predict(matrix));
    for (size_t i = 0; i < rows.size(); ++i) corrections[i].failure_probability = odds[i];
  }
  return corrections;
}

absl::StatusOr<std::string> XgboostModel::Save() const {
  ByteWriter body;
  body.Put<int32_t>(kFeatureVersion);
  body.Put(width_);
  body.Put(mean_offset_);
  body.Put<uint64_t>(offsets_.size());
  for (const auto& [group, offset] : offsets_) {
    body.PutString(group);
    body.Put(offset);
  }
  for (const Booster* booster : {correction_.get(), failure_.get()}) {
    std::string bytes;
    if (booster != nullptr) {
      MYCC_ASSIGN_OR_RETURN(bytes, booster->Save());
    }
    body.PutString(bytes);
  }
  return Seal(kModelFormat, body.Take());
}

absl::Status XgboostModel::Load(const std::string& bytes) {
  MYCC_ASSIGN_OR_RETURN(const std::string content, Unseal(kModelFormat, bytes));
  ByteReader body(content);
  const int32_t version = body.Get<int32_t>();
  if (version != kFeatureVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost model is of feature version ", version, "; expected ", kFeatureVersion));
  }
  XgboostModel loaded(config_);
  loaded.width_ = body.Get<uint32_t>();
  loaded.mean_offset_ = body.Get<double>();
  const uint64_t groups = body.Get<uint64_t>();
  for (uint64_t g = 0; g < groups && body.ok(); ++g) {
    const std::string group = body.GetString();
    loaded.offsets_[group] = body.Get<double>();
  }
  for (std::unique_ptr<Booster>* booster : {&loaded.correction_, &loaded.failure_}) {
    const std::string saved = body.GetString();
    if (saved.empty()) continue;
    *booster = std::make_unique<Booster>();
    MYCC_RETURN_IF_ERROR((*booster)->Load(saved));
  }
  if (!body.done()) return absl::InvalidArgumentError("the cost model's bytes end too early or too late");
  *this = std::move(loaded);
  return absl::OkStatus();
}

}  // namespace mycc
