// The values of a part's decisions, by name.
#include "tuner/space/values.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

std::vector<std::pair<std::string, int64_t>> Listed(const Values& values) {
  std::vector<std::pair<std::string, int64_t>> listed;
  for (const auto& [name, value] : values) listed.emplace_back(name, value);
  return listed;
}

TEST(ValuesTest, KnowsTheValueOfEachName) {
  const Values values = {{"mr", 6}, {"m", 2}, {"nr", 16}};
  EXPECT_EQ(values.at("mr"), 6);
  EXPECT_EQ(values.at("m"), 2);
  EXPECT_EQ(values.at("nr"), 16);
  EXPECT_TRUE(values.contains("m"));
  EXPECT_FALSE(values.contains("n"));
}

TEST(ValuesTest, AnAssignmentAddsANameOrChangesItsValue) {
  Values values = {{"mr", 6}};
  values["nr"] = 16;
  values["mr"] = 4;
  EXPECT_EQ(values["kc"], 0);
  EXPECT_THAT(Listed(values), ElementsAre(Pair("mr", 4), Pair("nr", 16), Pair("kc", 0)));
}

TEST(ValuesTest, CopiesAreApart) {
  const Values values = {{"mr", 6}};
  Values changed = values;
  changed["mr"] = 4;
  EXPECT_EQ(values.at("mr"), 6);
  EXPECT_EQ(changed.at("mr"), 4);
}

TEST(ValuesTest, ThereMayBeManyNames) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(std::to_string(i));
  Values values;
  for (int i = 0; i < 100; ++i) values.Add(names[i], 10 * i);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values.at(names[i]), 10 * i);
}

TEST(ValuesDeathTest, ANameThatNothingDecides) {
  const Values values = {{"mr", 6}};
  EXPECT_DEATH(values.at("nr"), "nothing decides nr");
}

}  // namespace
}  // namespace mycc
