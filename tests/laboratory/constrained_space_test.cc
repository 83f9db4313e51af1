// Constrained spaces: the dynamic programming counts what a plain walk visits.
#include "laboratory/constrained_space.h"

#include <gtest/gtest.h>

#include <random>

namespace mycc {
namespace {

ConstrainedParameter Range(const std::string& name, int first, int last) {
  ConstrainedParameter parameter{name, {}};
  for (int i = first; i <= last; ++i) parameter.values.push_back(PythonValue::OfInt(i));
  return parameter;
}

ConstrainedSpace Make(std::vector<ConstrainedParameter> parameters,
                      const std::vector<std::string>& constraints) {
  auto space = ConstrainedSpace::Create(std::move(parameters), constraints);
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

// By trying every configuration.
int64_t CountByTrying(const ConstrainedSpace& space) {
  const ConstrainedSpace all = Make(space.parameters(), {});
  int64_t count = 0;
  EXPECT_TRUE(all.ForEach([&](const std::vector<int>& choices) {
                   count += *space.Satisfies(choices);
                   return absl::OkStatus();
                 })
                  .ok());
  return count;
}

TEST(ConstrainedSpaceTest, WalksInAscendingOrder) {
  const ConstrainedSpace space = Make({Range("a", 1, 3), Range("b", 0, 2)}, {"a * b >= 2", "a != 2"});
  std::vector<std::vector<int>> visited;
  ASSERT_TRUE(space
                  .ForEach([&](const std::vector<int>& choices) {
                    visited.push_back(choices);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(visited, (std::vector<std::vector<int>>{{0, 2}, {2, 1}, {2, 2}}));
  EXPECT_EQ(*CountConfigurations(space), 3);
  EXPECT_EQ(space.raw_size(), 9);
}

TEST(ConstrainedSpaceTest, CountsWhatTryingCounts) {
  const std::vector<std::string> templates = {"a * b <= 12",
                                              "b % c == 0",
                                              "a + b * c - d in [3, 5, 8]",
                                              "(a == 1 or b // a == 2) and d > 0",
                                              "c == 2 or d % 2",
                                              "sum([a, b, c]) < 9",
                                              "not (a == 3 and e == 1)",
                                              "max(a, b) * e <= 6",
                                              "1 <= c <= e + 2",
                                              "d / c == 1.5 or e",
                                              "any([i == a for i in [b, c]])",
                                              "(a if b > 2 else c) != d"};
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::string> constraints;
    for (const std::string& constraint : templates) {
      if (random() % 3 == 0) constraints.push_back(constraint);
    }
    const ConstrainedSpace space = Make({Range("a", 1, 4), Range("b", 0, 5), Range("c", 1, 3),
                                         Range("d", 0, 4), Range("e", 0, 2), Range("f", 3, 3)},
                                        constraints);
    const auto count = CountConfigurations(space);
    ASSERT_TRUE(count.ok()) << count.status();
    int64_t walked = 0;
    ASSERT_TRUE(space
                    .ForEach([&](const std::vector<int>&) {
                      ++walked;
                      return absl::OkStatus();
                    })
                    .ok());
    EXPECT_EQ(*count, walked);
    EXPECT_EQ(*count, CountByTrying(space));
  }
}

TEST(ConstrainedSpaceTest, CountsTrillionsOfConfigurations) {
  std::vector<ConstrainedParameter> parameters;
  for (char name = 'a'; name <= 'l'; ++name) parameters.push_back(Range(std::string(1, name), 1, 10));
  // Sums of twelve numbers, at most 24, among 10^12 configurations: known from the number of compositions.
  const ConstrainedSpace sums = Make(parameters, {"a + b + c + d + e + f + g + h + i + j + k + l <= 24"});
  // They are C(24, 12), less those with a number over 10. A sum up to 24 has one such number at most: 12 *
  // C(14, 12).
  EXPECT_EQ(*CountConfigurations(sums), 2704156 - 12 * 91);
  const ConstrainedSpace free = Make(parameters, {"a * b <= 10", "a + c == 11"});
  EXPECT_EQ(*CountConfigurations(free), 27'000'000'000);  // 27 pairs of a and b
  for (char name = 'm'; name <= 'u'; ++name) parameters.push_back(Range(std::string(1, name), 1, 10));
  EXPECT_EQ(CountConfigurations(Make(parameters, {})).status().message(),
            "2^63 configurations or more; expected a smaller space");
}

// A guard and what it guards are decided apart; the outcome is the same.
TEST(ConstrainedSpaceTest, AGuardExcludesWhatItGuards) {
  const std::vector<ConstrainedParameter> parameters = {Range("a", 0, 3), Range("b", 0, 3), Range("c", 1, 2)};
  for (const char* guarded :
       {"a != 0 and b % a == 0", "b % a == 0 and a != 0", "(c > 0 and a > 0) and b % a < 1"})
    EXPECT_EQ(*CountConfigurations(Make(parameters, {guarded})), 2 * (4 + 2 + 2)) << guarded;
  const ConstrainedSpace chain = Make(parameters, {"0 < a <= b < 4 // c"});
  EXPECT_EQ(*CountConfigurations(chain), CountByTrying(chain));
}

TEST(ConstrainedSpaceTest, APartWithoutParametersMayFailByItself) {
  const std::vector<ConstrainedParameter> parameters = {Range("a", 0, 3)};
  EXPECT_EQ(CountConfigurations(Make(parameters, {"a > 1 and 2 // 0"})).status().message(),
            "constraint 1, \"a > 1 and 2 // 0\": column 13: `//` by zero; expected another divisor");
  EXPECT_EQ(*CountConfigurations(Make(parameters, {"a > 3 and 2 // 0"})), 0);
}

// Seven numbers that all differ: the pairs share what they wait for.
TEST(ConstrainedSpaceTest, CountsPermutations) {
  std::vector<ConstrainedParameter> parameters;
  std::vector<std::string> constraints;
  for (char a = 'a'; a < 'h'; ++a) {
    parameters.push_back(Range(std::string(1, a), 1, 7));
    for (char b = 'a'; b < a; ++b) constraints.push_back(std::string{a} + " != " + b);
  }
  EXPECT_EQ(*CountConfigurations(Make(parameters, constraints)), 5040);
}

TEST(ConstrainedSpaceTest, AParameterOfManyValuesIsToldByMoreThanAByte) {
  const ConstrainedSpace space = Make({Range("a", 1, 300), Range("b", 1, 300), Range("c", 0, 1)},
                                      {"a == b or c == 1 and a < 151", "any(i == a for i in [b, 150])"});
  EXPECT_EQ(*CountConfigurations(space), CountByTrying(space));
}

TEST(ConstrainedSpaceTest, AnErrorCountsUnlessAnotherConstraintExcludesIt) {
  const std::vector<ConstrainedParameter> parameters = {Range("a", 0, 2), Range("b", 0, 2)};
  const ConstrainedSpace excluded = Make(parameters, {"b % a == 0", "a + 0 * b > 0"});
  EXPECT_EQ(*CountConfigurations(excluded), 5);
  EXPECT_EQ(*excluded.Satisfies({0, 1}), false);
  const ConstrainedSpace open = Make(parameters, {"b % a == 0", "b > 1"});
  const char kError[] =
      "constraint 1, \"b % a == 0\": column 3: `%` by zero; expected another divisor at a = 0, b = 2";
  EXPECT_EQ(CountConfigurations(open).status().message(), kError);
  EXPECT_EQ(open.ForEach([](const std::vector<int>&) { return absl::OkStatus(); }).message(), kError);
  EXPECT_EQ(open.Satisfies({0, 2}).status().message(), kError);
}

TEST(ConstrainedSpaceTest, ConstraintsWithoutParametersDecideAll) {
  EXPECT_EQ(*CountConfigurations(Make({Range("a", 1, 3)}, {"1 > 2"})), 0);
  EXPECT_EQ(*CountConfigurations(Make({Range("a", 1, 3)}, {"True"})), 3);
}

TEST(ConstrainedSpaceTest, RefusesWhatIsNoSpace) {
  EXPECT_EQ(ConstrainedSpace::Create({Range("a", 1, 2)}, {"a > 1", "a + c"}).status().message(),
            "constraint 2, \"a + c\": column 5: unknown name `c`; expected a parameter: a");
  EXPECT_EQ(ConstrainedSpace::Create({{"a", {}}}, {}).status().message(),
            "parameter `a` has no values; expected one");
  EXPECT_EQ(ConstrainedSpace::Create({Range("a", 1, 2), Range("a", 1, 2)}, {}).status().message(),
            "two parameters `a`; expected one");
}

}  // namespace
}  // namespace mycc
