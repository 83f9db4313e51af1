// A test with a log of its own, and what is best in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "db/tuning_log.h"
#include "tests/db/test_log.h"

namespace mycc {

inline constexpr auto kWarm = v1::TIMING_PROTOCOL_WARM;
inline constexpr auto kCold = v1::TIMING_PROTOCOL_COLD;

class TuningLogTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
  }

  int64_t Add(const RecordSpec& spec) {
    auto appended = log_->Append({MakeRecord(spec)});
    EXPECT_TRUE(appended.ok()) << appended.status();
    return appended.ok() ? (*appended)[0].id : 0;
  }
  // The best record's id, or 0.
  int64_t BestId(v1::TimingProtocol protocol = kWarm, const RecordSpec& of = {}) {
    auto best = log_->Best(KeyOf(of), protocol);
    EXPECT_TRUE(best.ok() || absl::IsNotFound(best.status())) << best.status();
    return best.ok() ? best->id : 0;
  }
  std::vector<int64_t> TopIds(int k) {
    std::vector<int64_t> ids;
    auto top = log_->TopK(KeyOf({}), kWarm, k);
    EXPECT_TRUE(top.ok()) << top.status();
    for (const StoredRecord& record : *top) ids.push_back(record.id);
    return ids;
  }

  TempDir directory_;
  std::unique_ptr<TuningLog> log_;
};

}  // namespace mycc
