// Changes of a log in groups, each with its own answer.
#include "db/log_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "db/job_store.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::HasSubstr;

// Answers are called on the writer's thread, one after the other; the writer's end makes them visible here.
void DeliverAtOnce(std::function<void()> answer) { answer(); }

LogWrite Appends(TuningLog* log, int index) {
  return [log, index] { return log->Append({{MakeRecord({.index = index})}}).status(); };
}

size_t CountRecords(const std::string& path) {
  auto log = TuningLog::Open(path, OpenMode::kRead);
  return log.ok() ? (*log)->List({})->size() : 0;
}

class LogWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = TuningLog::Open(path_, OpenMode::kServe);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *std::move(opened);
  }
  // The changes before and after a change that fails stand; nothing of it does.
  void ExpectUndoneAlone(LogWrite change, const absl::Status& error) {
    std::vector<absl::Status> answers;
    const auto keep = [&answers](const absl::Status& status) { answers.push_back(status); };
    {
      LogWriter writer(log_.get(), DeliverAtOnce);
      writer.Add(Appends(log_.get(), 1), keep);
      writer.Add(std::move(change), keep);
      writer.Add(Appends(log_.get(), 3), keep);
    }
    ASSERT_EQ(answers.size(), 3u);
    EXPECT_TRUE(answers[0].ok() && answers[2].ok());
    EXPECT_EQ(answers[1], error);
    EXPECT_EQ(CountRecords(path_), 2u);
  }

  const TempDir directory_;
  const std::string path_ = directory_ / "tuning.db";
  std::unique_ptr<TuningLog> log_;
};

TEST_F(LogWriterTest, EveryChangeIsAnsweredInOrder) {
  std::vector<int> answered;
  {
    LogWriter writer(log_.get(), DeliverAtOnce);
    for (int i = 0; i < 1200; ++i) {
      writer.Add(Appends(log_.get(), i), [&answered, i](const absl::Status& status) {
        EXPECT_TRUE(status.ok()) << status;
        answered.push_back(i);
      });
    }
  }
  ASSERT_EQ(answered.size(), 1200u);
  EXPECT_TRUE(std::ranges::is_sorted(answered));
  EXPECT_EQ(CountRecords(path_), 1200u);
}

TEST_F(LogWriterTest, AnAnswerComesAfterTheCommit) {
  LogWriter writer(log_.get(), DeliverAtOnce);
  for (size_t i = 0; i < 20; ++i) {
    writer.Add(Appends(log_.get(), static_cast<int>(i)),
               [this, i](const absl::Status&) { EXPECT_GT(CountRecords(path_), i); });
  }
}

TEST_F(LogWriterTest, AChangeThatFailsIsUndoneAlone) {
  ExpectUndoneAlone(
      [this] {
        auto transaction = Transaction::Begin(log_->database());
        EXPECT_TRUE(transaction.ok());
        EXPECT_TRUE(log_->Append({{MakeRecord({.index = 2})}}).ok());
        return absl::InvalidArgumentError("not this one");
      },
      absl::InvalidArgumentError("not this one"));
}

TEST_F(LogWriterTest, AChangeThatFailsAfterItsTransactionIsUndoneAlone) {
  ExpectUndoneAlone(
      [this] {
        EXPECT_TRUE(Appends(log_.get(), 2)().ok());
        return absl::InternalError("not as expected");
      },
      absl::InternalError("not as expected"));
}

TEST_F(LogWriterTest, AFullDiskKeepsNothingOfTheGroupAndPasses) {
  ASSERT_TRUE(log_->database()->Execute("PRAGMA max_page_count = 60").ok());
  int kept = 0, refused = 0;
  {
    LogWriter writer(log_.get(), DeliverAtOnce);
    for (int i = 0; i < 400; ++i) {
      writer.Add(Appends(log_.get(), i), [&](const absl::Status& status) {
        EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status)) << status;
        ++(status.ok() ? kept : refused);
      });
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(CountRecords(path_), static_cast<size_t>(kept));
  ASSERT_TRUE(log_->database()->Execute("PRAGMA max_page_count = 1000000").ok());
  {
    LogWriter writer(log_.get(), DeliverAtOnce);
    for (int i = 0; i < 400; ++i)
      writer.Add(Appends(log_.get(), i),
                 [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; });
  }
  EXPECT_EQ(CountRecords(path_), 400u);
}

TEST_F(LogWriterTest, ALogThatWasDeletedOrReplacedIsNotWrittenTo) {
  std::vector<std::string> reasons;
  const auto keep = [&reasons](const absl::Status& status) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    reasons.push_back(std::string(status.message()));
  };
  std::filesystem::rename(path_, directory_ / "moved.db");
  { LogWriter(log_.get(), DeliverAtOnce).Add(Appends(log_.get(), 1), keep); }
  std::filesystem::copy_file(directory_ / "moved.db", path_);
  { LogWriter(log_.get(), DeliverAtOnce).Add(Appends(log_.get(), 2), keep); }
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_THAT(reasons[0], HasSubstr("was deleted or moved"));
  EXPECT_THAT(reasons[1], HasSubstr("was replaced by another file"));
  EXPECT_EQ(CountRecords(path_), 0u);
}

}  // namespace
}  // namespace mycc
