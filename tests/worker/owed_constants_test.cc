// The constants that a worker owes to the server are measured once, by one lane, and told until that is
// answered.
#include "worker/owed_constants.h"

#include <gtest/gtest.h>

namespace mycc {
namespace {

v1::DeviceConstants Measured() {
  v1::DeviceConstants constants;
  constants.set_version(7);
  return constants;
}

TEST(OwedConstantsTest, NothingIsMeasuredThatNobodyAskedFor) {
  OwedConstants owed;
  EXPECT_TRUE(owed.empty());
  EXPECT_FALSE(owed.TakeToMeasure("cpu"));
}

TEST(OwedConstantsTest, OneLaneMeasuresAndTheServerIsTold) {
  OwedConstants owed;
  EXPECT_FALSE(owed.Ask("cpu"));
  EXPECT_TRUE(owed.TakeToMeasure("cpu"));
  EXPECT_FALSE(owed.TakeToMeasure("cpu")) << "another lane does";
  v1::HeartbeatRequest before, request;
  owed.AddTo(&before);
  EXPECT_EQ(before.constants_size(), 0);
  owed.Measured("cpu", Measured());
  owed.AddTo(&request);
  ASSERT_EQ(request.constants_size(), 1);
  EXPECT_EQ(request.constants(0).device(), "cpu");
  EXPECT_EQ(request.constants(0).constants().version(), 7u);
  owed.Told(before);  // an answer to a message that did not tell them
  EXPECT_FALSE(owed.empty());
  owed.Told(request);
  EXPECT_TRUE(owed.empty());
}

// A server that was started again asks again.
TEST(OwedConstantsTest, WhatWasMeasuredIsToldAgainAndNotMeasured) {
  OwedConstants owed;
  owed.Ask("cpu");
  owed.TakeToMeasure("cpu");
  EXPECT_FALSE(owed.Ask("cpu")) << "they are being measured";
  EXPECT_FALSE(owed.TakeToMeasure("cpu"));
  owed.Measured("cpu", Measured());
  v1::HeartbeatRequest request;
  owed.AddTo(&request);
  owed.Told(request);
  EXPECT_TRUE(owed.Ask("cpu"));
  EXPECT_FALSE(owed.TakeToMeasure("cpu"));
  EXPECT_FALSE(owed.empty());
}

TEST(OwedConstantsTest, WhatCannotBeMeasuredIsOwedNoMore) {
  OwedConstants owed;
  owed.Ask("cpu");
  owed.TakeToMeasure("cpu");
  owed.Measured("cpu", std::nullopt);
  EXPECT_TRUE(owed.empty());
  owed.Ask("cpu");
  EXPECT_TRUE(owed.TakeToMeasure("cpu")) << "the next server may ask again";
}

}  // namespace
}  // namespace mycc
