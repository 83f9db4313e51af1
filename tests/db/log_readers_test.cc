// Reads of a log beside its writer.
#include "db/log_readers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "db/log_writer.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

class LogReadersTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = TuningLog::Open(path_, OpenMode::kServe);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
  }
  std::unique_ptr<LogReaders> Open(int threads) {
    auto readers = LogReaders::Open(path_, threads, [](const std::function<void()>& answer) { answer(); });
    EXPECT_TRUE(readers.ok()) << readers.status();
    return *std::move(readers);
  }

  const TempDir directory_;
  const std::string path_ = directory_ / "tuning.db";
  std::unique_ptr<TuningLog> log_;
};

TEST_F(LogReadersTest, EveryReadIsAnsweredAlsoAtTheEnd) {
  ASSERT_TRUE(log_->Append({{MakeRecord({})}}).ok());
  std::atomic<int> answered = 0;
  {
    const auto readers = Open(3);
    for (int i = 0; i < 100; ++i) {
      auto found = std::make_shared<size_t>(0);
      readers->Add([found](TuningLog* log) { *found = log->List({})->size(); },
                   [found, &answered] { answered += static_cast<int>(*found); });
    }
  }
  EXPECT_EQ(answered, 100);
}

TEST_F(LogReadersTest, AReadThatTakesLongHoldsUpNeitherTheWriterNorOtherReads) {
  std::promise<void> begun, released, read_again;
  auto may_end = released.get_future();
  const auto readers = Open(2);  // its threads end before the promises do
  readers->Add(
      [&](TuningLog* log) {
        MutexLock lock(log->database()->mutex());
        auto query = log->database()->Prepare("SELECT count(*) FROM records");
        EXPECT_TRUE(*query->Next());
        begun.set_value();
        may_end.wait();
        EXPECT_EQ(query->Int(0), 0) << "what was committed since is not seen";
      },
      [] {});
  begun.get_future().wait();
  ASSERT_TRUE(log_->Append({{MakeRecord({})}}).ok());
  readers->Add([](TuningLog* log) { EXPECT_EQ(log->List({})->size(), 1u); },
               [&read_again] { read_again.set_value(); });
  read_again.get_future().wait();
  released.set_value();
}

TEST_F(LogReadersTest, NothingIsChangedThroughAReader) {
  const auto readers = Open(1);
  readers->Add(
      [](TuningLog* log) {
        EXPECT_EQ(log->Append({{MakeRecord({})}}).status().code(), absl::StatusCode::kFailedPrecondition);
      },
      [] {});
}

}  // namespace
}  // namespace mycc
