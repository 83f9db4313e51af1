// Texts of .npy files: characters of all lengths there and back, and what is no text.
#include "command/npy_texts.h"

#include <gmock/gmock.h>

namespace mycc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NpyTextsTest, RoundTrips) {
  const std::vector<std::string> texts = {"", "plain", "Straße", "ｱ日本", "𝄞 clef"};
  const NpyArray array = NpyOfTexts(texts, {5, 1});
  EXPECT_EQ(array.descr, "<U6");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(array.bytes.size(), 5 * 6 * 4U);
  const auto again = TextsOfNpy(array, "a.npy");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, texts);
}

TEST(NpyTextsTest, EmptyArrays) {
  EXPECT_EQ(NpyOfTexts({}, {0}).descr, "<U1");
  EXPECT_EQ(TextsOfNpy({"<U0", {2}, ""}, "a.npy")->size(), 2U);
  EXPECT_TRUE(TextsOfNpy({"<U7", {0}, ""}, "a.npy")->empty());
}

TEST(NpyTextsTest, BytesThatAreNoCharactersAreReplaced) {
  const NpyArray array = NpyOfTexts({"a\xff", "\xc3", "\xed\xa0\x80"}, {3});
  EXPECT_THAT(*TextsOfNpy(array, "a.npy"), ElementsAre("a\uFFFD", "\uFFFD", "\uFFFD\uFFFD\uFFFD"));
}

TEST(NpyTextsTest, OtherNumbersAreRefused) {
  EXPECT_TRUE(IsNpyText("<U12"));
  for (const char* descr : {"<f4", "|S5", ">U5", "|O", "<Ux"}) EXPECT_FALSE(IsNpyText(descr)) << descr;
  const std::string nul("\0\0\0\0a\0\0\0", 8), large("\0\0\x11\0", 4);
  EXPECT_THAT(TextsOfNpy({"<U2", {1}, nul}, "a.npy").status().ToString(),
              HasSubstr("`a.npy`: element 0 has a NUL at place 0"));
  EXPECT_THAT(TextsOfNpy({"<U1", {1}, large}, "a.npy").status().ToString(), HasSubstr("has no character"));
}

}  // namespace
}  // namespace mycc
