// Shares of places by several threads are together what one thread computes.
#include "worker/gpu_semantics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codegen/workload/parse.h"

namespace mycc {
namespace {

constexpr char kText[] = R"(workload rows(x: f32[40,30]) -> (m: f32[40], y: f32[40,30]) {
  m[i] = max[j:30](x[i,j])
  y[i,j] = exp(x[i,j] - m[i])
})";
constexpr uint64_t kSeed = 5;

class GpuSemanticsTest : public testing::Test {
 protected:
  static v1::PrepareRequest RequestOf(uint64_t seed) {
    v1::PrepareRequest request;
    request.set_workload(kText);
    request.set_seed(seed);
    return request;
  }

  const Workload workload_ = *ParseWorkload(kText, "rows");
  const std::vector<NDArray> inputs_ = RandomInputs(workload_, kSeed),
                             special_ = SpecialInputs(workload_, kSeed);
  GpuSemantics semantics_{RequestOf(kSeed), workload_};
};

std::map<int64_t, std::string> ByPlace(const SampledValues& sampled) {
  const size_t bytes = sampled.values.size() / sampled.places.size();
  std::map<int64_t, std::string> values;
  for (size_t i = 0; i < sampled.places.size(); ++i)
    values[sampled.places[i]] = sampled.values.substr(i * bytes, bytes);
  return values;
}

TEST_F(GpuSemanticsTest, SharesAreTheWhole) {
  SampledReference reference(workload_, StoredElements(inputs_));
  const std::vector<SampledValues> checked = semantics_.TakeChecked(), many = semantics_.Sample();
  ASSERT_EQ(checked.size(), 2u);
  ASSERT_EQ(many.size(), 2u);
  for (int o = 0; o < 2; ++o) {
    EXPECT_EQ(ByPlace(checked[o]), ByPlace(SampleOutput(workload_, &reference, o, 64, 100, kSeed)));
    EXPECT_EQ(ByPlace(many[o]), ByPlace(SampleOutput(workload_, &reference, o, 4096, 100, kSeed)));
  }
}

TEST_F(GpuSemanticsTest, PermittedSharesAreTheWhole) {
  const std::vector<PermittedValues> permitted = PermittedOf(workload_, semantics_.TakePermitted()),
                                     whole = PermittedOf(
                                         workload_,
                                         PermitOutputs(workload_, StoredElements(special_), kSeed));
  ASSERT_EQ(permitted.size(), whole.size());
  for (size_t o = 0; o < whole.size(); ++o) {
    std::vector<int64_t> places = permitted[o].places, all = whole[o].places;
    EXPECT_EQ(permitted[o].sets.size(), places.size());
    std::ranges::sort(places);
    std::ranges::sort(all);
    EXPECT_EQ(places, all);
  }
}

TEST_F(GpuSemanticsTest, ItIsOfOneWorkloadAndItsInputs) {
  EXPECT_TRUE(semantics_.IsOf(RequestOf(kSeed)));
  EXPECT_FALSE(semantics_.IsOf(RequestOf(kSeed + 1)));
  v1::PrepareRequest other = RequestOf(kSeed);
  other.set_workload("workload other(x: f32[2]) -> (y: f32[2]) { y[i] = x[i] }");
  EXPECT_FALSE(semantics_.IsOf(other));
}

TEST(PickPlacesTest, SharesDivideTheList) {
  for (const int64_t elements : {3, 100, 100000}) {
    std::vector<int64_t> shares, whole = PickPlaces(elements, 64, 1);
    for (int64_t i = 0; i < 5; ++i) {
      for (const int64_t place : PickPlaces(elements, 64, 1, {i, 5})) shares.push_back(place);
    }
    std::ranges::sort(shares);
    std::ranges::sort(whole);
    EXPECT_EQ(shares, whole);
  }
}

}  // namespace
}  // namespace mycc
