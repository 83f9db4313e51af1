// One writer and many readers of a log at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "db/tuning_log.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

constexpr int kBatches = 150;
constexpr int kBatch = 7;

std::vector<v1::Record> Batch(int number) {
  std::vector<v1::Record> records;
  for (int i = 0; i < kBatch; ++i) {
    const int index = number * kBatch + i;
    records.push_back(MakeRecord({.index = index, .seconds = 1e-3 / (index + 1)}));
  }
  return records;
}

// Reads until the writer is done: batches are whole, and neither the records nor the best ever go back.
void Watch(const TuningLog& log, const std::atomic<bool>& done) {
  size_t records = 0;
  double best = 1;
  for (bool last = false; !last;) {
    last = done.load();
    auto found = log.Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM);
    if (absl::IsNotFound(found.status())) continue;
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_LE(found->record.result().timing().seconds(), best);
    best = found->record.result().timing().seconds();
    auto listed = log.List({.newest_first = true, .limit = 1});
    ASSERT_TRUE(listed.ok()) << listed.status();
    const size_t now = listed->empty() ? 0 : static_cast<size_t>((*listed)[0].id);
    ASSERT_EQ(now % kBatch, 0u);
    ASSERT_GE(now, records);
    records = now;
  }
  EXPECT_EQ(records, static_cast<size_t>(kBatches * kBatch));
}

TEST(ConcurrencyTest, ReadersSeeWholeBatchesWhileOneWrites) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  auto writer = TuningLog::Open(path, OpenMode::kServe);
  ASSERT_TRUE(writer.ok());
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      auto log = TuningLog::Open(path, OpenMode::kRead);
      ASSERT_TRUE(log.ok()) << log.status();
      Watch(**log, done);
    });
  }
  readers.emplace_back([&] { Watch(**writer, done); });  // and one on the writer's own connection
  readers.emplace_back([&] {
    while (!done) ASSERT_TRUE(TuningLog::Open(path, OpenMode::kRead).ok());  // comes and goes
  });
  for (int i = 0; i < kBatches; ++i) EXPECT_TRUE((*writer)->Append(Batch(i)).ok());
  done = true;
  for (std::thread& reader : readers) reader.join();
  ASSERT_TRUE((*writer)->Close().ok());
  EXPECT_EQ(Snapshot(directory.path()).size(), 1u);
}

TEST(ConcurrencyTest, WritersOfOneProcessTakeTurns) {
  TempDir directory;
  auto log = TuningLog::Open(directory / "tuning.db", OpenMode::kCreate);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&, i] {
      for (int number = 0; number < 20; ++number)
        EXPECT_TRUE((*log)->Append(Batch(10 * i + number)).ok());  // they overlap
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ((*log)->List({})->size(), 50u * kBatch);
}

TEST(ConcurrencyTest, AnotherConnectionMayWriteWhileALogIsServed) {
  TempDir directory;
  const std::string path = directory / "tuning.db";
  auto server = TuningLog::Open(path, OpenMode::kServe);
  ASSERT_TRUE((*server)->Append(Batch(0)).ok());
  {
    auto other = TuningLog::Open(path, OpenMode::kWrite);
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_TRUE((*other)->SetOverride(1, OverrideKind::kPin, "by hand").ok());
    EXPECT_TRUE((*other)->Close().ok());
  }
  EXPECT_EQ((*server)->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->id, 1);
  EXPECT_TRUE((*server)->Append(Batch(1)).ok());
}

TEST(ConcurrencyTest, AReaderOutlivesTheServersComingAndGoing) {
  TempDir directory;
  const std::string path = MakeLog(directory, "tuning.db", 1);
  auto reader = TuningLog::Open(path, OpenMode::kRead);
  ASSERT_TRUE(reader.ok());
  for (int round = 1; round <= 3; ++round) {
    EXPECT_EQ((*reader)->List({})->size(), static_cast<size_t>(round));
    auto server = TuningLog::Open(path, OpenMode::kServe);
    ASSERT_TRUE(server.ok()) << server.status();
    ASSERT_TRUE((*server)->Append({MakeRecord({.index = round})}).ok());
    EXPECT_EQ((*reader)->List({})->size(), static_cast<size_t>(round) + 1);
    ASSERT_TRUE((*server)->Close().ok());
  }
  ASSERT_TRUE((*reader)->Close().ok());
  auto again = TuningLog::Open(path, OpenMode::kRead);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->List({})->size(), 4u);
}

}  // namespace
}  // namespace mycc
