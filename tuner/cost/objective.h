// The goals towards which the trees of the cost model are trained. tests/perf/model_objectives.sh compares
// the objectives on recorded samples, and docs/search.md has its table. Pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tuner/cost/booster.h"
#include "tuner/cost/sample.h"

namespace mycc {

enum class Objective {
  kLogRatio,   // log(measured / analytic) less the task's mean
  kPairs,      // the order of pairs within a task, beginning at the analytic order
  kBestTenth,  // whether a candidate is among the fastest tenth of its task, beginning at the analytic order
};

const char* BoosterObjective(Objective objective);  // XGBoost's name
// The logarithm of the correction that a sum of trees stands for.
double LogFactor(Objective objective, double margin);

// The mean of log(measured / analytic) of each group.
std::map<std::string, double> MeanOffsets(const std::vector<const Sample*>& samples);

// InvalidArgument for times that are not positive and finite. REQUIRES: all samples are of successful
// candidates.
absl::Status CheckTimes(const std::vector<const Sample*>& samples);

// Rows, labels and weights. The fastest of a group counts 1, one that is twice as slow 0.5; samples of `task`
// count `task_weight` times as much. The errors of CheckTimes. REQUIRES: all samples are of successful
// candidates.
absl::Status FillMatrix(std::vector<const Sample*> samples, Objective objective, const std::string& task,
                        double task_weight, BoosterMatrix* matrix);

}  // namespace mycc
