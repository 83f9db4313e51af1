// Calls of XGBoost's C interface.
#include "tuner/cost/booster.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "xgboost/c_api.h"

namespace mycc {
namespace {

// The C API's error is a message followed by a stack trace.
absl::Status Check(int result, const char* what) {
  if (result == 0) return absl::OkStatus();
  std::string message = XGBGetLastError();
  message = message.substr(0, message.find("\nStack trace"));
  return absl::InternalError(absl::StrCat("xgboost: ", what, ": ", message));
}

}  // namespace

BoosterMatrix::~BoosterMatrix() {
  if (handle_ != nullptr) XGDMatrixFree(handle_);
}

absl::Status BoosterMatrix::Fill(const std::vector<const Features*>& rows) {
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

absl::Status BoosterMatrix::Set(const char* field, const std::vector<float>& values) {
  return Check(XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()), field);
}

absl::Status BoosterMatrix::SetGroups(const std::vector<unsigned>& sizes) {
  return Check(XGDMatrixSetUIntInfo(handle_, "group", sizes.data(), sizes.size()), "group");
}

Booster::~Booster() {
  if (handle_ != nullptr) XGBoosterFree(handle_);
}

absl::Status Booster::Create(const std::vector<const BoosterMatrix*>& matrices, const BoosterConfig& config) {
  std::vector<DMatrixHandle> handles;
  for (const BoosterMatrix* matrix : matrices) handles.push_back(matrix->handle());
  MYCC_RETURN_IF_ERROR(
      Check(XGBoosterCreate(handles.data(), handles.size(), &handle_), "creating a booster"));
  const std::pair<const char*, std::string> params[] = {
      {"objective", config.objective},
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
      {"base_score", config.objective == "binary:logistic" ? "0.5" : "0"},
  };
  for (const auto& [name, value] : params)
    MYCC_RETURN_IF_ERROR(Check(XGBoosterSetParam(handle_, name, value.c_str()), name));
  return absl::OkStatus();
}

absl::Status Booster::Boost(int tree, const BoosterMatrix& matrix) {
  return Check(XGBoosterUpdateOneIter(handle_, tree, matrix.handle()), "boosting");
}

absl::StatusOr<std::vector<float>> Booster::Predict(const BoosterMatrix& matrix) const {
  return Ask(matrix,
             R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})");
}

absl::StatusOr<std::vector<float>> Booster::Margin(const BoosterMatrix& matrix) const {
  return Ask(matrix,
             R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})");
}

absl::StatusOr<std::vector<float>> Booster::Contributions(const BoosterMatrix& matrix) const {
  return Ask(matrix,
             R"({"type":2,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":false})");
}

absl::StatusOr<std::vector<float>> Booster::Ask(const BoosterMatrix& matrix, const char* config) const {
  const bst_ulong* shape = nullptr;
  bst_ulong dims = 0;
  const float* values = nullptr;
  MYCC_RETURN_IF_ERROR(Check(
      XGBoosterPredictFromDMatrix(handle_, matrix.handle(), config, &shape, &dims, &values), "predicting"));
  bst_ulong count = 1;
  for (bst_ulong d = 0; d < dims; ++d) count *= shape[d];
  return std::vector<float>(values, values + count);
}

absl::StatusOr<std::vector<double>> Booster::Gains(size_t width) const {
  bst_ulong count = 0, dims = 0;
  const char** names = nullptr;
  const bst_ulong* shape = nullptr;
  const float* scores = nullptr;
  MYCC_RETURN_IF_ERROR(Check(XGBoosterFeatureScore(handle_, R"({"importance_type":"total_gain"})", &count,
                                                   &names, &dims, &shape, &scores),
                             "the gains of features"));
  std::vector<double> gains(width, 0.0);
  for (bst_ulong i = 0; i < count; ++i) {
    size_t feature = 0;  // "f12"
    if (absl::SimpleAtoi(names[i] + 1, &feature) && feature < width) gains[feature] = scores[i];
  }
  return gains;
}

absl::StatusOr<std::string> Booster::Save() const {
  bst_ulong size = 0;
  const char* bytes = nullptr;
  MYCC_RETURN_IF_ERROR(
      Check(XGBoosterSaveModelToBuffer(handle_, R"({"format":"ubj"})", &size, &bytes), "saving"));
  return std::string(bytes, size);
}

absl::Status Booster::Load(const std::string& bytes) {
  MYCC_RETURN_IF_ERROR(Check(XGBoosterCreate(nullptr, 0, &handle_), "creating a booster"));
  MYCC_RETURN_IF_ERROR(Check(XGBoosterSetParam(handle_, "nthread", "1"), "nthread"));
  MYCC_RETURN_IF_ERROR(Check(XGBoosterSetParam(handle_, "verbosity", "0"), "verbosity"));
  return Check(XGBoosterLoadModelFromBuffer(handle_, bytes.data(), bytes.size()), "loading");
}

}  // namespace mycc
