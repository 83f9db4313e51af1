// XGBoost's matrices and boosters as values that free themselves. One thread and a fixed seed: the same rows
// in the same order give the same trees, bit for bit. Errors are Internal, with XGBoost's own message. Thread
// rule: thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tuner/cost/features.h"

namespace mycc {

class BoosterMatrix {
 public:
  BoosterMatrix() = default;
  ~BoosterMatrix();
  BoosterMatrix(const BoosterMatrix&) = delete;
  BoosterMatrix& operator=(const BoosterMatrix&) = delete;

  // InvalidArgument for rows of different widths. REQUIRES: a row, at least.
  absl::Status Fill(const std::vector<const Features*>& rows);
  absl::Status Set(const char* field, const std::vector<float>& values);
  // The numbers of rows that follow each other and compare with each other alone.
  absl::Status SetGroups(const std::vector<unsigned>& sizes);
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

struct BoosterConfig {
  std::string objective;
  uint64_t seed = 0;
  double eta = 0.1;
  int depth = 6;
};

class Booster {
 public:
  Booster() = default;
  ~Booster();
  Booster(Booster&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Booster& operator=(Booster&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  absl::Status Create(const std::vector<const BoosterMatrix*>& matrices, const BoosterConfig& config);
  absl::Status Boost(int tree, const BoosterMatrix& matrix);
  absl::StatusOr<std::vector<float>> Predict(const BoosterMatrix& matrix) const;
  // The sum of the trees, before the objective's transformation.
  absl::StatusOr<std::vector<float>> Margin(const BoosterMatrix& matrix) const;
  // Shapley values of the features, and the bias behind them, for each row.
  absl::StatusOr<std::vector<float>> Contributions(const BoosterMatrix& matrix) const;
  // The gain of each feature over all trees, in order of the features.
  absl::StatusOr<std::vector<double>> Gains(size_t width) const;

  absl::StatusOr<std::string> Save() const;
  // The objective comes with the bytes.
  absl::Status Load(const std::string& bytes);

 private:
  absl::StatusOr<std::vector<float>> Ask(const BoosterMatrix& matrix, const char* config) const;

  void* handle_ = nullptr;
};

}  // namespace mycc
