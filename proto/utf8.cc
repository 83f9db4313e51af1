#include "proto/utf8.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"

namespace mycc {
namespace {

// The bytes that a character beginning with `lead` has; 0 when none does.
int CharacterBytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

bool IsCharacter(const unsigned char* bytes, int count) {
  static constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t code = count == 1 ? bytes[0] : bytes[0] & (0x7f >> count);
  for (int i = 1; i < count; ++i) {
    if ((bytes[i] & 0xc0) != 0x80) return false;
    code = code << 6 | (bytes[i] & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code >= kSmallest[count] && code <= 0x10ffff && !surrogate;
}

// The bytes of the character at `at`; 0 when there is none.
int CharacterAt(const std::string& bytes, size_t at) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data()) + at;
  const int count = CharacterBytes(data[0]);
  return count != 0 && at + count <= bytes.size() && IsCharacter(data, count) ? count : 0;
}

// A control character lies below U+0020 or from U+007F to U+009F. REQUIRES: a character at `at`.
bool IsControl(const std::string& bytes, size_t at) {
  const auto first = static_cast<unsigned char>(bytes[at]);
  if (first == 0xc2) return static_cast<unsigned char>(bytes[at + 1]) < 0xa0;
  return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
}

}  // namespace

bool IsUtf8(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const int count = CharacterAt(bytes, at);
    if (count == 0) return false;
    at += count;
  }
  return true;
}

std::string Printable(const std::string& bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const int count = CharacterAt(bytes, at);
    if (count == 0 || IsControl(bytes, at)) {
      const int hidden = std::max(count, 1);
      for (int i = 0; i < hidden; ++i)
        absl::StrAppendFormat(&text, "\\x%02x",
                              static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)]));
      at += static_cast<size_t>(hidden);
    } else {
      text.append(bytes, at, static_cast<size_t>(count));
      at += static_cast<size_t>(count);
    }
  }
  return text;
}

std::string ToUtf8(const std::string& bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size();) {
    const int count = CharacterAt(bytes, at);
    if (count == 0) {
      text += "\xef\xbf\xbd";
      ++at;
    } else {
      text.append(bytes, at, count);
      at += count;
    }
  }
  return text;
}

}  // namespace mycc
