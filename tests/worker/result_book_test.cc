// Results as they are filled in, apart from any device.
#include "worker/result_book.h"

#include "gtest/gtest.h"

namespace mycc {
namespace {

// A compiler may print megabytes. A server refuses a message with such a text, with the results beside it.
TEST(ResultBookTest, AnErrorIsCutToWhatAServerTakes) {
  const std::string words(2 << 20, 'e');
  v1::MeasureResult result;
  Fail(v1::MEASURE_STATUS_BUILD_ERROR, words, &result);
  EXPECT_EQ(result.error(), words.substr(0, 64 << 10));
  v1::RunnerResponse response;
  response.set_error(words);
  TakeResponse(response, &result);
  EXPECT_EQ(result.error(), words.substr(0, 64 << 10));
}

}  // namespace
}  // namespace mycc
