// Problems of a file, each with its line and a mark.
#include "command/source_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mycc {
namespace {

using testing::HasSubstr;

std::string Listed(const std::string& text) { return ListProblems("f.te", text, ParseText(text)); }

// The source line and the mark under it, of the first problem.
std::pair<std::string, std::string> Marked(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(Listed(text), '\n');
  EXPECT_GE(lines.size(), 3u) << text;
  return lines.size() < 3 ? std::pair<std::string, std::string>() : std::make_pair(lines[1], lines[2]);
}

// The column that the mark points to, and the one where `word` stands.
void ExpectMarkUnder(const std::string& word, const std::string& text) {
  const auto [line, mark] = Marked(text);
  ASSERT_NE(line.find(word), std::string::npos) << line;
  EXPECT_EQ(mark.find('^'), line.find(word)) << line << "\n" << mark;
}

constexpr char kSignature[] = "workload f(x: f32[8]) -> (y: f32[8]) {\n";

TEST(SourceListingTest, AProblemHasItsLineAMarkAndAHint) {
  EXPECT_EQ(Listed(absl::StrCat(kSignature, "  y[i] = mean[k:8](x[k])\n}\n")),
            "f.te:2:10: error: unknown tensor `mean`; expected an input or an earlier stage (x)\n"
            "    2 |   y[i] = mean[k:8](x[k])\n"
            "      |          ^~~~\n"
            "      = hint: a mean is a sum of quotients: sum[k:8](x[k] / 8.0)\n");
}

TEST(SourceListingTest, AllProblemsFollowOneAnother) {
  const std::string listed =
      Listed(absl::StrCat(kSignature, "  y[i] = x[i] $ 2\n}\nworkload g() -> (y: f33[]) {}\n"));
  EXPECT_THAT(listed, HasSubstr("f.te:2:15: error: unexpected `$`"));
  EXPECT_THAT(listed, HasSubstr("f.te:4:21: error: unexpected `f33`"));
}

TEST(SourceListingTest, TabsAreSpread) {
  ExpectMarkUnder("q[i]", absl::StrCat(kSignature, "\ty[i]\t= q[i]\n}"));
  EXPECT_EQ(Marked(absl::StrCat(kSignature, "\ty[i]\t= q[i]\n}")).first, "    2 |         y[i]    = q[i]");
}

TEST(SourceListingTest, CharactersCountColumnsAndNotBytes) {
  // Two bytes and one column; three bytes and two columns; a mark that combines; a byte that is no character.
  const std::string before = "y[i] = x[i] # ";
  EXPECT_EQ(Marked(absl::StrCat(kSignature, "y[i] = x[i] \xc3\x97 2.0\n}")).second, "      |             ^");
  EXPECT_EQ(Marked(absl::StrCat(kSignature, "y[i] = \xe4\xb8\xad + q[i]\n}")).second, "      |        ^~");
  EXPECT_EQ(Marked(absl::StrCat(kSignature, "y[i] = \xff\n}")),
            std::make_pair(std::string("    2 | y[i] = \\xff"), std::string("      |        ^~~~")));
  EXPECT_EQ(Marked(absl::StrCat(kSignature, "y[i] = x[i] + e\xcc\x81\n}")).second, "      |               ^");
}

TEST(SourceListingTest, ALongLineIsCutToAWindow) {
  std::string sum = "x[i]";
  for (int i = 0; i < 100; ++i) sum += i == 50 ? " + q[i]" : " + x[i]";
  ExpectMarkUnder("q[i]", absl::StrCat(kSignature, "y[i] = ", sum, "\n}"));
  const auto [line, mark] = Marked(absl::StrCat(kSignature, "y[i] = ", sum, "\n}"));
  EXPECT_LE(line.size(), 8u + 100 + 6);
  EXPECT_THAT(line, HasSubstr(" | ..."));
  EXPECT_THAT(line, testing::EndsWith("..."));
}

TEST(SourceListingTest, AMarkEndsWithItsLine) {
  EXPECT_EQ(Marked(absl::StrCat(kSignature, "y[i] = ", std::string(200, 'q'), "[i]\n}")).second,
            absl::StrCat("      |        ^", std::string(92, '~')));
}

TEST(SourceListingTest, TheEndOfTheTextHasALine) {
  EXPECT_EQ(Marked("workload f(x: f32[8]) -> (y: f32[8]) {"),
            std::make_pair(std::string("    1 | workload f(x: f32[8]) -> (y: f32[8]) {"),
                           std::string("      |                                       ^")));
  EXPECT_EQ(Marked("workload\r\n").first, "    2 | ");
}

TEST(SourceListingTest, ControlCharactersAreShown) {
  EXPECT_THAT(Marked(absl::StrCat(kSignature, "y[i] = q[i] # \x1b[31m\n}")).first, HasSubstr("# \\x1b[31m"));
}

}  // namespace
}  // namespace mycc
