// The classes of devices that have a cost model of their own, and what a new class starts from.
#include "tuner/cost/model_kind.h"

#include "gtest/gtest.h"

namespace mycc {
namespace {

using Kinds = std::vector<std::string>;

std::string KindOf(const std::string& target) { return ModelKind(*ParseTarget(target)); }

TEST(ModelKindTest, DevicesOfAClassShareAModel) {
  EXPECT_EQ(KindOf("h200"), "cost-sm_90a");
  EXPECT_EQ(KindOf("znver3"), "cost-avx2");
  EXPECT_EQ(KindOf("haswell"), KindOf("znver3 threads=4"));
  EXPECT_EQ(KindOf("v1 cpu mcpu=znver5 l1d=48K l2=1M threads=1"), "cost-avx512-server");
  EXPECT_EQ(KindOf("v1 cpu mcpu=znver5 l1d=48K l2=512K threads=1"), "cost-avx512");
  EXPECT_EQ(KindOf("v1 cpu mcpu=sapphirerapids features=+amx-bf16,+amx-int8 l1d=48K l2=2M threads=2"),
            "cost-amx");
}

TEST(ModelKindTest, ANewClassStartsFromTheNearest) {
  const Kinds known = {"cost-cpu",    "cost-amx",  "cost-avx2", "cost-sm_80",
                       "cost-sm_90a", "cost-cuda", "other"};
  EXPECT_EQ(NearestKinds("cost-avx512", known), (Kinds{"cost-avx2", "cost-amx", "cost-cpu"}));
  EXPECT_EQ(NearestKinds("cost-avx512-server", known), (Kinds{"cost-amx", "cost-avx2", "cost-cpu"}));
  EXPECT_EQ(NearestKinds("cost-avx2", known).front(), "cost-avx2");
  EXPECT_EQ(NearestKinds("cost-sm_89", known), (Kinds{"cost-sm_90a", "cost-sm_80", "cost-cuda"}));
  EXPECT_EQ(NearestKinds("cost-sm_80", known).front(), "cost-sm_80");
  EXPECT_TRUE(NearestKinds("cost-sm_80", {"cost-cpu", "cost-amx"}).empty());
  EXPECT_TRUE(NearestKinds("cost-amx", {}).empty());
  EXPECT_EQ(NearestKinds("cost-sm_90a", {"cost-sm_99999999999999", "cost-sm_80"}).front(), "cost-sm_80");
}

}  // namespace
}  // namespace mycc
