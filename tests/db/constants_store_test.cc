// The constants of devices in a log.
#include "db/constants_store.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/db/tuning_log_fixture.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class ConstantsStoreTest : public TuningLogTest {
 protected:
  static StoredConstants Make(const std::string& host, double clock, int64_t measured = 7) {
    StoredConstants made;
    made.host = host;
    made.device = "cpu";
    made.model = "A processor";
    made.target = "v1 cpu mcpu=haswell l1d=32K l2=256K threads=2";
    made.worker = "worker-a";
    made.constants.set_version(1);
    (*made.constants.mutable_values())["clock_cycles_per_second"] = clock;
    made.measured_unix_micros = measured;
    return made;
  }
  std::vector<StoredConstants> Listed() { return *ConstantsStore(log_.get()).List(); }
};

TEST_F(ConstantsStoreTest, TheyAreKeptForEachDevice) {
  ConstantsStore store(log_.get());
  ASSERT_TRUE(store.Save(Make("b", 3e9)).ok());
  ASSERT_TRUE(store.Save(Make("a", 2e9, 9)).ok());
  const std::string path = log_->path();
  ASSERT_TRUE(log_->Close().ok());
  log_ = *TuningLog::Open(path, OpenMode::kRead);
  const std::vector<StoredConstants> listed = Listed();
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].key(), Make("a", 2e9).key());
  EXPECT_EQ(listed[0].worker, "worker-a");
  EXPECT_EQ(listed[0].measured_unix_micros, 9);
  EXPECT_EQ(listed[1].constants.values().at("clock_cycles_per_second"), 3e9);
}

TEST_F(ConstantsStoreTest, NewerOnesTakeThePlaceOfTheSameVersions) {
  ConstantsStore store(log_.get());
  ASSERT_TRUE(store.Save(Make("a", 2e9)).ok());
  ASSERT_TRUE(store.Save(Make("a", 4e9)).ok());
  StoredConstants other = Make("a", 5e9);
  other.constants.set_version(2);
  ASSERT_TRUE(store.Save(other).ok());
  ASSERT_EQ(Listed().size(), 2u);
  EXPECT_EQ(Listed()[0].constants.values().at("clock_cycles_per_second"), 4e9);
}

TEST_F(ConstantsStoreTest, TheOldestGiveWayToOnesTooMany) {
  ConstantsStore store(log_.get());
  ASSERT_TRUE(store.Save(Make("oldest", 2e9, 1)).ok());
  ASSERT_TRUE(
      log_->database()
          ->Run(
              "INSERT INTO device_constants (host, device, model, target, version, worker, measured, detail)"
              " WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)"
              " SELECT 'host' || i, 'cpu', '', '', 1, '', i, ?2 FROM n",
              {ConstantsStore::kMostDevices, Blob{Make("", 2e9).constants.SerializeAsString()}})
          .ok());
  ASSERT_EQ(Listed().size(), static_cast<size_t>(ConstantsStore::kMostDevices));
  ASSERT_TRUE(store.Save(Make("newest", 2e9, 1'000'000)).ok());
  const std::vector<StoredConstants> listed = Listed();
  ASSERT_EQ(listed.size(), static_cast<size_t>(ConstantsStore::kMostDevices));
  EXPECT_TRUE(std::ranges::any_of(listed, [](const auto& one) { return one.host == "newest"; }));
  EXPECT_FALSE(std::ranges::any_of(listed, [](const auto& one) { return one.host == "oldest"; }));
}

TEST_F(ConstantsStoreTest, AllCanBeForgotten) {
  ConstantsStore store(log_.get());
  ASSERT_TRUE(store.Save(Make("a", 2e9)).ok());
  ASSERT_TRUE(store.Save(Make("b", 2e9)).ok());
  EXPECT_EQ(store.Clear().value(), 2);
  EXPECT_TRUE(Listed().empty());
  EXPECT_EQ(store.Clear().value(), 0);
}

TEST_F(ConstantsStoreTest, NoneAndWhatIsNoNumberAreRefused) {
  ConstantsStore store(log_.get());
  StoredConstants none = Make("a", 1);
  none.constants.clear_values();
  EXPECT_EQ(store.Save(none).code(), absl::StatusCode::kInvalidArgument);
  for (const double clock : {std::nan(""), -1.0, 0.0}) {
    const absl::Status refused = store.Save(Make("a", clock));
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("expected a positive number"));
  }
  EXPECT_TRUE(Listed().empty());
}

TEST_F(ConstantsStoreTest, ADamagedRowIsLeftOutAndReplaced) {
  ConstantsStore store(log_.get());
  ASSERT_TRUE(store.Save(Make("a", 2e9)).ok());
  ASSERT_TRUE(store.Save(Make("b", 2e9)).ok());
  ASSERT_TRUE(log_->database()->Run("UPDATE device_constants SET detail = x'ff' WHERE host = 'a'").ok());
  ASSERT_EQ(Listed().size(), 1u);
  EXPECT_EQ(Listed()[0].host, "b");
  ASSERT_TRUE(store.Save(Make("a", 2e9)).ok());
  EXPECT_EQ(Listed().size(), 2u);
}

TEST_F(ConstantsStoreTest, SoIsARowWithWhatIsNoNumber) {
  ConstantsStore store(log_.get());
  ASSERT_TRUE(store.Save(Make("a", 2e9)).ok());
  ASSERT_TRUE(store.Save(Make("b", 2e9)).ok());
  StoredConstants damaged = Make("a", 2e9);
  (*damaged.constants.mutable_values())["peak_flops_per_second_one_thread"] = std::nan("");
  ASSERT_TRUE(log_->database()
                  ->Run("UPDATE device_constants SET detail = ?1 WHERE host = 'a'",
                        {Blob{damaged.constants.SerializeAsString()}})
                  .ok());
  ASSERT_EQ(Listed().size(), 1u);
  EXPECT_EQ(Listed()[0].host, "b");
}

}  // namespace
}  // namespace mycc
