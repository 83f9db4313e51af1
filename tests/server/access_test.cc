// The callers of access.json: what is refused, who is known by what, and which role each call needs.
#include "server/access.h"

#include "base/sha256.h"
#include "proto/tuning.pb.h"
#include "proto/worker.pb.h"

namespace mycc {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNowSeconds = 1'800'000'000;

Principal Make(const std::string& name, Roles roles, const std::string& token = "") {
  Principal principal;
  principal.name = name;
  principal.roles = roles;
  if (!token.empty()) principal.tokens = {{Sha256Hex(token)}};
  return principal;
}

std::string WhyRefused(const std::string& principals) {
  const auto list = AccessList::Parse(R"({"version": 1, "principals": [)" + principals + "]}", "access.json");
  EXPECT_TRUE(absl::IsInvalidArgument(list.status())) << list.status();
  return std::string(list.status().message());
}

TEST(AccessTest, EveryCallHasItsRole) {
  std::set<std::string> rows;
  for (const CallRole& row : CallRoles()) EXPECT_TRUE(rows.insert(std::string(row.call)).second) << row.call;
  size_t calls = 0;
  for (const auto* file : {v1::LeaseRequest::descriptor()->file(), v1::BestRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service(0)->method_count(); ++i, ++calls)
      EXPECT_TRUE(rows.contains(file->service(0)->method(i)->name())) << file->service(0)->method(i)->name();
  }
  EXPECT_EQ(calls, rows.size()) << "a row is no call's";
}

TEST(AccessTest, RolesAllowTheirCallsAlone) {
  const Caller reader{"r", {Role::kRead}}, submitter{"s", {Role::kSubmit}}, worker{"w", {Role::kWork}},
      admin{"a", {Role::kAdmin}};
  EXPECT_TRUE(CheckRole(reader, "Best").ok());
  EXPECT_TRUE(CheckRole(submitter, "Best").ok());
  EXPECT_TRUE(CheckRole(submitter, "SubmitJob").ok());
  EXPECT_TRUE(CheckRole(worker, "Lease").ok());
  for (const CallRole& row : CallRoles()) EXPECT_TRUE(CheckRole(admin, row.call).ok()) << row.call;
  for (const auto& [caller, call] : {std::pair{reader, "SubmitJob"},
                                     {reader, "Lease"},
                                     {submitter, "Lease"},
                                     {submitter, "FetchArtifact"},
                                     {worker, "SubmitJob"},
                                     {worker, "Best"}}) {
    EXPECT_TRUE(absl::IsPermissionDenied(CheckRole(caller, call))) << caller.name << " " << call;
  }
  EXPECT_EQ(CheckRole(reader, "SubmitJob").message(),
            "SubmitJob needs the role submit, and r has read; an admin gives it: mycc-tune auth grant r "
            "--role submit");
  EXPECT_TRUE(absl::IsPermissionDenied(CheckRole(submitter, "NoCallOfOurs")))
      << "unknown calls are an admin's";
  EXPECT_TRUE(CheckRole(admin, "NoCallOfOurs").ok());
}

TEST(AccessTest, FilesThatAreWrongAreRefusedByTheirPlace) {
  EXPECT_FALSE(AccessList::Parse("", "f").ok());
  EXPECT_FALSE(AccessList::Parse("[]", "f").ok());
  EXPECT_THAT(std::string(AccessList::Parse(R"({"version": 2})", "f").status().message()),
              HasSubstr("`f`: has version 2"));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": ["read"], "token": []})"),
              HasSubstr("principals[0] has the unknown key \"token\""));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": ["root"]})"), HasSubstr("\"root\" is no role"));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": []})"), HasSubstr("a has no role"));
  EXPECT_THAT(WhyRefused(R"({"name": "../a", "roles": ["read"]})"),
              HasSubstr("a caller's name is not as expected"));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": ["read"]}, {"name": "a", "roles": ["work"]})"),
              HasSubstr("a stands twice"));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": ["read"], "tokens": [{"sha256": "secret"}]})"),
              HasSubstr("is no SHA-256"));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": ["read"], "uids": [-1]})"),
              HasSubstr("uids[0] is no user id"));
  EXPECT_THAT(WhyRefused(R"({"name": "a", "roles": ["read"], "uids": [65534]})"),
              HasSubstr("users that it cannot name"));
  EXPECT_THAT(
      WhyRefused(
          R"({"name": "a", "roles": ["read"], "uids": [7]}, {"name": "b", "roles": ["admin"], "uids": [7]})"),
      HasSubstr("b has a token, a certificate or a user id that stands twice"));
}

TEST(AccessTest, WhatIsPrintedIsReadAgain) {
  AccessList list;
  Principal ann = Make("ann", {Role::kSubmit, Role::kRead}, "sesame");
  ann.certificates = {{Sha256Hex("certificate"), kNowSeconds}};
  ann.common_names = {"ann.example.org"};
  ann.uids = {1000, 1001};
  ann.revoked = true;
  ASSERT_TRUE(list.Add(ann).ok());
  ASSERT_TRUE(list.Add(Make("bob", {Role::kAdmin})).ok());
  const auto again = AccessList::Parse(list.Print(), "f");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Print(), list.Print());
  EXPECT_EQ(list.Print().find("sesame"), std::string::npos);
}

TEST(AccessTest, CallersAreKnownByWhatTheyShow) {
  AccessList list;
  Principal ann = Make("ann", {Role::kSubmit}, "sesame");
  ann.uids = {1000};
  Principal host = Make("host", {Role::kWork});
  host.certificates = {{Sha256Hex("own")}};
  host.common_names = {"host.example.org"};
  ASSERT_TRUE(list.Add(ann).ok());
  ASSERT_TRUE(list.Add(host).ok());
  const auto caller = [&list](const Shown& shown) { return list.CallerOf(shown, kNowSeconds); };
  EXPECT_EQ(caller({.token_sha256 = Sha256Hex("sesame")})->name, "ann");
  EXPECT_EQ(caller({.uid = 1000})->name, "ann");
  EXPECT_EQ(caller({.certificate_sha256 = Sha256Hex("own")})->name, "host");
  EXPECT_EQ(caller({.certificate_sha256 = Sha256Hex("renewed"), .common_name = "host.example.org"})->name,
            "host");
  EXPECT_EQ(caller({.token_sha256 = Sha256Hex("sesame"), .certificate_sha256 = Sha256Hex("own")})->name,
            "ann");
  EXPECT_TRUE(absl::IsUnauthenticated(caller({}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(caller({.uid = 1001}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(
      caller({.certificate_sha256 = Sha256Hex("other"), .common_name = "other"}).status()));
  EXPECT_TRUE(absl::IsUnauthenticated(caller({.token_sha256 = Sha256Hex("wrong"), .uid = 1000}).status()))
      << "a wrong token is refused, whoever shows it";
  EXPECT_TRUE(absl::IsUnauthenticated(caller({.common_name = "host.example.org"}).status()))
      << "no certificate has the name";
}

TEST(AccessTest, RevokedAndExpiredOnesAreRefusedWithTheReason) {
  AccessList list;
  Principal ann = Make("ann", {Role::kSubmit}, "sesame");
  ann.tokens[0].expires_unix_seconds = kNowSeconds;
  ASSERT_TRUE(list.Add(ann).ok());
  const Shown shown{.token_sha256 = Sha256Hex("sesame")};
  EXPECT_TRUE(list.CallerOf(shown, kNowSeconds - 1).ok());
  EXPECT_THAT(std::string(list.CallerOf(shown, kNowSeconds).status().message()),
              HasSubstr("the token of ann has expired"));
  ann.revoked = true;
  ASSERT_TRUE(list.Replace(ann).ok());
  const absl::Status revoked = list.CallerOf(shown, kNowSeconds - 1).status();
  EXPECT_TRUE(absl::IsPermissionDenied(revoked));
  EXPECT_THAT(std::string(revoked.message()), HasSubstr("the access of ann was revoked"));
}

TEST(AccessTest, AWrongChangeChangesNothing) {
  AccessList list;
  ASSERT_TRUE(list.Add(Make("ann", {Role::kSubmit}, "sesame")).ok());
  EXPECT_FALSE(list.Add(Make("bob", {Role::kRead}, "sesame")).ok());
  EXPECT_EQ(list.Find("bob"), nullptr);
  EXPECT_TRUE(absl::IsNotFound(list.Replace(Make("bob", {Role::kRead}))));
  EXPECT_EQ(list.CallerOf({.token_sha256 = Sha256Hex("sesame")}, kNowSeconds)->name, "ann");
}

}  // namespace
}  // namespace mycc
