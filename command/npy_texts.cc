#include "command/npy_texts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

constexpr size_t kCharacterBytes = 4;
constexpr uint32_t kReplacement = 0xfffd, kLastCharacter = 0x10ffff;

uint32_t CharacterAt(const std::string& bytes, size_t place) {
  uint32_t character = 0;
  for (size_t i = kCharacterBytes; i-- > 0;)
    character = character << 8 | static_cast<uint8_t>(bytes[place * kCharacterBytes + i]);
  return character;
}

bool IsCharacter(uint32_t number) {
  return number <= kLastCharacter && !(number >= 0xd800 && number < 0xe000);
}

void AppendUtf8(uint32_t character, std::string* text) {
  const int rest = character < 0x80 ? 0 : character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  const uint32_t mark = rest == 0 ? 0 : 0xff00 >> (rest + 1) & 0xff;
  text->push_back(static_cast<char>(mark | character >> (6 * rest)));
  for (int i = rest; i-- > 0;) text->push_back(static_cast<char>(0x80 | (character >> (6 * i) & 0x3f)));
}

std::vector<uint32_t> CharactersOf(const std::string& text) {
  std::vector<uint32_t> characters;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t character = bytes == 1 ? first : first & (0x7f >> bytes);
    bool is_sound = first < 0x80 || (first >= 0xc2 && first < 0xf5);
    for (size_t k = 1; k < bytes && is_sound; ++k) {
      is_sound = i + k < text.size() && (text[i + k] & 0xc0) == 0x80;
      if (is_sound) character = character << 6 | (text[i + k] & 0x3f);
    }
    is_sound = is_sound && IsCharacter(character);
    characters.push_back(is_sound ? character : kReplacement);
    i += is_sound ? bytes : 1;
  }
  return characters;
}

}  // namespace

bool IsNpyText(const std::string& descr) {
  return absl::StartsWith(descr, "<U") && descr.find_first_not_of("0123456789", 2) == std::string::npos;
}

absl::StatusOr<std::vector<std::string>> TextsOfNpy(const NpyArray& array, const std::string& path) {
  int64_t elements = 1;
  for (const int64_t extent : array.shape) elements *= extent;
  const size_t all = array.bytes.size() / kCharacterBytes;
  const size_t width = elements == 0 ? 0 : all / static_cast<size_t>(elements);
  std::vector<std::string> texts(static_cast<size_t>(elements));
  for (size_t i = 0; i < texts.size(); ++i) {
    size_t end = width;
    while (end > 0 && CharacterAt(array.bytes, i * width + end - 1) == 0) --end;
    for (size_t k = 0; k < end; ++k) {
      const uint32_t character = CharacterAt(array.bytes, i * width + k);
      if (character == 0 || !IsCharacter(character))
        return absl::InvalidArgumentError(absl::StrCat("`", path, "`: element ", i,
                                                       character == 0 ? " has a NUL" : " has no character",
                                                       " at place ", k, "; expected a text"));
      AppendUtf8(character, &texts[i]);
    }
  }
  return texts;
}

NpyArray NpyOfTexts(const std::vector<std::string>& texts, std::vector<int64_t> shape) {
  std::vector<std::vector<uint32_t>> all;
  size_t width = 1;
  for (const std::string& text : texts) {
    all.push_back(CharactersOf(text));
    width = std::max(width, all.back().size());
  }
  NpyArray array{absl::StrCat("<U", width), std::move(shape), {}};
  for (std::vector<uint32_t>& text : all) {
    text.resize(width);
    for (const uint32_t character : text) {
      for (size_t i = 0; i < kCharacterBytes; ++i)
        array.bytes.push_back(static_cast<char>(character >> (8 * i) & 0xff));
    }
  }
  return array;
}

}  // namespace mycc
