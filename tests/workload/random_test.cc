// Properties that hold for every workload, on random ones.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/workload/canonical.h"
#include "codegen/workload/parse.h"
#include "codegen/workload/print.h"
#include "codegen/workload/reference.h"
#include "tests/workload/random_workload.h"

namespace mycc {
namespace {

constexpr uint64_t kSeeds = 1000;

bool SameValue(DType dtype, Scalar a, Scalar b) {
  if (!IsFloat(dtype)) return a.i == b.i;
  return a.f == b.f || (std::isnan(a.f) && std::isnan(b.f));
}

void ExpectSameArrays(const std::vector<NDArray>& a, const std::vector<NDArray>& b, const std::string& text) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].shape, b[k].shape) << text;
    for (int64_t i = 0; i < a[k].num_elements(); ++i) {
      ASSERT_TRUE(SameValue(a[k].dtype, a[k].Get(i), b[k].Get(i)))
          << "output " << k << " element " << i << ": " << a[k].Get(i).f << " " << b[k].Get(i).f << " / "
          << a[k].Get(i).i << " " << b[k].Get(i).i << "\n"
          << text;
    }
  }
}

TEST(RandomWorkloads, AreValid) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload workload = RandomWorkload(seed);
    EXPECT_TRUE(Validate(workload).ok()) << Validate(workload) << "\n" << PrintWorkload(workload);
  }
}

TEST(RandomWorkloads, ParseWhatTheyPrint) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const std::string text = PrintWorkload(workload);
    const auto parsed = ParseWorkload(text, "random");
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    std::string why;
    EXPECT_TRUE(SameWorkload(workload, *parsed, &why)) << why << "\n" << text << PrintWorkload(*parsed);
  }
}

TEST(RandomWorkloads, CanonicalTextParsesToTheCanonicalWorkload) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload canonical = Canonicalize(RandomWorkload(seed));
    const auto parsed = ParseWorkload(CanonicalText(canonical), "canonical");
    ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << CanonicalText(canonical);
    std::string why;
    EXPECT_TRUE(SameWorkload(canonical, *parsed, &why)) << why << "\n" << CanonicalText(canonical);
    EXPECT_TRUE(SameWorkload(canonical, Canonicalize(*parsed), &why)) << why << "\n"
                                                                      << CanonicalText(canonical);
  }
}

TEST(RandomWorkloads, CanonicalFormSeesThroughDisguises) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload workload = RandomWorkload(seed);
    for (uint64_t k = 0; k < 3; ++k) {
      const Workload disguised = Disguise(workload, seed * 3 + k);
      ASSERT_TRUE(Validate(disguised).ok()) << Validate(disguised);
      ASSERT_EQ(CanonicalText(disguised), CanonicalText(workload))
          << PrintWorkload(workload) << PrintWorkload(disguised);
      EXPECT_EQ(ShapeErasedText(disguised), ShapeErasedText(workload));
    }
  }
}

TEST(RandomWorkloads, CanonicalFormComputesTheSame) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const std::vector<NDArray> inputs = RandomInputs(workload, seed);
    const auto expected = RunReference(workload, inputs),
               found = RunReference(Canonicalize(workload), inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(found.ok()) << found.status();
    ExpectSameArrays(*expected, *found, PrintWorkload(workload));
  }
}

TEST(RandomInputs, AreTheSameElementByElement) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const auto expect_same = [&](const std::vector<NDArray>& arrays, const InputElements& elements) {
      for (size_t k = 0; k < arrays.size(); ++k) {
        for (int64_t i = 0; i < arrays[k].num_elements(); ++i) {
          ASSERT_TRUE(SameValue(arrays[k].dtype, arrays[k].Get(i), elements(k, i)))
              << "input " << k << ", element " << i << "\n"
              << PrintWorkload(workload);
        }
      }
    };
    expect_same(RandomInputs(workload, seed), RandomElements(workload, seed));
    expect_same(SpecialInputs(workload, seed), SpecialElements(workload, seed));
  }
}

// Two evaluators that share nothing but the meaning of single operations.
TEST(RandomWorkloads, BlocksAndSinglePointsEvaluateAlike) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Workload workload = RandomWorkload(seed);
    const std::vector<NDArray> inputs = RandomInputs(workload, seed);
    const auto outputs = RunReference(workload, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    SampledReference sampled(workload, StoredElements(inputs));
    for (size_t k = 0; k < outputs->size(); ++k) {
      for (int64_t i = 0; i < (*outputs)[k].num_elements(); ++i) {
        const Scalar a = (*outputs)[k].Get(i), b = sampled.Output(static_cast<int>(k), i);
        ASSERT_TRUE(SameValue((*outputs)[k].dtype, a, b)) << k << " " << i << " " << a.f << " " << b.f << "\n"
                                                          << PrintWorkload(workload);
      }
    }
  }
}

}  // namespace
}  // namespace mycc
