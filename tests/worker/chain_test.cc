// A chain puts tensors into place without changing them.
#include "worker/chain.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mycc {
namespace {

std::vector<uint8_t> Bytes(size_t count) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

MemorySpan SpanOf(std::vector<uint8_t>* bytes) {
  return {bytes->data(), static_cast<int64_t>(bytes->size())};
}

TEST(ChainTest, KeepsWhatItMoves) {
  std::vector<uint8_t> input = Bytes(100'000), output = Bytes(3), constant = Bytes(70'001), empty;
  Chain chain(3, {SpanOf(&input), SpanOf(&output), SpanOf(&empty)}, {SpanOf(&constant)}, 1024);
  for (int i = 0; i < 3; ++i) chain.Place();
  EXPECT_EQ(input, Bytes(100'000));
  EXPECT_EQ(output, Bytes(3));
  EXPECT_EQ(constant, Bytes(70'001));
}

}  // namespace
}  // namespace mycc
