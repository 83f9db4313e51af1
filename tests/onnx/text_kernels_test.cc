// The kernels of texts: what they make of letters beyond ASCII, of bytes that are no UTF-8, and of numbers.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <future>
#include <limits>
#include <thread>

#include "codegen/runtime/artifact/library_kernels.h"
#include "tests/onnx/kernel_calls.h"

namespace mycc {
namespace {

using ::testing::ElementsAre;

// Handles of texts that live as long as the program.
NDArray Texts(const std::vector<const char*>& texts) {
  NDArray handles = NDArray::Zeros(DType::kU64, {static_cast<int64_t>(texts.size())});
  if (!texts.empty()) std::memcpy(handles.bytes.data(), texts.data(), handles.bytes.size());
  return handles;
}

std::vector<std::string> TextsOf(const NDArray& handles) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < handles.num_elements(); ++i) {
    const auto* text = reinterpret_cast<const char*>(handles.Get(i).i);
    texts.emplace_back(text == nullptr ? "" : text);
  }
  return texts;
}

class TextKernelTest : public ::testing::Test {
 protected:
  ~TextKernelTest() override { MyccForgetTexts(); }
};

std::vector<std::string> Normalized(const std::vector<const char*>& texts, int64_t change, bool is_sensitive,
                                    const std::vector<const char*>& stops) {
  std::vector<NDArray> inputs = {Texts(texts)};
  if (!stops.empty()) inputs.push_back(Texts(stops));
  const auto most = std::max<int64_t>(1, static_cast<int64_t>(texts.size()));
  const auto results = CallKernel("normalize_texts", {change, is_sensitive, stops.empty() ? 0 : 1}, inputs,
                                  {{DType::kU64, {most}}, {DType::kI64, {}}});
  std::vector<std::string> all = TextsOf(results[0]);
  all.resize(results[1].Get(0).i);
  return all;
}

TEST_F(TextKernelTest, LettersOfAllAlphabetsHaveCases) {
  EXPECT_THAT(Normalized({"Été ß ǅ Жук ΣΩ 𐐀 1", nullptr, "\xff\xc3 A"}, kMyccToLowerCase, false, {}),
              ElementsAre("été ß ǆ жук σω 𐐨 1", "", "\xff\xc3 a"));
  EXPECT_THAT(Normalized({"été ÿ ɐ жук σω 𐐨"}, kMyccToUpperCase, false, {}), ElementsAre("ÉTÉ Ÿ Ɐ ЖУК ΣΩ 𐐀"));
}

TEST_F(TextKernelTest, StopWordsAreWholeElements) {
  EXPECT_THAT(Normalized({"The", "THE cat", "Σ", "mat"}, kMyccKeepCase, false, {"the", "σ"}),
              ElementsAre("THE cat", "mat"));
  EXPECT_THAT(Normalized({"The", "the"}, kMyccToUpperCase, true, {"the"}), ElementsAre("THE"));
  EXPECT_THAT(Normalized({"the", "a"}, kMyccToUpperCase, true, {"the", "a"}), ElementsAre(""));
  EXPECT_THAT(Normalized({}, kMyccKeepCase, true, {"the"}), ElementsAre(""));
}

struct Parts {
  std::vector<std::string> texts;
  std::vector<int64_t> counts;
  int64_t width = 0;
};

Parts Split(const std::vector<const char*>& texts, const char* delimiter, int64_t most) {
  const auto count = static_cast<int64_t>(texts.size());
  const auto results = CallKernel("split_texts", {most}, {Texts(texts), Texts({delimiter})},
                                  {{DType::kU64, {count, 9}}, {DType::kI64, {count}}, {DType::kI64, {}}});
  Parts parts{TextsOf(results[0]), {}, results[2].Get(0).i};
  parts.texts.resize(count * parts.width);
  for (int64_t i = 0; i < count; ++i) parts.counts.push_back(results[1].Get(i).i);
  return parts;
}

TEST_F(TextKernelTest, TextsAreSplitAsInPython) {
  Parts parts = Split({"a.b.c", "", ".x"}, ".", -1);
  EXPECT_THAT(parts.texts, ElementsAre("a", "b", "c", "", "", "", "", "x", ""));
  EXPECT_THAT(parts.counts, ElementsAre(3, 1, 2));
  parts = Split({"a--b---c", "aa"}, "--", -1);
  EXPECT_THAT(parts.texts, ElementsAre("a", "b", "-c", "aa", "", ""));
  parts = Split({"  a \u3000 b\t\n", " "}, "", -1);
  EXPECT_THAT(parts.texts, ElementsAre("a", "b", "", ""));
  EXPECT_THAT(parts.counts, ElementsAre(2, 0));
  parts = Split({"  a  b  c  "}, "", 1);
  EXPECT_THAT(parts.texts, ElementsAre("a", "b  c  "));
  parts = Split({"a.b.c"}, ".", 0);
  EXPECT_THAT(parts.texts, ElementsAre("a.b.c"));
  EXPECT_EQ(Split({"", " "}, "", -1).width, 0);
}

TEST_F(TextKernelTest, MorePartsThanThereIsRoomForAreAProblem) {
  const LibraryCall call{"split_texts", {-1}, {}};
  const std::vector<Buffer> outputs = {MakeBuffer("parts", DType::kU64, {1, 2}),
                                       MakeBuffer("counts", DType::kI64, {1}),
                                       MakeBuffer("width", DType::kI64, {})};
  const NDArray text = Texts({"a b c"}), delimiter = Texts({""});
  const auto results = RunLibraryCall(call, outputs, {&text, &delimiter});
  EXPECT_THAT(results.status().ToString(), testing::HasSubstr("more parts than the shape"));
}

TEST_F(TextKernelTest, TextsAreJoinedAndComparedWithBroadcasting) {
  NDArray column = Texts({"a", "b"});
  const NDArray row = Texts({"a", nullptr, "ü"});
  column.shape = {2, 1};
  const auto joined = CallKernel("concat_texts", {}, {column, row}, {{DType::kU64, {2, 3}}});
  EXPECT_THAT(TextsOf(joined[0]), ElementsAre("aa", "a", "aü", "ba", "b", "bü"));
  const auto equal = CallKernel("equal_texts", {}, {column, row}, {{DType::kBool, {2, 3}}});
  EXPECT_THAT(equal[0].bytes, ElementsAre(1, 0, 0, 0, 0, 0));
  const auto found = CallKernel("find_texts", {}, {row, Texts({"ü", "x", "ü"})}, {{DType::kI64, {3}}});
  EXPECT_EQ(found[0].Get(0).i, -1);
  EXPECT_EQ(found[0].Get(2).i, 2);
}

std::vector<std::string> Printed(DType dtype, const std::vector<double>& values) {
  NDArray numbers = NDArray::Zeros(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    numbers.Set(static_cast<int64_t>(i),
                IsFloat(dtype) ? Scalar{values[i], 0} : Scalar{0, static_cast<int64_t>(values[i])});
  return TextsOf(CallKernel("print_numbers", {}, {numbers}, {{DType::kU64, numbers.shape}})[0]);
}

TEST_F(TextKernelTest, NumbersArePrintedAsInPython) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(
      Printed(DType::kF64, {0, -0.0, 0.1, -12.5, 1e-4, 1e-5, 123456789012345680, 1e15, 1e16, 1.5e-300}),
      ElementsAre("0.0", "-0.0", "0.1", "-12.5", "0.0001", "1e-05", "1.2345678901234568e+17",
                  "1000000000000000.0", "1e+16", "1.5e-300"));
  EXPECT_THAT(Printed(DType::kF32, {0.1F, 16777216, infinity, -infinity, NAN}),
              ElementsAre("0.1", "16777216.0", "inf", "-inf", "nan"));
  EXPECT_THAT(Printed(DType::kI8, {-128, 7}), ElementsAre("-128", "7"));
  EXPECT_THAT(Printed(DType::kBool, {0, 1}), ElementsAre("False", "True"));
}

TEST_F(TextKernelTest, PrintedFloatsAreReadAsTheSame) {
  std::mt19937_64 random(3);
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    NDArray numbers = NDArray::Zeros(dtype, {500});
    for (uint8_t& byte : numbers.bytes) byte = static_cast<uint8_t>(random());
    const auto texts = CallKernel("print_numbers", {}, {numbers}, {{DType::kU64, {500}}});
    const auto again = CallKernel("read_numbers", {}, texts, {{dtype, {500}}});
    for (int64_t i = 0; i < 500; ++i) {
      const double a = numbers.Get(i).f, b = again[0].Get(i).f;
      ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << TextsOf(texts[0])[i];
    }
  }
}

absl::StatusOr<std::vector<NDArray>> Read(DType dtype, const char* text) {
  const NDArray handles = Texts({text});
  return RunLibraryCall({"read_numbers", {}, {}}, {MakeBuffer("numbers", dtype, {1})}, {&handles});
}

TEST_F(TextKernelTest, OnlyNumbersOfTheTypeAreRead) {
  EXPECT_EQ((*Read(DType::kF64, " +12.5e-1 "))[0].Get(0).f, 1.25);
  EXPECT_EQ((*Read(DType::kF32, ".5"))[0].Get(0).f, 0.5);
  EXPECT_EQ((*Read(DType::kF32, "-Inf"))[0].Get(0).f, -std::numeric_limits<double>::infinity());
  EXPECT_EQ((*Read(DType::kI64, "-9223372036854775808"))[0].Get(0).i, std::numeric_limits<int64_t>::min());
  EXPECT_EQ((*Read(DType::kU64, "18446744073709551615"))[0].Get(0).i, -1);
  EXPECT_EQ((*Read(DType::kU8, "255"))[0].Get(0).i, 255);
  for (const char* text : {"256", "-1", "", "1.5", "0x10", "1 2"})
    EXPECT_FALSE(Read(DType::kU8, text).ok()) << text;
  for (const char* text : {"", ".", "1e", "1.2.3", "nanny", "0x10", "- 1"})
    EXPECT_FALSE(Read(DType::kF32, text).ok()) << text;
}

TEST_F(TextKernelTest, EachThreadHasItsOwnTexts) {
  const NDArray a = Texts({"one"}), b = Texts({"two"});
  const auto joined = CallKernel("concat_texts", {}, {a, b}, {{DType::kU64, {1}}});
  std::thread([&] {
    const auto other = CallKernel("concat_texts", {}, {b, a}, {{DType::kU64, {1}}});
    EXPECT_THAT(TextsOf(other[0]), ElementsAre("twoone"));
    MyccForgetTexts();
  }).join();
  EXPECT_THAT(TextsOf(joined[0]), ElementsAre("onetwo"));
}

const char* text_of_another_thread = nullptr;

// Runs behind the destructors of the library kernels.
__attribute__((destructor(101))) void ReadAtTheEnd() {
  if (text_of_another_thread != nullptr && std::strcmp(text_of_another_thread, "onetwo") != 0) _exit(1);
}

// Threads may still be in calls when their process ends. They must keep their texts, which AddressSanitizer
// watches.
TEST_F(TextKernelTest, OtherThreadsKeepTheirTextsWhileTheProcessEnds) {
  const auto end = [&] {
    std::promise<const char*> made;
    std::thread([&] {
      const NDArray a = Texts({"one"}), b = Texts({"two"});
      const auto joined = CallKernel("concat_texts", {}, {a, b}, {{DType::kU64, {1}}});
      const char* text = nullptr;
      std::memcpy(&text, joined[0].bytes.data(), sizeof text);
      made.set_value(text);
      for (;;) pause();
    }).detach();
    text_of_another_thread = made.get_future().get();
    std::exit(0);
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace mycc
