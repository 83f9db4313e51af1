// How the searches of a server divide its processors.
#include "server/search_cores.h"

#include <optional>

#include "gtest/gtest.h"

namespace mycc {
namespace {

TEST(SearchCoresTest, ACallAloneHasAllAndOthersShareWhatIsFree) {
  SearchCores cores(8);
  std::optional<SearchCores::Lease> a, b, c, d;
  EXPECT_EQ(a.emplace(&cores).count(), 8);
  EXPECT_EQ(b.emplace(&cores).count(), 1) << "none is free, and it does not wait";
  a.reset();
  EXPECT_EQ(a.emplace(&cores).count(), 4) << "of two calls";
  EXPECT_EQ(c.emplace(&cores).count(), 2) << "of three";
  EXPECT_EQ(d.emplace(&cores).count(), 1) << "seven are taken";
  a.reset(), b.reset(), c.reset(), d.reset();
  EXPECT_EQ(a.emplace(&cores).count(), 8) << "all came back";
}

TEST(SearchCoresTest, ACallTakesNoMoreThanItCanUse) {
  SearchCores cores(128);
  EXPECT_EQ(cores.most_of_call(), 16);
  const SearchCores::Lease a(&cores), b(&cores);
  EXPECT_EQ(a.count(), 16);
  EXPECT_EQ(b.count(), 16);
}

TEST(SearchCoresTest, ThereIsOneAtLeast) {
  SearchCores cores;
  EXPECT_GE(cores.most_of_call(), 1);
}

}  // namespace
}  // namespace mycc
