#include "worker/gpu_semantics.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace mycc {
namespace {

// Places of all shares, and the time that they may take one thread: a place of a long chain of stages may be
// expensive.
constexpr int64_t kCheckedPlaces = 64, kSampledPlaces = 4096;
constexpr double kCheckSeconds = 0.5, kSampleSeconds = 10;
constexpr int64_t kMostThreads = 8;

void Add(std::vector<SampledValues> share, std::vector<SampledValues>* all) {
  all->resize(share.size());
  for (size_t i = 0; i < share.size(); ++i) {
    SampledValues& joined = (*all)[i];
    joined.dtype = share[i].dtype;
    joined.places.insert(joined.places.end(), share[i].places.begin(), share[i].places.end());
    joined.values += share[i].values;
  }
}
void Add(const PermittedOutputs& share, PermittedOutputs* all) { AddShare(share, all); }

// Computes at most `places` places by several threads, which may take `seconds` together. The first place is
// computed alone. Its time decides how many threads begin, because each of them computes and keeps what its
// places need of intermediate tensors. A first place that takes most of the time is the whole result.
template <typename Fn>
auto InShares(int64_t places, double seconds, const Fn& of_share) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto all = of_share(PlaceShare{0, places});
  const double first = std::chrono::duration<double>(Clock::now() - start).count();
  if (first > seconds / 2) return all;
  all = {};
  const int64_t most = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  const int64_t threads = std::clamp<int64_t>(static_cast<int64_t>(seconds / (first + 1e-9)), 1, most);
  std::vector<std::future<decltype(all)>> shares;
  for (int64_t i = 0; i < threads; ++i)
    shares.push_back(std::async(std::launch::async, of_share, PlaceShare{i, threads}));
  for (auto& share : shares) Add(share.get(), &all);
  return all;
}

}  // namespace

GpuSemantics::GpuSemantics(const v1::PrepareRequest& request, Workload workload)
    : text_(request.workload()),
      seed_(request.seed()),
      workload_(std::move(workload)),
      checked_(std::async(std::launch::async, [this] { return Sample(kCheckedPlaces, kCheckSeconds); })),
      permitted_(std::async(std::launch::async, [this] {
        return InShares(kPermittedPlaces, kPermitSeconds, [this](PlaceShare share) {
          return PermitOutputs(workload_, SpecialElements(workload_, seed_), seed_, share);
        });
      })) {}

bool GpuSemantics::IsOf(const v1::PrepareRequest& request) const {
  return text_ == request.workload() && seed_ == request.seed();
}

std::vector<SampledValues> GpuSemantics::Sample() const { return Sample(kSampledPlaces, kSampleSeconds); }

std::vector<SampledValues> GpuSemantics::Sample(int64_t places, double seconds) const {
  return InShares(places, seconds, [this, places, seconds](PlaceShare share) {
    SampledReference reference(workload_, RandomElements(workload_, seed_));
    std::vector<SampledValues> sampled;
    for (size_t i = 0; i < workload_.outputs.size(); ++i) {
      sampled.push_back(SampleOutput(workload_, &reference, static_cast<int>(i), places,
                                     seconds / static_cast<double>(share.of), seed_, share));
    }
    return sampled;
  });
}

}  // namespace mycc
