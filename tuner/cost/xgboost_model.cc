// The choice of the number of trees, the ensemble's predictions, and the stored format.
#include "tuner/cost/xgboost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "tuner/cost/bytes.h"

namespace mycc {
namespace {

constexpr char kModelFormat[] = "mycc-xgboost-3";
constexpr int kMostMembers = 64;    // of a stored ensemble
constexpr double kMostOffset = 50;  // of a stored task: a factor that no device and no model differ by

std::vector<const Features*> RowsOf(const std::vector<const Sample*>& samples) {
  std::vector<const Features*> rows;
  for (const Sample* sample : samples) rows.push_back(&sample->features);
  return rows;
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
  std::ranges::sort(order);
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

// Every fifth sample of the task at hand; empty where they are too few.
std::vector<bool> HeldOutOfTask(const std::vector<const Sample*>& samples, const std::string& task,
                                int enough) {
  std::vector<bool> held_out(samples.size(), false);
  int of_task = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i]->group == task) held_out[i] = of_task++ % 5 == 2;
  }
  return of_task >= enough ? held_out : std::vector<bool>();
}

void PutMetrics(const ModelMetrics& metrics, ByteWriter* out) {
  for (const int count : {metrics.samples, metrics.failures, metrics.groups, metrics.trees})
    out->Put<int32_t>(count);
  out->Put(metrics.share);
  out->Put<uint8_t>(metrics.held_out_tasks);
  for (const OrderMetrics* order : {&metrics.corrected, &metrics.analytic}) {
    out->Put<int32_t>(order->rows);
    for (const double value : {order->pairwise_accuracy, order->recall_at_k, order->rmse}) out->Put(value);
  }
}

ModelMetrics GetMetrics(ByteReader* in) {
  ModelMetrics metrics;
  for (int* count : {&metrics.samples, &metrics.failures, &metrics.groups, &metrics.trees})
    *count = in->Get<int32_t>();
  metrics.share = in->Get<double>();
  metrics.held_out_tasks = in->Get<uint8_t>() != 0;
  for (OrderMetrics* order : {&metrics.corrected, &metrics.analytic}) {
    order->rows = in->Get<int32_t>();
    for (double* value : {&order->pairwise_accuracy, &order->recall_at_k, &order->rmse})
      *value = in->Get<double>();
  }
  return metrics;
}

}  // namespace

absl::Status XgboostModel::Train(const std::vector<const Sample*>& samples, const std::string& task,
                                 ParallelFor* parallel) {
  members_.clear();
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
  ParallelFor in_turn;
  if (parallel == nullptr) parallel = &in_turn;
  absl::Status of_correction, of_failures;
  // The two parts write different members.
  parallel->Run(2, [&](size_t part) {
    if (part == 0 && metrics_.samples >= config_.min_samples)
      of_correction = PrepareCorrection(successful, task);
    if (part == 1 && metrics_.failures >= config_.min_failures && metrics_.samples >= config_.min_failures)
      of_failures = TrainFailures(samples);
  });
  MYCC_RETURN_IF_ERROR(of_correction);
  MYCC_RETURN_IF_ERROR(of_failures);
  if (metrics_.trees > 0) members_.resize(static_cast<size_t>(config_.members));
  std::vector<absl::Status> of_members(members_.size());
  parallel->Run(members_.size(), [&](size_t member) {
    of_members[member] = TrainMember(successful, task, static_cast<int>(member));
  });
  for (const absl::Status& status : of_members) MYCC_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

BoosterConfig XgboostModel::BoosterOf(int member) const {
  return {BoosterObjective(config_.objective), config_.seed + 7919 * static_cast<uint64_t>(member),
          config_.eta, config_.depth};
}

// The number of trees with which the held-out rows are predicted best, and, for held-out tasks, the share of
// their correction; fills in the metrics.
absl::StatusOr<int> XgboostModel::ChooseTrees(const std::vector<const Sample*>& samples,
                                              const std::string& task) {
  std::vector<bool> held_out = HeldOutOfTask(samples, task, config_.min_task_samples);
  if (held_out.empty()) held_out = HeldOut(samples, &metrics_.held_out_tasks);
  std::vector<const Sample*> trained, tested;
  for (size_t i = 0; i < samples.size(); ++i) (held_out[i] ? tested : trained).push_back(samples[i]);
  BoosterMatrix train, test;
  MYCC_RETURN_IF_ERROR(FillMatrix(trained, config_.objective, task, config_.task_weight, &train));
  MYCC_RETURN_IF_ERROR(test.Fill(RowsOf(tested)));
  Booster booster;
  MYCC_RETURN_IF_ERROR(booster.Create({&train, &test}, BoosterOf(0)));

  std::vector<Predicted> rows;
  for (const Sample* sample : tested) {
    rows.push_back({std::log(sample->analytic_seconds), std::log(*sample->seconds), sample->group});
  }
  metrics_.analytic = metrics_.corrected = EvaluateOrder(rows);
  // Only the ratios are meant to come close to the times; the other objectives care for the order alone.
  const auto loss = [&](const OrderMetrics& metrics) {
    return config_.objective == Objective::kLogRatio ? metrics.rmse : -metrics.pairwise_accuracy;
  };
  const auto correct = [&](const std::vector<float>& margins, double share) {
    for (size_t i = 0; i < tested.size(); ++i)
      rows[i].predicted =
          std::log(tested[i]->analytic_seconds) + share * LogFactor(config_.objective, margins[i]);
    return EvaluateOrder(rows);
  };
  int best_trees = 0;
  std::vector<float> best_margins;
  for (int tree = 0; tree < config_.max_trees && tree < best_trees + config_.patience; ++tree) {
    MYCC_RETURN_IF_ERROR(booster.Boost(tree, train));
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> margins, booster.Margin(test));
    const OrderMetrics metrics = correct(margins, 1);
    if (loss(metrics) >= loss(metrics_.corrected)) continue;
    metrics_.corrected = metrics;
    best_trees = tree + 1;
    best_margins = margins;
  }
  if (best_trees == 0 || !metrics_.held_out_tasks) return best_trees;
  for (const double share : {0.75, 0.5}) {
    const OrderMetrics metrics = correct(best_margins, share);
    if (metrics.pairwise_accuracy <= metrics_.corrected.pairwise_accuracy) continue;
    metrics_.corrected = metrics;
    metrics_.share = share;
  }
  if (metrics_.corrected.pairwise_accuracy >= metrics_.analytic.pairwise_accuracy) return best_trees;
  metrics_.corrected = metrics_.analytic;
  metrics_.share = 1;
  return 0;
}

absl::Status XgboostModel::PrepareCorrection(const std::vector<const Sample*>& samples,
                                             const std::string& task) {
  MYCC_RETURN_IF_ERROR(CheckTimes(samples));  // before any enters a mean
  offsets_ = MeanOffsets(samples);
  metrics_.groups = static_cast<int>(offsets_.size());
  for (const auto& [group, offset] : offsets_) mean_offset_ += offset / static_cast<double>(offsets_.size());
  MYCC_ASSIGN_OR_RETURN(metrics_.trees, ChooseTrees(samples, task));
  return absl::OkStatus();
}

// Each member has its own matrix, because training writes to it.
absl::Status XgboostModel::TrainMember(const std::vector<const Sample*>& samples, const std::string& task,
                                       int member) {
  BoosterMatrix matrix;
  MYCC_RETURN_IF_ERROR(FillMatrix(samples, config_.objective, task, config_.task_weight, &matrix));
  Booster& booster = members_[static_cast<size_t>(member)];
  MYCC_RETURN_IF_ERROR(booster.Create({&matrix}, BoosterOf(member)));
  for (int tree = 0; tree < metrics_.trees; ++tree) MYCC_RETURN_IF_ERROR(booster.Boost(tree, matrix));
  return absl::OkStatus();
}

absl::Status XgboostModel::TrainFailures(const std::vector<const Sample*>& samples) {
  constexpr int kTrees = 60;
  BoosterMatrix matrix;
  MYCC_RETURN_IF_ERROR(matrix.Fill(RowsOf(samples)));
  std::vector<float> labels;
  for (const Sample* sample : samples) labels.push_back(sample->seconds ? 0.0f : 1.0f);
  MYCC_RETURN_IF_ERROR(matrix.Set("label", labels));
  failure_.emplace();
  MYCC_RETURN_IF_ERROR(
      failure_->Create({&matrix}, {"binary:logistic", config_.seed, config_.eta, config_.depth}));
  for (int tree = 0; tree < kTrees; ++tree) MYCC_RETURN_IF_ERROR(failure_->Boost(tree, matrix));
  return absl::OkStatus();
}

absl::Status XgboostModel::CheckWidth(const Features& row) const {
  if (row.size() == width_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cost model: trained on ", width_, " features, asked about ", row.size()));
}

absl::Status XgboostModel::Correct(const BoosterMatrix& matrix, std::vector<Correction>* corrections) const {
  constexpr double kMaxLog = 7;  // a factor of a thousand either way is no correction any more
  std::vector<double> sums(corrections->size(), 0.0), squares(corrections->size(), 0.0);
  for (const Booster& member : members_) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> margins, member.Margin(matrix));
    for (size_t i = 0; i < corrections->size(); ++i) {
      const double told = LogFactor(config_.objective, margins[i]);
      // A loaded model's trees may say anything.
      const double log = std::isnan(told) ? 0 : metrics_.share * std::clamp(told, -kMaxLog, kMaxLog);
      sums[i] += log;
      squares[i] += log * log;
    }
  }
  const double count = static_cast<double>(members_.size());
  for (size_t i = 0; i < corrections->size(); ++i) {
    const double mean = sums[i] / count;
    (*corrections)[i].factor *= std::exp(mean);
    (*corrections)[i].log_spread = std::sqrt(std::max(0.0, squares[i] / count - mean * mean));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Correction>> XgboostModel::Predict(const std::vector<const Features*>& rows,
                                                              const std::string& group) const {
  const auto offset = offsets_.find(group);
  std::vector<Correction> corrections(
      rows.size(), Correction{std::exp(offset == offsets_.end() ? mean_offset_ : offset->second), 0, 0});
  if (rows.empty() || (members_.empty() && !failure_)) return corrections;
  MYCC_RETURN_IF_ERROR(CheckWidth(*rows[0]));
  BoosterMatrix matrix;
  MYCC_RETURN_IF_ERROR(matrix.Fill(rows));
  if (!members_.empty()) MYCC_RETURN_IF_ERROR(Correct(matrix, &corrections));
  if (failure_) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> odds, failure_->Predict(matrix));
    for (size_t i = 0; i < rows.size(); ++i) corrections[i].failure_probability = odds[i];
  }
  return corrections;
}

absl::StatusOr<std::vector<double>> XgboostModel::Contributions(const Features& row) const {
  std::vector<double> contributions(row.size(), 0.0);
  if (members_.empty()) return contributions;
  MYCC_RETURN_IF_ERROR(CheckWidth(row));
  BoosterMatrix matrix;
  MYCC_RETURN_IF_ERROR(matrix.Fill({&row}));
  for (const Booster& member : members_) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<float> values, member.Contributions(matrix));
    if (values.size() != row.size() + 1) {
      return absl::InternalError(absl::StrCat("xgboost: ", values.size(), " contributions of ", row.size(),
                                              " features; expected one more"));
    }
    for (size_t i = 0; i < row.size(); ++i)
      contributions[i] +=
          metrics_.share * LogFactor(config_.objective, values[i]) / static_cast<double>(members_.size());
  }
  return contributions;
}

absl::StatusOr<std::vector<double>> XgboostModel::Gains() const {
  std::vector<double> shares(width_, 0.0);
  double all = 0;
  for (const Booster& member : members_) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<double> gains, member.Gains(width_));
    for (size_t i = 0; i < shares.size(); ++i) {
      shares[i] += gains[i];
      all += gains[i];
    }
  }
  for (double& share : shares) share = all > 0 ? share / all : 0;
  return shares;
}

absl::StatusOr<std::string> XgboostModel::Save() const {
  ByteWriter body;
  body.Put<int32_t>(kFeatureVersion);
  body.Put(width_);
  body.Put(mean_offset_);
  PutMetrics(metrics_, &body);
  body.Put(static_cast<uint8_t>(config_.objective));
  body.Put<uint64_t>(offsets_.size());
  for (const auto& [group, offset] : offsets_) {
    body.PutString(group);
    body.Put(offset);
  }
  body.Put(static_cast<uint32_t>(members_.size()));
  for (const Booster& member : members_) {
    MYCC_ASSIGN_OR_RETURN(const std::string bytes, member.Save());
    body.PutString(bytes);
  }
  std::string failure;
  if (failure_) {
    MYCC_ASSIGN_OR_RETURN(failure, failure_->Save());
  }
  body.PutString(failure);
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
  const auto cut_short = [] {
    return absl::InvalidArgumentError("the cost model's bytes end too early or too late");
  };
  XgboostModel loaded(config_);
  loaded.width_ = body.Get<uint32_t>();
  loaded.mean_offset_ = body.Get<double>();
  loaded.metrics_ = GetMetrics(&body);
  const uint8_t objective = body.Get<uint8_t>();
  if (objective > static_cast<uint8_t>(Objective::kBestTenth)) return cut_short();
  loaded.config_.objective = static_cast<Objective>(objective);
  const uint64_t groups = body.Get<uint64_t>();
  for (uint64_t g = 0; g < groups && body.ok(); ++g) {
    const std::string group = body.GetString();
    loaded.offsets_[group] = body.Get<double>();
  }
  const uint32_t members = body.Get<uint32_t>();
  if (members > kMostMembers) return cut_short();
  for (uint32_t m = 0; m < members && body.ok(); ++m)
    MYCC_RETURN_IF_ERROR(loaded.members_.emplace_back().Load(body.GetString()));
  const std::string failure = body.GetString();
  if (!failure.empty()) MYCC_RETURN_IF_ERROR(loaded.failure_.emplace().Load(failure));
  if (!body.done()) return cut_short();
  const auto is_factor = [](double offset) { return std::abs(offset) <= kMostOffset; };  // no NaN is
  bool sound = is_factor(loaded.mean_offset_);
  for (const auto& [group, offset] : loaded.offsets_) sound = sound && is_factor(offset);
  if (!sound) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost model corrects a task by what is no number, or none of use; expected a "
                     "logarithm of -",
                     kMostOffset, " to ", kMostOffset));
  }
  if (!(loaded.metrics_.share >= 0 && loaded.metrics_.share <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the cost model applies a share of ", loaded.metrics_.share, " of its correction; expected 0 to 1"));
  }
  *this = std::move(loaded);
  return absl::OkStatus();
}

}  // namespace mycc
