#include "tuner/cost/learner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tuner/cost/bytes.h"

namespace mycc {
namespace {

constexpr char kFormat[] = "mycc-learner-1";
constexpr size_t kMaxSamples = 4000;  // kept for later jobs

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

}  // namespace

void Learner::Add(std::vector<Sample> samples) {
  for (Sample& sample : samples) samples_.push_back(std::move(sample));
  if (5 * samples_.size() >= 6 * due_) due_ = samples_.size();
}

absl::Status Learner::Update() {
  if (trained_ == due_) return absl::OkStatus();
  std::vector<const Sample*> samples;
  for (size_t i = 0; i < due_; ++i) samples.push_back(&samples_[i]);
  MYCC_RETURN_IF_ERROR(model_.Train(samples));
  trained_ = due_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Learner::Save() {
  due_ = samples_.size();
  MYCC_RETURN_IF_ERROR(Update());
  const size_t first = samples_.size() > kMaxSamples ? samples_.size() - kMaxSamples : 0;
  const size_t width = samples_.empty() ? 0 : samples_[0].features.size();
  ByteWriter body;
  body.Put<int32_t>(kFeatureVersion);
  body.Put(static_cast<uint32_t>(width));
  body.Put<uint64_t>(samples_.size() - first);
  for (size_t i = first; i < samples_.size(); ++i) PutSample(samples_[i], &body);
  MYCC_ASSIGN_OR_RETURN(const std::string model, model_.Save());
  body.PutString(model);
  return Seal(kFormat, body.Take());
}

absl::Status Learner::Load(const std::string& bytes) {
  MYCC_ASSIGN_OR_RETURN(const std::string content, Unseal(kFormat, bytes));
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
  const std::string model = body.GetString();
  if (!body.done()) return absl::InvalidArgumentError("the cost model's bytes end too early or too late");
  MYCC_RETURN_IF_ERROR(model_.Load(model));
  samples_ = std::move(samples);
  due_ = trained_ = samples_.size();
  return absl::OkStatus();
}

}  // namespace mycc
