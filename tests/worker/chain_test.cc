// A chain puts tensors into place without changing them.
#include "worker/chain.h"

#include <sys/mman.h>
#include <unistd.h>

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

// Two pages. The second one may not be written.
class HalfProtected {
 public:
  HalfProtected()
      : bytes_(2 * sysconf(_SC_PAGESIZE)),
        memory_(static_cast<uint8_t*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + bytes_ / 2, bytes_ / 2, PROT_READ);
  }
  ~HalfProtected() { munmap(memory_, bytes_); }
  MemorySpan span() const { return {memory_, bytes_}; }

 private:
  const int64_t bytes_;
  uint8_t* const memory_;
};

// The second page is the second thread's part.
TEST(ChainDeathTest, EveryThreadWritesItsPartOfAnInput) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const HalfProtected input;
  EXPECT_DEATH(Chain(2, {input.span()}, {}, 0).Place(), "");
}

TEST(ChainTest, ConstantsAreNotWritten) {
  const HalfProtected constant;
  Chain(2, {}, {constant.span()}, 0).Place();
}

}  // namespace
}  // namespace mycc
