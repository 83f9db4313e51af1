#include "tuner/cost/learner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tuner/cost/bytes.h"

namespace mycc {
namespace {

constexpr char kLearnerFormat[] = "mycc-learner-3";
constexpr char kFormatBefore[] = "mycc-learner-2";  // its model has seen all samples
constexpr size_t kMaxSamples = 4000;                // kept for later jobs
constexpr size_t kMaxSamplesOfTask = 512;           // of these, so that a long job leaves those of others
// Limits of the samples that a model is trained on: its training takes the same time in every job.
constexpr size_t kTrainedOfTask = 1000, kTrainedOfOthers = 1000;
constexpr size_t kMostOfTask = 2 * kTrainedOfTask;
constexpr size_t kModelsInMemory = 32;

void PutSample(const Sample& sample, ByteWriter* out) {
  out->PutString(sample.group);
  out->Put(sample.analytic_seconds);
  out->Put(sample.seconds.value_or(0));
  for (const float feature : sample.features) out->Put(feature);
}

Sample GetSample(uint32_t width, ByteReader* in) {
  Sample sample;
  sample.group = in->GetString();
  sample.analytic_seconds = in->Get<double>();
  const double seconds = in->Get<double>();
  if (seconds > 0) sample.seconds = seconds;
  for (uint32_t i = 0; i < width; ++i) sample.features.push_back(in->Get<float>());
  return sample;
}

// Refuses a sample that training would stumble over in every job from then on.
absl::Status CheckSample(const Sample& sample) {
  const bool is_timed = !sample.seconds || std::isfinite(*sample.seconds);
  const bool is_sound =
      is_timed && std::isfinite(sample.analytic_seconds) && sample.analytic_seconds > 0 &&
      std::ranges::none_of(sample.features, [](float feature) { return std::isinf(feature); });
  if (is_sound) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the cost model has a sample of task ",
                                                 absl::CHexEscape(sample.group.substr(0, 64)),
                                                 " without a finite time or feature"));
}

// Whether the model answers about a row of this build's features.
absl::Status CheckAnswer(const XgboostModel& model) {
  const Features row(FunctionFeatureSlots().size(), 0.0f);
  if (model.width() != 0 && model.width() != row.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost model was trained on ", model.width(), " features; expected ", row.size()));
  }
  const absl::StatusOr<std::vector<Correction>> answer = model.Predict({&row}, "");
  if (answer.ok() && std::isfinite((*answer)[0].factor) && (*answer)[0].factor > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the cost model gives no correction for ", row.size(), " features",
                   answer.ok() ? "" : absl::StrCat(": ", std::string(answer.status().message()))));
}

// A fifth more samples than the model was trained on, or than are left of these, are worth a training. It
// takes seconds where there are thousands. A model that had too few samples is made as soon as there are
// enough.
bool IsTrainingDue(const ModelMetrics& metrics, uint64_t left, uint64_t unseen, int fewest) {
  const uint64_t seen = static_cast<uint64_t>(metrics.samples) + static_cast<uint64_t>(metrics.failures);
  return unseen > 0 && (metrics.samples < fewest || 5 * unseen >= std::min(seen, left));
}

// The samples that are kept for later jobs.
std::vector<const Sample*> LatestOf(const std::vector<const Sample*>& samples) {
  std::map<std::string, size_t> of_task;
  std::vector<const Sample*> kept;
  for (size_t i = samples.size(); i-- > 0 && kept.size() < kMaxSamples;) {
    if (++of_task[samples[i]->group] <= kMaxSamplesOfTask) kept.push_back(samples[i]);
  }
  std::ranges::reverse(kept);
  return kept;
}

}  // namespace

absl::Status Learner::Add(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    MYCC_ASSIGN_OR_RETURN(const std::vector<Correction> corrections,
                          earlier_model_.Predict({&sample.features}, sample.group));
    own_.push_back({sample, sample.analytic_seconds, num_own_});
    own_.back().sample.analytic_seconds *= corrections[0].factor;
    numbers_[sample.group].push_back(num_own_++);
    ++kept_[sample.group];
  }
  for (const Sample& sample : samples) {
    if (kept_[sample.group] > kMostOfTask) Forget(sample.group);
  }
  updated_for_.reset();
  return absl::OkStatus();
}

// A training sees the latest samples of all, or of those that the latest proposals' model has seen.
void Learner::Forget(const std::string& group) {
  const std::vector<uint64_t>& numbers = numbers_[group];
  const auto latest_before = [&](uint64_t count) {
    const size_t before = static_cast<size_t>(std::ranges::lower_bound(numbers, count) - numbers.begin());
    return std::make_pair(before < kTrainedOfTask ? 0 : numbers[before - kTrainedOfTask], count);
  };
  const auto then = latest_before(std::min(proposed_by_, num_own_)), now = latest_before(num_own_);
  const auto is_in = [](const std::pair<uint64_t, uint64_t>& range, uint64_t number) {
    return number >= range.first && number < range.second;
  };
  kept_[group] -= std::erase_if(own_, [&](const OwnSample& own) {
    return own.sample.group == group && !is_in(then, own.number) && !is_in(now, own.number);
  });
}

void Learner::Proposed(uint64_t version) {
  proposed_by_ = version;
  updated_for_.reset();
}

uint64_t Learner::VersionDue(const std::string& group) const {
  const auto grown = [](uint64_t now, uint64_t then) { return now > then && 5 * now >= 6 * then; };
  const auto numbers = numbers_.find(group);
  const auto of_group = [&](uint64_t count) -> uint64_t {
    if (numbers == numbers_.end()) return 0;
    const std::vector<uint64_t>& all = numbers->second;
    return static_cast<uint64_t>(std::ranges::lower_bound(all, count) - all.begin());
  };
  const uint64_t then = std::min(proposed_by_, num_own_);
  return grown(num_own_, then) || grown(of_group(num_own_), of_group(then)) ? num_own_ : then;
}

std::vector<const Sample*> Learner::TrainingSet(const std::string& group, uint64_t count) const {
  std::vector<const Sample*> samples;
  size_t of_task = 0, of_others = 0;
  for (size_t i = own_.size(); i-- > 0;) {
    if (own_[i].number >= count) continue;
    const bool is_of_task = own_[i].sample.group == group;
    size_t& taken = is_of_task ? of_task : of_others;
    if (taken >= (is_of_task ? kTrainedOfTask : kTrainedOfOthers)) continue;
    ++taken;
    samples.push_back(&own_[i].sample);
  }
  std::ranges::reverse(samples);
  return samples;
}

void Learner::ForgetModel() {
  if (own_models_.size() < kModelsInMemory) return;
  own_models_.erase(std::ranges::min_element(
      own_models_, [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

absl::Status Learner::Update(const std::string& group) {
  if (updated_for_ == group) return absl::OkStatus();
  const uint64_t due = VersionDue(group);
  auto known = own_models_.find(group);
  if (known == own_models_.end() || known->second.version != due) {
    if (known == own_models_.end()) ForgetModel();
    XgboostModel model(config_);
    MYCC_RETURN_IF_ERROR(model.Train(TrainingSet(group, due), group, parallel_));
    known = own_models_.insert_or_assign(group, OwnModel{due, std::move(model)}).first;
  }
  known->second.used = ++updates_;
  version_ = due;
  updated_for_ = group;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Correction>> Learner::Predict(const std::vector<const Features*>& rows,
                                                         const std::string& group) const {
  MYCC_ASSIGN_OR_RETURN(std::vector<Correction> corrections, earlier_model_.Predict(rows, group));
  if (num_own_ == 0) return corrections;
  if (updated_for_ != group) {
    return Refusal("cost model: predictions for task ", group, "; expected Update for it first");
  }
  MYCC_ASSIGN_OR_RETURN(const std::vector<Correction> own, own_models_.at(group).model.Predict(rows, group));
  for (size_t i = 0; i < rows.size(); ++i) {
    corrections[i].factor *= own[i].factor;
    corrections[i].failure_probability =
        std::max(corrections[i].failure_probability, own[i].failure_probability);
    corrections[i].log_spread = std::hypot(corrections[i].log_spread, own[i].log_spread);
  }
  return corrections;
}

ModelMetrics Learner::metrics() const {
  const auto model = updated_for_ ? own_models_.find(*updated_for_) : own_models_.end();
  return model == own_models_.end() ? ModelMetrics() : model->second.model.metrics();
}

absl::StatusOr<std::string> Learner::Save() const {
  // Some samples may be kept that are older.
  std::map<std::string, size_t> left = kept_;
  std::vector<Sample> own;
  for (const OwnSample& sample : own_) {
    if (left[sample.sample.group]-- > kTrainedOfTask) continue;
    own.push_back(sample.sample);
    own.back().analytic_seconds = sample.analytic_seconds;
  }
  std::vector<const Sample*> samples;
  for (const std::vector<Sample>* part : {&earlier_, &std::as_const(own)}) {
    for (const Sample& sample : *part) samples.push_back(&sample);
  }
  const uint64_t unseen = unseen_ + own.size();
  XgboostModel trained(config_);
  const bool trains = IsTrainingDue(earlier_model_.metrics(), earlier_.size(), unseen, config_.min_samples);
  if (trains) MYCC_RETURN_IF_ERROR(trained.Train(samples, /*task=*/"", parallel_));
  const std::vector<const Sample*> kept = LatestOf(samples);
  const size_t width = samples.empty() ? 0 : samples[0]->features.size();
  ByteWriter body;
  body.Put<int32_t>(kFeatureVersion);
  body.Put(static_cast<uint32_t>(width));
  body.Put<uint64_t>(kept.size());
  for (const Sample* sample : kept) PutSample(*sample, &body);
  body.Put<uint64_t>(trains ? 0 : unseen);
  MYCC_ASSIGN_OR_RETURN(const std::string model, (trains ? trained : earlier_model_).Save());
  body.PutString(model);
  return Seal(kLearnerFormat, body.Take());
}

absl::Status Learner::Load(const std::string& bytes, bool of_another_class) {
  const bool is_before = ByteReader(bytes).GetString() == kFormatBefore;
  MYCC_ASSIGN_OR_RETURN(const std::string content, Unseal(is_before ? kFormatBefore : kLearnerFormat, bytes));
  ByteReader body(content);
  const int32_t version = body.Get<int32_t>();
  const uint32_t width = body.Get<uint32_t>();
  const uint64_t count = body.Get<uint64_t>();
  if (version != kFeatureVersion || (count > 0 && width != FunctionFeatureSlots().size())) {
    return absl::InvalidArgumentError(absl::StrCat("the cost model is of feature version ", version, " with ",
                                                   width, " features; expected ", kFeatureVersion, " with ",
                                                   FunctionFeatureSlots().size()));
  }
  std::vector<Sample> samples;
  for (uint64_t i = 0; i < count && body.ok(); ++i) samples.push_back(GetSample(width, &body));
  const uint64_t unseen = is_before ? 0 : body.Get<uint64_t>();
  const std::string bytes_of_model = body.GetString();
  if (!body.done()) return absl::InvalidArgumentError("the cost model's bytes end too early or too late");
  if (unseen > samples.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the cost model waits for a training on ", unseen, " of ", samples.size(), " samples"));
  }
  for (const Sample& sample : samples) MYCC_RETURN_IF_ERROR(CheckSample(sample));
  XgboostModel model(config_);
  MYCC_RETURN_IF_ERROR(model.Load(bytes_of_model));
  MYCC_RETURN_IF_ERROR(CheckAnswer(model));
  if (model.metrics().samples < 0 || model.metrics().failures < 0)
    return absl::InvalidArgumentError("the cost model was trained on fewer than no samples");
  earlier_model_ = std::move(model);
  earlier_ = std::move(samples);
  unseen_ = of_another_class ? earlier_.size() : unseen;
  updated_for_.reset();
  return absl::OkStatus();
}

}  // namespace mycc
