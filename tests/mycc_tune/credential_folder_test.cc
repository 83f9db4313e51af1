// The folder of credentials: who can read it, what each change leaves, and certificates that OpenSSL and the
// server take for what they are.
#include "mycc_tune/credential_folder.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/file.h"
#include "base/sha256.h"
#include "base/temporary_folder.h"
#include "mycc_tune/auth_commands.h"
#include "mycc_tune/secret_file.h"
#include "proto/certificates.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

class CredentialFolderTest : public ::testing::Test {
 protected:
  CredentialFolderTest() : folder_(TemporaryFolder::Create().value()), path_(folder_.path() + "/auth") {}
  void SetUp() override {
    ASSERT_TRUE(CredentialFolder::Init(path_, {"farm.example.org", "10.0.0.7"}, 30).ok());
  }
  CredentialFolder Open() { return *CredentialFolder::Open(path_); }
  std::string Read(const std::string& name) { return *ReadFile(path_ + "/" + name); }
  Principal Caller(const std::string& name) { return *Open().callers().Find(name); }

  const TemporaryFolder folder_;
  const std::string path_;
};

TEST_F(CredentialFolderTest, EverythingIsItsOwnersAlone) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    struct stat info;
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0077, 0u) << entry.path();
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 3 + 2 + 3 + 3);
  EXPECT_EQ(Read("access.json").find(Read("admin/key.pem")), std::string::npos);
}

TEST_F(CredentialFolderTest, WhatIsThereIsNotOverwritten) {
  const std::string before = Read("ca.key");
  EXPECT_TRUE(absl::IsAlreadyExists(CredentialFolder::Init(path_, {}, 30)));
  EXPECT_TRUE(absl::IsAlreadyExists(Open().Add({.name = "admin", .roles = {Role::kAdmin}, .days = 30})));
  EXPECT_EQ(Read("ca.key"), before);
  EXPECT_TRUE(absl::IsInvalidArgument(CredentialFolder::Init(folder_.path() + "/bad", {"a b"}, 30)));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/bad")) << "complete or absent";
  std::filesystem::create_directory(folder_.path() + "/empty");
  EXPECT_TRUE(CredentialFolder::Init(folder_.path() + "/empty", {}, 30).ok());
}

TEST_F(CredentialFolderTest, NamesCannotLeaveTheFolder) {
  for (const char* name : {"../x", "a/b", "", ".x", "-x", "server", "ca", "ca.pem", "access.json"})
    EXPECT_TRUE(absl::IsInvalidArgument(Open().Add({.name = name, .roles = {Role::kRead}, .days = 30})))
        << name;
}

// A client's certificate is of no use to one who wants to be taken for the server, and the other way round.
TEST_F(CredentialFolderTest, CertificatesAreForTheirUse) {
  EXPECT_TRUE(CheckClientChain(Read("worker/cert.pem"), Read("ca.pem")).ok());
  EXPECT_THAT(std::string(CheckClientChain(Read("server/cert.pem"), Read("ca.pem")).message()),
              HasSubstr("unsuitable certificate purpose"));
  EXPECT_TRUE(CheckKey(Read("worker/key.pem"), "key.pem", Read("worker/cert.pem")).ok());
  const auto facts = ReadCertificate(Read("worker/cert.pem"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->common_name, "worker");
  EXPECT_EQ(Caller("worker").certificates[0].sha256, facts->sha256);
  EXPECT_EQ(Caller("worker").certificates[0].expires_unix_seconds, facts->expires_unix_seconds);
  EXPECT_EQ(facts->expires_unix_seconds - facts->begins_unix_seconds, 30 * 86400 + 3600);
}

TEST_F(CredentialFolderTest, CertificatesOfOthersAreRefused) {
  const std::string other = folder_.path() + "/other";
  ASSERT_TRUE(CredentialFolder::Init(other, {}, 30).ok());
  EXPECT_FALSE(CheckClientChain(*ReadFile(other + "/worker/cert.pem"), Read("ca.pem")).ok());
  EXPECT_FALSE(CheckClientChain(Read("ca.pem"), Read("ca.pem")).ok()) << "the authority is no client";
  EXPECT_FALSE(CheckClientChain("", Read("ca.pem")).ok());
  EXPECT_FALSE(CheckClientChain(Read("worker/cert.pem"), "").ok());
  // A caller cannot make certificates with its own.
  const MadeCertificate worker = {Read("worker/cert.pem"), Read("worker/key.pem")};
  const auto forged =
      MakeCertificate({.common_name = "admin", .now_unix_seconds = 1'800'000'000, .days = 365}, worker);
  ASSERT_TRUE(forged.ok()) << forged.status();
  EXPECT_FALSE(CheckClientChain(forged->certificate + worker.certificate, Read("ca.pem")).ok());
}

TEST_F(CredentialFolderTest, TokensAreKnownByTheirHashes) {
  ASSERT_TRUE(
      Open().Add({.name = "ann", .roles = {Role::kSubmit}, .secret = SecretKind::kToken, .days = 30}).ok());
  const std::string token = Read("ann/token").substr(0, 64);
  EXPECT_EQ(Read("ann/token"), token + "\n");
  EXPECT_EQ(Caller("ann").tokens[0].sha256, Sha256Hex(token));
  EXPECT_EQ(Read("access.json").find(token), std::string::npos);
}

TEST_F(CredentialFolderTest, RotationKeepsTheEarlierOneForAWhile) {
  ASSERT_TRUE(Open().Add({.name = "ann", .roles = {Role::kSubmit}, .secret = SecretKind::kToken}).ok());
  const Principal before = Caller("ann");
  EXPECT_EQ(before.tokens[0].expires_unix_seconds, 0);
  ASSERT_TRUE(Open().Rotate("ann", 3600, 30).ok());
  const Principal after = Caller("ann");
  ASSERT_EQ(after.tokens.size(), 2u);
  EXPECT_EQ(after.tokens[0].sha256, before.tokens[0].sha256);
  EXPECT_GT(after.tokens[0].expires_unix_seconds, 0);
  ASSERT_TRUE(Open().Rotate("ann", 0, 30).ok());
  EXPECT_EQ(Caller("ann").tokens.size(), 1u);
  ASSERT_TRUE(Open().Revoke("ann").ok());
  EXPECT_TRUE(Caller("ann").revoked);
  ASSERT_TRUE(Open().Rotate("ann", 3600, 30).ok());
  EXPECT_FALSE(Caller("ann").revoked);
  EXPECT_EQ(Caller("ann").tokens.size(), 1u) << "what a revoked caller had counts no more";
  EXPECT_TRUE(absl::IsNotFound(Open().Rotate("nobody", 0, 30)));
}

TEST_F(CredentialFolderTest, RolesAreGivenAndTaken) {
  ASSERT_TRUE(Open().Grant("worker", {Role::kRead}).ok());
  EXPECT_EQ(Caller("worker").roles.Words(), "read, work");
  ASSERT_TRUE(Open().Deny("worker", {Role::kWork}).ok());
  EXPECT_EQ(Caller("worker").roles.Words(), "read");
  EXPECT_TRUE(absl::IsInvalidArgument(Open().Deny("worker", {Role::kRead}))) << "revoke takes the last one";
  EXPECT_TRUE(absl::IsNotFound(Open().Grant("nobody", {Role::kRead})));
}

TEST_F(CredentialFolderTest, TheAuthorityIsReplacedInSteps) {
  const std::string old_worker = Read("worker/cert.pem");
  EXPECT_TRUE(absl::IsFailedPrecondition(Open().DropOldAuthority())) << "there is one alone";
  ASSERT_TRUE(Open().RotateAuthority().ok());
  EXPECT_TRUE(CheckClientChain(old_worker, Read("ca.pem")).ok()) << "both count";
  EXPECT_EQ(Read("worker/ca.pem"), Read("ca.pem"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Open().RotateAuthority())) << "one after the other";
  EXPECT_THAT(std::string(Open().DropOldAuthority().message()), HasSubstr("server, admin, worker"));
  ASSERT_TRUE(Open().RotateServer({}, 30).ok());
  for (const char* name : {"admin", "worker"}) ASSERT_TRUE(Open().Rotate(name, 3600, 30).ok());
  ASSERT_TRUE(Open().DropOldAuthority().ok());
  EXPECT_FALSE(CheckClientChain(old_worker, Read("ca.pem")).ok());
  EXPECT_TRUE(CheckClientChain(Read("worker/cert.pem"), Read("ca.pem")).ok());
}

TEST_F(CredentialFolderTest, CommandsSayWhatToDo) {
  AuthArgs args;
  args.folder = path_;
  args.name = "ann";
  args.roles = {"submit"};
  std::ostringstream out;
  ASSERT_TRUE(AuthAdd(args, out).ok());
  EXPECT_EQ(out.str(), "added ann; a running server follows within two seconds\ngive " + path_ +
                           "/ann to ann, for --credentials\n");
  args.roles = {"root"};
  EXPECT_THAT(std::string(AuthGrant(args, out).message()), HasSubstr("\"root\" is no role"));
  args.roles.clear();
  ASSERT_TRUE(AuthRevoke(args, out).ok());
  std::ostringstream list;
  ASSERT_TRUE(AuthList(args, list).ok());
  EXPECT_THAT(list.str(), HasSubstr("ann     submit  certificate  in 365 days  revoked"));
  args.json = true;
  std::ostringstream lines;
  ASSERT_TRUE(AuthList(args, lines).ok());
  EXPECT_THAT(lines.str(), HasSubstr("\"known_by\":\"certificate\",\"name\":\"server\""));
  args.no_secret = true;
  args.name = "bob";
  args.roles = {"read"};
  EXPECT_THAT(std::string(AuthAdd(args, out).message()), HasSubstr("expected --uid or --common-name"));
}

TEST(SecretFileTest, ALinkIsReplacedAndNotFollowed) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  std::ofstream(folder.path() + "/victim") << "as it was";
  std::filesystem::create_symlink(folder.path() + "/victim", folder.path() + "/secret");
  ASSERT_TRUE(WriteSecretFile(folder.path() + "/secret", "key").ok());
  EXPECT_EQ(*ReadFile(folder.path() + "/victim"), "as it was");
  EXPECT_EQ(*ReadFile(folder.path() + "/secret"), "key");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.path() + "/secret"));
  EXPECT_FALSE(WriteSecretFile(folder.path() + "/none/secret", "key").ok());
}

TEST(SecretFileTest, AFolderThatOthersWriteToIsRefused) {
  const TemporaryFolder folder = TemporaryFolder::Create().value();
  const std::string path = folder.path() + "/open";
  ASSERT_TRUE(MakePrivateFolder(path).ok());
  EXPECT_TRUE(MakePrivateFolder(path).ok()) << "one's own";
  chmod(path.c_str(), 0777);
  EXPECT_TRUE(absl::IsFailedPrecondition(MakePrivateFolder(path)));
  std::filesystem::create_symlink(folder.path(), folder.path() + "/link");
  EXPECT_TRUE(absl::IsFailedPrecondition(MakePrivateFolder(folder.path() + "/link")));
}

TEST(CertificateMakerTest, HostsAreNamesOrAddresses) {
  for (const char* host : {"farm", "farm.example.org", "*.example.org", "10.0.0.1", "::1"})
    EXPECT_TRUE(CheckHost(host).ok()) << host;
  for (const char* host : {"", "a b", "a,DNS:b", "a\n", "..", "*.*.org", "farm:50917"})
    EXPECT_FALSE(CheckHost(host).ok()) << host;
}

}  // namespace
}  // namespace mycc
