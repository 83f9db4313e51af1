#include "worker/gpu_semantics.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace mycc {
namespace {

// Places of all shares, and the time that they may take one thread: a place of a long chain of stages may be
// expensive.
constexpr int64_t kCheckedPlaces = 64, kSampledPlaces = 4096;
constexpr double kCheckSeconds = 0.5, kSampleSeconds = 10;
constexpr int64_t kMostThreads = 8;

// One call for each share, each by a thread of its own.
template <typename Fn>
auto StartShares(const Fn& of_share) {
  const int64_t threads = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  std::vector<std::future<decltype(of_share(PlaceShare()))>> shares;
  for (int64_t i = 0; i < threads; ++i)
    shares.push_back(std::async(std::launch::async, of_share, PlaceShare{i, threads}));
  return shares;
}

std::vector<SampledValues> Joined(std::vector<std::future<std::vector<SampledValues>>>* shares) {
  std::vector<SampledValues> joined;
  for (std::future<std::vector<SampledValues>>& share : *shares) {
    std::vector<SampledValues> outputs = share.get();
    joined.resize(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      joined[i].dtype = outputs[i].dtype;
      joined[i].places.insert(joined[i].places.end(), outputs[i].places.begin(), outputs[i].places.end());
      joined[i].values += outputs[i].values;
    }
  }
  return joined;
}

}  // namespace

GpuSemantics::GpuSemantics(const v1::PrepareRequest& request, Workload workload, std::vector<NDArray> inputs,
                           std::vector<NDArray> special)
    : text_(request.workload()),
      seed_(request.seed()),
      workload_(std::move(workload)),
      inputs_(std::move(inputs)),
      special_(std::move(special)),
      checked_(StartShares(
          [this](PlaceShare share) { return SampleShare(kCheckedPlaces, kCheckSeconds, share); })),
      permitted_(StartShares(
          [this](PlaceShare share) { return PermitOutputs(workload_, special_, seed_, share); })) {}

bool GpuSemantics::IsOf(const v1::PrepareRequest& request) const {
  return text_ == request.workload() && seed_ == request.seed();
}

std::vector<SampledValues> GpuSemantics::TakeChecked() { return Joined(&checked_); }

PermittedOutputs GpuSemantics::TakePermitted() {
  PermittedOutputs outputs;
  for (std::future<PermittedOutputs>& share : permitted_) AddShare(share.get(), &outputs);
  return outputs;
}

std::vector<SampledValues> GpuSemantics::Sample() const {
  auto shares =
      StartShares([this](PlaceShare share) { return SampleShare(kSampledPlaces, kSampleSeconds, share); });
  return Joined(&shares);
}

std::vector<SampledValues> GpuSemantics::SampleShare(int64_t places, double seconds, PlaceShare share) const {
  SampledReference reference(workload_, inputs_);
  std::vector<SampledValues> sampled;
  for (size_t i = 0; i < workload_.outputs.size(); ++i) {
    sampled.push_back(SampleOutput(workload_, &reference, static_cast<int>(i), places,
                                   seconds / static_cast<double>(share.of), seed_, share));
  }
  return sampled;
}

}  // namespace mycc
