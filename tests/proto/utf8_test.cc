// Valid and invalid UTF-8, and printable text.
#include "proto/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace mycc {
namespace {

constexpr char kReplacement[] = "\xef\xbf\xbd";

TEST(Utf8Test, AcceptsEveryLengthOfCharacter) {
  for (const char* text :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "\xef\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(ToUtf8(text), text);
  }
  EXPECT_TRUE(IsUtf8(std::string("a\0b", 3)));
}

TEST(Utf8Test, RefusesWhatIsNotACharacter) {
  // A lone continuation, cut characters, an overlong form, a surrogate, a code above the last, bytes that
  // never occur.
  for (const char* bytes : {"\x80", "\xc3", "a\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
                            "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(bytes)) << bytes;
  }
}

TEST(Utf8Test, ReplacesOnlyTheBadBytes) {
  EXPECT_EQ(ToUtf8("a\xff\xc3\xa9"), std::string("a") + kReplacement + "\xc3\xa9");
  EXPECT_EQ(ToUtf8("\xe2\x82"), std::string(kReplacement) + kReplacement);
}

TEST(Utf8Test, WhatATerminalObeysIsShown) {
  EXPECT_EQ(Printable("two\n\tlines \xc3\xa9"), "two\n\tlines \xc3\xa9");
  EXPECT_EQ(Printable("\x1b[2J\r\x7f\x07"), "\\x1b[2J\\x0d\\x7f\\x07");
  EXPECT_EQ(Printable("\xc2\x9b\xc2\xa0"), "\\xc2\\x9b\xc2\xa0")
      << "a control character of two bytes, and none";
  EXPECT_EQ(Printable("a\xff\x9b"), "a\\xff\\x9b");
}

TEST(Utf8Test, AnyBytesBecomeText) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    const std::string text = ToUtf8(bytes);
    EXPECT_TRUE(IsUtf8(text));
    EXPECT_EQ(IsUtf8(bytes), text == bytes);
    EXPECT_EQ(Printable(Printable(bytes)), Printable(bytes));
  }
}

}  // namespace
}  // namespace mycc
