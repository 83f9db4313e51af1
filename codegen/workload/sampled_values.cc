#include "codegen/workload/sampled_values.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <unordered_set>

namespace mycc {

std::vector<int64_t> PickPlaces(int64_t elements, int64_t count, uint64_t seed, PlaceShare share) {
  std::vector<int64_t> places;
  std::unordered_set<int64_t> seen;
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < std::min(count, elements); ++i) {
    const int64_t from_end = i / 4;
    const int64_t place = elements <= count ? i
                          : i % 4 == 0      ? from_end
                          : i % 4 == 1      ? elements - 1 - from_end
                                       : static_cast<int64_t>(random() % static_cast<uint64_t>(elements));
    if (seen.insert(place).second) places.push_back(place);
  }
  std::vector<int64_t> shared;
  for (size_t i = static_cast<size_t>(share.index); i < places.size(); i += static_cast<size_t>(share.of))
    shared.push_back(places[i]);
  return shared;
}

Expected SampledValues::expected() const {
  return {dtype, reinterpret_cast<const uint8_t*>(values.data()), places,
          static_cast<int64_t>(places.size())};
}

SampledValues SampleOutput(const Workload& workload, SampledReference* reference, int output, int64_t count,
                           double seconds, uint64_t seed, PlaceShare share) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const Buffer& tensor = workload.outputs[output];
  SampledValues sampled{tensor->dtype, PickPlaces(tensor->num_elements(), count, seed, share), ""};
  size_t reached = 0;
  while (reached < sampled.places.size() && (reached == 0 || Clock::now() < end)) {
    std::string bytes(DTypeBytes(sampled.dtype), '\0');
    StoreScalar(sampled.dtype, bytes.data(), reference->Output(output, sampled.places[reached]));
    sampled.values += bytes;
    ++reached;
  }
  sampled.places.resize(reached);
  return sampled;
}

}  // namespace mycc
