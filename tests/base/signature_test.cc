// Ed25519 keys in files, and signatures by them.
#include "base/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/sha256.h"
#include "base/temporary_folder.h"

namespace mycc {
namespace {

using testing::HasSubstr;

class SignatureTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  int ModeOf(const std::string& name) const {
    struct stat info;
    return stat(Path(name).c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
  }
  void Write(const std::string& name, const std::string& text) const {
    ASSERT_TRUE(WriteFileAtomically(Path(name), text).ok());
  }

  const TemporaryFolder folder_ = TemporaryFolder::Create().value();
};

TEST_F(SignatureTest, APairSignsAndVerifies) {
  const auto made = MakeKeyPair(Path("ann"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(ModeOf("ann"), 0600);
  EXPECT_EQ(ModeOf("ann.pub"), 0644);
  const auto key = PrivateKey::Read(Path("ann"));
  ASSERT_TRUE(key.ok()) << key.status();
  const auto known = PublicKey::ReadAll(Path("ann.pub"));
  ASSERT_TRUE(known.ok()) << known.status();
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ((*known)[0].id(), made->id());
  EXPECT_EQ(key->public_key().id(), made->id());
  EXPECT_EQ(made->id().size(), 16u);

  const std::string signature = key->Sign("a message").value();
  EXPECT_EQ(signature.size(), 64u);
  EXPECT_EQ(key->Sign("a message").value(), signature) << "Ed25519 is deterministic";
  EXPECT_TRUE((*known)[0].Verifies("a message", signature));
  EXPECT_FALSE((*known)[0].Verifies("a massage", signature));
  EXPECT_FALSE((*known)[0].Verifies("a message", ""));
  EXPECT_FALSE((*known)[0].Verifies("a message", signature + "x"));
  for (size_t i = 0; i < signature.size(); ++i) {
    std::string changed = signature;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE((*known)[0].Verifies("a message", changed)) << i;
  }
  EXPECT_FALSE(MakeKeyPair(Path("bob"))->Verifies("a message", signature));
}

TEST_F(SignatureTest, AFileMayHaveSeveralPublicKeys) {
  const std::string ann = MakeKeyPair(Path("ann"))->id(), bob = MakeKeyPair(Path("bob"))->id();
  Write("both", "# trusted by the platform team\n" + ReadFile(Path("ann.pub")).value() + "\n" +
                    ReadFile(Path("bob.pub")).value());
  const auto keys = PublicKey::ReadAll(Path("both"));
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].id(), ann);
  EXPECT_EQ((*keys)[1].id(), bob);
}

TEST_F(SignatureTest, KeysAreNeverWrittenOver) {
  ASSERT_TRUE(MakeKeyPair(Path("ann")).ok());
  const std::string before = ReadFile(Path("ann")).value();
  const absl::Status again = MakeKeyPair(Path("ann")).status();
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  EXPECT_EQ(ReadFile(Path("ann")).value(), before);
  Write("eve.pub", "mine");
  EXPECT_TRUE(absl::IsAlreadyExists(MakeKeyPair(Path("eve")).status()));
  EXPECT_EQ(ModeOf("eve"), -1) << "half a pair is none";
}

TEST_F(SignatureTest, WhatIsNoKeyIsRefused) {
  ASSERT_TRUE(MakeKeyPair(Path("ann")).ok());
  const auto words = [](const absl::Status& status) { return std::string(status.message()); };
  EXPECT_THAT(words(PublicKey::ReadAll(Path("ann")).status()), HasSubstr("has no public key; expected PEM"));
  EXPECT_TRUE(absl::IsNotFound(PublicKey::ReadAll(Path("nobody.pub")).status()));
  EXPECT_TRUE(absl::IsNotFound(PrivateKey::Read(Path("nobody")).status()));
  Write("public", ReadFile(Path("ann.pub")).value());
  ASSERT_EQ(chmod(Path("public").c_str(), 0600), 0);
  EXPECT_THAT(words(PrivateKey::Read(Path("public")).status()), HasSubstr("has no private Ed25519 key"));
  ASSERT_EQ(chmod(Path("ann").c_str(), 0640), 0);
  const absl::Status open = PrivateKey::Read(Path("ann")).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(open)) << open;
  EXPECT_THAT(words(open), HasSubstr("(mode 0640); expected 0600"));
}

TEST(Sha256StreamTest, PiecesAreAsOne) {
  Sha256Stream stream;
  stream.Add("");
  stream.Add("ab");
  stream.Add("c");
  EXPECT_EQ(stream.Hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace mycc
