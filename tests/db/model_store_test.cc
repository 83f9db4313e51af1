// Stored cost models and baselines.
#include "db/model_store.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "db/baseline_store.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

class ModelStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void Open() {
    log_.reset();
    log_ = *TuningLog::Open(directory_ / "tuning.db", OpenMode::kCreate, [this] { return now_; });
  }

  TempDir directory_;
  int64_t now_ = 1;
  std::unique_ptr<TuningLog> log_;
};

TEST_F(ModelStoreTest, AModelIsKnownByItsBytes) {
  const std::string bytes("model\0\xff", 7);
  auto id = ModelStore(log_.get()).Save("cpu-score", "trained on 512 records", bytes);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, Sha256Hex(bytes));
  EXPECT_EQ(*ModelStore(log_.get()).Save("cpu-score", "again", bytes), *id);
  Open();
  auto model = ModelStore(log_.get()).Load(*id);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->bytes, bytes);
  EXPECT_EQ(model->kind, "cpu-score");
  EXPECT_EQ(model->info, "trained on 512 records");
  EXPECT_EQ(ModelStore(log_.get()).Load("none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelStoreTest, TheNewestOfAKindIsFound) {
  ModelStore models(log_.get());
  EXPECT_EQ(models.NewestId("score").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(models.Save("score", "", "one").ok());
  ASSERT_TRUE(models.Save("score", "", "two").ok());  // at the same instant
  ASSERT_TRUE(models.Save("failure", "", "three").ok());
  EXPECT_EQ(models.Load(*models.NewestId("score"))->bytes, "two");
  now_ = 5;
  ASSERT_TRUE(models.Save("score", "", "four").ok());
  EXPECT_EQ(models.Load(*models.NewestId("score"))->bytes, "four");
}

// A model that is imported again is the one that the next jobs begin with.
TEST_F(ModelStoreTest, AModelThatIsSavedAgainIsTheNewest) {
  ModelStore models(log_.get());
  const std::string one = *models.Save("score", "", "one");
  ASSERT_TRUE(models.Save("score", "", "two").ok());
  ASSERT_TRUE(models.Save("score", "", "one").ok());
  EXPECT_EQ(*models.NewestId("score"), one);
  EXPECT_EQ((*models.ListNewest())[0].id, one);
  now_ = 9;
  ASSERT_TRUE(models.Save("score", "", "two").ok());
  EXPECT_NE(*models.NewestId("score"), one);
  ASSERT_TRUE(models.Save("failure", "", "one").ok());
  EXPECT_EQ(models.Load(one)->kind, "score") << "its kind stays";
  EXPECT_NE(*models.NewestId("score"), one);
}

TEST_F(ModelStoreTest, OnlyTheNewestOfEachKindAndThoseThatAreNeededAreKept) {
  ModelStore models(log_.get());
  std::vector<std::string> ids;
  for (const char* bytes : {"one", "two", "three", "four"}) ids.push_back(*models.Save("score", "", bytes));
  const std::string other = *models.Save("failure", "", "five");
  ASSERT_TRUE(models.KeepNewest(2, {ids[0], "unknown"}).ok());
  Open();
  const auto is_kept = [this](const std::string& id) { return ModelStore(log_.get()).Load(id).ok(); };
  EXPECT_TRUE(is_kept(ids[0]));
  EXPECT_FALSE(is_kept(ids[1]));
  EXPECT_TRUE(is_kept(ids[2]));
  EXPECT_TRUE(is_kept(ids[3]));
  EXPECT_TRUE(is_kept(other));
}

TEST_F(ModelStoreTest, ADamagedModelIsNotLoaded) {
  auto id = ModelStore(log_.get()).Save("score", "", "bytes");
  ASSERT_TRUE(log_->database()->Run("UPDATE models SET bytes = x'00'").ok());
  EXPECT_EQ(ModelStore(log_.get()).Load(*id).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ModelStoreTest, ABaselineTakesThePlaceOfAnEarlierOne) {
  BaselineStore baselines(log_.get());
  Baseline baseline{"worker-a", "cuda:0", "gemm", v1::TIMING_PROTOCOL_WARM, "NVIDIA H200", 1e-3, 7};
  ASSERT_TRUE(baselines.Save(baseline).ok());
  baseline.seconds = 2e-3;
  ASSERT_TRUE(baselines.Save(baseline).ok());
  baseline.protocol = v1::TIMING_PROTOCOL_COLD;
  ASSERT_TRUE(baselines.Save(baseline).ok());
  Open();
  auto listed = BaselineStore(log_.get()).List();
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].seconds, 2e-3);
  EXPECT_EQ((*listed)[0].device_model, "NVIDIA H200");
  EXPECT_EQ((*listed)[1].protocol, v1::TIMING_PROTOCOL_COLD);
  baseline.seconds = 0;
  EXPECT_EQ(BaselineStore(log_.get()).Save(baseline).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mycc
