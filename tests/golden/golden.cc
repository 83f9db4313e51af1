#include "tests/golden/golden.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "absl/strings/str_split.h"

namespace mycc {
namespace {

std::filesystem::path GoldenPath(const std::string& name) {
  const char* root = std::getenv("MYCC_SOURCE_DIR");
  return std::filesystem::path(root != nullptr ? root : ".") / "tests" / "golden" / (name + ".txt");
}

std::optional<std::string> ReadText(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

testing::AssertionResult Rewrite(const std::filesystem::path& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (error || !file) return testing::AssertionFailure() << "cannot write " << path;
  return testing::AssertionSuccess();
}

// The differing lines between the common beginning and the common end, with two lines of context before them.
testing::AssertionResult Difference(const std::filesystem::path& path, const std::string& want,
                                    const std::string& got) {
  const std::vector<std::string> a = absl::StrSplit(want, '\n'), b = absl::StrSplit(got, '\n');
  size_t begin = 0, end = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  while (begin + end < a.size() && begin + end < b.size() && a[a.size() - 1 - end] == b[b.size() - 1 - end])
    ++end;
  testing::AssertionResult result = testing::AssertionFailure();
  result << path << " differs from line " << begin + 1 << " on (MYCC_UPDATE_GOLDEN=1 rewrites it):\n";
  for (size_t i = begin < 2 ? 0 : begin - 2; i < begin; ++i) result << "  " << a[i] << "\n";
  for (size_t i = begin; i + end < a.size(); ++i) result << "- " << a[i] << "\n";
  for (size_t i = begin; i + end < b.size(); ++i) result << "+ " << b[i] << "\n";
  return result;
}

}  // namespace

testing::AssertionResult MatchesGolden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = GoldenPath(name);
  const char* update = std::getenv("MYCC_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") return Rewrite(path, text);
  const std::optional<std::string> golden = ReadText(path);
  if (!golden)
    return testing::AssertionFailure() << "no " << path << "; MYCC_UPDATE_GOLDEN=1 writes it:\n" << text;
  if (*golden != text) return Difference(path, *golden, text);
  return testing::AssertionSuccess();
}

}  // namespace mycc
