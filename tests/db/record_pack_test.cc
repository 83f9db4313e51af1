// Signed packs: their records come in as foreign ones, and a pack with one wrong byte brings nothing.
#include "db/record_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "db/json_lines.h"
#include "tests/db/test_log.h"

namespace mycc {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int64_t kPacked = 1800000000000000;

class RecordPackTest : public testing::Test {
 protected:
  static std::unique_ptr<TuningLog> Open(const std::string& path) {
    return TuningLog::Open(path, OpenMode::kCreate, [] { return kPacked; }).value();
  }
  std::string Pack(const TuningLog& log, const PrivateKey& key, const RecordFilter& filter = {}) {
    std::ostringstream out;
    const auto manifest = ExportPack(log, filter, key, "ann@host", out);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return out.str();
  }
  absl::StatusOr<PackCounts> Import(const std::string& pack, const std::string& key = "ann.pub") {
    std::istringstream in(pack);
    return ImportPack(in, "pack.jsonl", {key == "ann.pub" ? ann_ : bob_}, own_.get());
  }
  std::string Refusal(const std::string& pack, const std::string& key = "ann.pub") {
    const auto counts = Import(pack, key);
    EXPECT_FALSE(counts.ok());
    EXPECT_EQ(CountForeign(*own_)->records, 0) << "nothing of a bad pack is taken";
    EXPECT_EQ(*own_->database()->ReadInt("SELECT count(*) FROM keys"), 0);
    return std::string(counts.status().message());
  }

  TempDir directory_;
  const PublicKey ann_ = MakeKeyPair(directory_ / "ann").value(),
                  bob_ = MakeKeyPair(directory_ / "bob").value();
  const PrivateKey key_ = PrivateKey::Read(directory_ / "ann").value();
  std::unique_ptr<TuningLog> theirs_ = Open(MakeMixedLog(directory_, "theirs.db"));
  std::unique_ptr<TuningLog> own_ = Open(directory_ / "own.db");
};

TEST_F(RecordPackTest, RecordsComeInAsForeignOnes) {
  // There are five records: one is a failure, and another is banned.
  ASSERT_TRUE(theirs_->SetOverride(2, OverrideKind::kBan, "hangs").ok());
  const std::string pack = Pack(*theirs_, key_);
  const auto counts = Import(pack);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->added, 3);
  EXPECT_EQ(counts->manifest.records, 3);
  EXPECT_EQ(counts->manifest.signer.key_id, ann_.id());
  EXPECT_EQ(counts->manifest.signer.name, "ann@host");
  EXPECT_EQ(counts->manifest.signed_unix_micros, kPacked);

  // They serve nothing, and nothing of the log's own changes.
  EXPECT_TRUE(own_->List({})->empty());
  EXPECT_TRUE(absl::IsNotFound(own_->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM).status()));
  EXPECT_TRUE(own_->BestOfTargets(WorkloadHashOf(64), v1::TIMING_PROTOCOL_WARM)->empty());
  EXPECT_EQ(*own_->CountMeasured(KeyOf({}), v1::TIMING_PROTOCOL_WARM, 100), 0);

  const auto waiting = WaitingForeign(*own_, KeyOf({}), v1::TIMING_PROTOCOL_WARM, 10);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  ASSERT_EQ(waiting->size(), 2u);
  EXPECT_TRUE(SameMessage((*waiting)[0].record, theirs_->Get(1)->record));
  EXPECT_TRUE(SameMessage((*waiting)[1].record, theirs_->Get(3)->record));
  EXPECT_EQ((*waiting)[0].signer.name, "ann@host");
  EXPECT_TRUE((*waiting)[0].waits);

  const auto again = Import(pack);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->added, 0);
  EXPECT_EQ(again->known, 3);
}

TEST_F(RecordPackTest, AnOwnResultEndsTheWait) {
  ASSERT_TRUE(Import(Pack(*theirs_, key_)).ok());
  EXPECT_EQ(*CountWaitingForeign(*own_, KeyOf({})), 3);
  // A lost device says nothing of the candidate, and a result under another protocol nothing of this one.
  const std::string trace = theirs_->Get(1)->record.trace();
  ASSERT_TRUE(
      own_->Append({MakeRecord({.index = 70, .status = v1::MEASURE_STATUS_DEVICE_LOST, .trace = trace}),
                    MakeRecord({.index = 71, .protocol = v1::TIMING_PROTOCOL_COLD, .trace = trace})})
          .ok());
  EXPECT_EQ(*CountWaitingForeign(*own_, KeyOf({})), 3);
  ASSERT_TRUE(own_->Append({MakeRecord({.index = 72, .seconds = 9e-3, .trace = trace})}).ok());
  EXPECT_EQ(*CountWaitingForeign(*own_, KeyOf({})), 2);
  EXPECT_EQ(own_->Best(KeyOf({}), v1::TIMING_PROTOCOL_WARM)->record.result().timing().seconds(), 9e-3)
      << "by the own time, not by the one that was claimed";
  const std::string other = theirs_->Get(2)->record.trace();
  ASSERT_TRUE(
      own_->Append({MakeRecord({.index = 73, .status = v1::MEASURE_STATUS_WRONG_RESULT, .trace = other})})
          .ok());
  EXPECT_EQ(*CountWaitingForeign(*own_, KeyOf({})), 1);
  EXPECT_EQ(CountForeign(*own_)->records, 4);
  EXPECT_EQ(CountForeign(*own_)->waiting, 2);
}

// Every byte counts, also those between the lines.
TEST_F(RecordPackTest, APackWithAnotherByteIsRefused) {
  const std::string pack = Pack(*theirs_, key_, {.limit = 1});
  for (size_t at = 0; at < pack.size(); ++at) {
    std::string changed = pack;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(Import(changed).ok()) << "byte " << at;
    if (at % 13 != 0) continue;
    EXPECT_FALSE(Import(pack.substr(0, at)).ok()) << "the first " << at << " bytes";
    EXPECT_FALSE(Import(pack.substr(0, at) + pack.substr(at + 1)).ok()) << "without byte " << at;
    EXPECT_FALSE(Import(pack.substr(0, at) + "\n" + pack.substr(at)).ok()) << "a newline before " << at;
  }
  EXPECT_EQ(CountForeign(*own_)->records, 0);
  EXPECT_TRUE(Import(pack).ok());
}

TEST_F(RecordPackTest, RefusalsSayWhatIsWrong) {
  const std::string pack = Pack(*theirs_, key_);
  std::vector<std::string> lines = absl::StrSplit(pack, '\n');
  ASSERT_EQ(lines.size(), 8u);  // the header, four records, manifest, signature, nothing
  const auto joined = [](const std::vector<std::string>& parts) { return absl::StrJoin(parts, "\n"); };
  EXPECT_THAT(Refusal(""), HasSubstr("pack.jsonl:1: the file ends here; expected the first line"));
  EXPECT_THAT(Refusal(pack.substr(0, pack.size() / 2)), HasSubstr("so the pack is cut short"));
  EXPECT_THAT(Refusal(joined({lines[0], lines[1], lines[2], lines[3], lines[4], ""})),
              HasSubstr("pack.jsonl:6: the file ends here; expected a record or the manifest"));
  EXPECT_THAT(Refusal(joined({lines[0], lines[1], lines[2], lines[3], lines[4], lines[5], ""})),
              HasSubstr("expected the signature, so the pack is cut short"));
  EXPECT_THAT(Refusal(joined({lines[0], lines[1], lines[2], lines[3], lines[5], lines[6], ""})),
              HasSubstr("has 3 records; expected the 4 that were signed"));
  EXPECT_THAT(Refusal(joined({lines[0], lines[2], lines[1], lines[3], lines[4], lines[5], lines[6], ""})),
              HasSubstr("its records are not those that were signed"));
  EXPECT_THAT(Refusal(absl::StrReplaceAll(pack, {{"\"records\":4", "\"records\":5"}})),
              HasSubstr(absl::StrCat("the signature of key ", ann_.id(), " does not fit the manifest")));
  EXPECT_THAT(Refusal(pack + pack), HasSubstr("pack.jsonl:8: the pack is signed up to the line before"));
  EXPECT_THAT(Refusal(pack + "\n"), HasSubstr("expected the end"));
  EXPECT_THAT(Refusal(pack, "bob.pub"), HasSubstr(absl::StrCat("is signed by key ", ann_.id(),
                                                               " (ann@host); expected key ", bob_.id())));
  std::ostringstream plain;
  ASSERT_TRUE(ExportJsonLines(*theirs_, {}, plain).ok());
  EXPECT_THAT(Refusal(plain.str()), HasSubstr("is an export without a signature"));
}

// A signature does not make records valid: the log of an honest signer may come from another build.
TEST_F(RecordPackTest, SignedNonsenseIsRefused) {
  std::istringstream in(Pack(*theirs_, key_));
  const auto refused = ImportPack(in, "pack.jsonl", {ann_}, own_.get(), [](const std::string&) {
    return absl::InvalidArgumentError("no such machine");
  });
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("pack.jsonl:2: key \"target\": no such machine"));
  EXPECT_EQ(CountForeign(*own_)->records, 0);
}

TEST_F(RecordPackTest, APlainImportRefusesAPack) {
  std::istringstream in(Pack(*theirs_, key_));
  const auto counts = ImportJsonLines(in, "pack.jsonl", own_.get());
  EXPECT_THAT(std::string(counts.status().message()),
              HasSubstr("pack.jsonl:1: is a signed pack; expected --verify with the signer's public key"));
}

TEST_F(RecordPackTest, MergingTakesForeignRecordsAlong) {
  ASSERT_TRUE(Import(Pack(*theirs_, key_)).ok());
  auto third = Open(directory_ / "third.db");
  const auto merged = MergeLog(*own_, third.get());
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->foreign, 4);
  EXPECT_EQ(merged->added, 0);
  EXPECT_EQ(*CountWaitingForeign(*third, KeyOf({})), 3);
  EXPECT_EQ(MergeLog(*own_, third.get())->foreign, 0);
}

TEST_F(RecordPackTest, OnePerSignerAndTraceTheNewestResult) {
  const std::string trace = "v1\nsplit(i, 7)\n";
  ASSERT_TRUE(theirs_->Append({MakeRecord({.index = 50, .seconds = 5e-3, .trace = trace})}).ok());
  const std::string before = Pack(*theirs_, key_);
  ASSERT_TRUE(theirs_->Append({MakeRecord({.index = 60, .seconds = 4e-3, .trace = trace})}).ok());
  const std::string after = Pack(*theirs_, key_);
  ASSERT_TRUE(Import(after).ok());
  EXPECT_EQ(Import(before)->added, 0) << "an older pack brings no older result back";
  EXPECT_EQ(CountForeign(*own_)->records, 5);
  // Another signer's result of the same trace is a record of its own, and the trace one candidate.
  const std::string of_bob = Pack(*theirs_, PrivateKey::Read(directory_ / "bob").value());
  ASSERT_TRUE(Import(of_bob, "bob.pub").ok());
  EXPECT_EQ(CountForeign(*own_)->records, 10);
  EXPECT_EQ(*CountWaitingForeign(*own_, KeyOf({})), 4);
  EXPECT_EQ(WaitingForeign(*own_, KeyOf({}), v1::TIMING_PROTOCOL_WARM, 10)->size(), 4u);
}

}  // namespace
}  // namespace mycc
