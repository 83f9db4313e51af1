#include "tuner/cost/objective.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc {
namespace {

// Units of the orders' margins for each e-fold of time: pairs that differ by a fifth are told apart with odds
// of 2.
constexpr double kMarginOfLog = 4;

using Samples = std::vector<const Sample*>;

double LogRatio(const Sample& sample) { return std::log(*sample.seconds / sample.analytic_seconds); }

std::map<std::string, std::vector<double>> ByGroup(const Samples& samples, double (*value)(const Sample&)) {
  std::map<std::string, std::vector<double>> values;
  for (const Sample* sample : samples) values[sample->group].push_back(value(*sample));
  for (auto& [group, of_group] : values) std::ranges::sort(of_group);
  return values;
}

// The largest of the smallest tenth.
double Tenth(const std::vector<double>& sorted) { return sorted[(sorted.size() - 1) / 10]; }

double MeasuredSeconds(const Sample& sample) { return *sample.seconds; }
double AnalyticSeconds(const Sample& sample) { return sample.analytic_seconds; }

absl::Status SetPairs(const Samples& samples, BoosterMatrix* matrix) {
  constexpr double kRanks = 31;
  const auto measured = ByGroup(samples, MeasuredSeconds);
  std::vector<float> labels, margins;
  std::vector<unsigned> sizes;
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::vector<double>& sorted = measured.at(samples[i]->group);
    const auto slower = sorted.end() - std::ranges::upper_bound(sorted, *samples[i]->seconds);
    labels.push_back(static_cast<float>(
        std::floor(kRanks * static_cast<double>(slower) / static_cast<double>(sorted.size()))));
    margins.push_back(static_cast<float>(-kMarginOfLog * std::log(samples[i]->analytic_seconds)));
    if (i == 0 || samples[i]->group != samples[i - 1]->group) sizes.push_back(0);
    ++sizes.back();
  }
  MYCC_RETURN_IF_ERROR(matrix->Set("label", labels));
  MYCC_RETURN_IF_ERROR(matrix->Set("base_margin", margins));
  return matrix->SetGroups(sizes);
}

absl::Status SetTenths(const Samples& samples, std::vector<float> weights, BoosterMatrix* matrix) {
  const auto measured = ByGroup(samples, MeasuredSeconds), analytic = ByGroup(samples, AnalyticSeconds);
  std::vector<float> labels, margins;
  for (const Sample* sample : samples) {
    labels.push_back(*sample->seconds <= Tenth(measured.at(sample->group)) ? 1.0f : 0.0f);
    margins.push_back(static_cast<float>(
        -kMarginOfLog * std::log(sample->analytic_seconds / Tenth(analytic.at(sample->group)))));
  }
  MYCC_RETURN_IF_ERROR(matrix->Set("label", labels));
  MYCC_RETURN_IF_ERROR(matrix->Set("base_margin", margins));
  return matrix->Set("weight", weights);
}

absl::Status SetRatios(const Samples& samples, std::vector<float> weights, BoosterMatrix* matrix) {
  const std::map<std::string, double> offsets = MeanOffsets(samples);
  const auto measured = ByGroup(samples, MeasuredSeconds);
  std::vector<float> labels;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = *samples[i];
    labels.push_back(static_cast<float>(LogRatio(sample) - offsets.at(sample.group)));
    weights[i] *= static_cast<float>(std::max(0.05, measured.at(sample.group).front() / *sample.seconds));
  }
  MYCC_RETURN_IF_ERROR(matrix->Set("label", labels));
  return matrix->Set("weight", weights);
}

}  // namespace

const char* BoosterObjective(Objective objective) {
  switch (objective) {
    case Objective::kLogRatio: return "reg:squarederror";
    case Objective::kPairs: return "rank:pairwise";
    case Objective::kBestTenth: return "binary:logistic";
  }
  return "";
}

double LogFactor(Objective objective, double margin) {
  return objective == Objective::kLogRatio ? margin : -margin / kMarginOfLog;
}

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

absl::Status CheckTimes(const std::vector<const Sample*>& samples) {
  for (const Sample* sample : samples) {
    if (std::isfinite(LogRatio(*sample))) continue;
    return absl::InvalidArgumentError(absl::StrCat("cost model: a sample of ", *sample->seconds,
                                                   " s, expected to take ", sample->analytic_seconds,
                                                   " s; expected positive, finite times"));
  }
  return absl::OkStatus();
}

absl::Status FillMatrix(std::vector<const Sample*> samples, Objective objective, const std::string& task,
                        double task_weight, BoosterMatrix* matrix) {
  MYCC_RETURN_IF_ERROR(CheckTimes(samples));
  std::vector<const Features*> rows;
  std::vector<float> weights;
  // The library wants the rows of a group side by side.
  if (objective == Objective::kPairs) {
    std::ranges::stable_sort(samples, [](const Sample* a, const Sample* b) { return a->group < b->group; });
  }
  for (const Sample* sample : samples) {
    rows.push_back(&sample->features);
    weights.push_back(static_cast<float>(sample->group == task ? task_weight : 1));
  }
  MYCC_RETURN_IF_ERROR(matrix->Fill(rows));
  switch (objective) {
    case Objective::kPairs: return SetPairs(samples, matrix);
    case Objective::kBestTenth: return SetTenths(samples, std::move(weights), matrix);
    case Objective::kLogRatio: break;
  }
  return SetRatios(samples, std::move(weights), matrix);
}

}  // namespace mycc
