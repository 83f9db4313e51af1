#include "mycc_tune/auth_cli.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "mycc_tune/auth_commands.h"

namespace mycc {
namespace {

using ArgsPtr = std::shared_ptr<AuthArgs>;

constexpr int kMostValidDays = 3650;
constexpr double kMostOverlapHours = 24 * 365;

struct AuthSub {
  CLI::App* app;
  ArgsPtr args;
};

AuthSub AddAuthSub(CLI::App* auth, Command* command, const std::string& name, const std::string& what,
                   absl::Status (*work)(const AuthArgs&, std::ostream&)) {
  AuthSub sub{auth->add_subcommand(name, what), std::make_shared<AuthArgs>()};
  sub.app->add_option("--dir", sub.args->folder, "the folder of credentials")
      ->type_name("DIR")
      ->capture_default_str();
  sub.app->callback(
      [command, work, args = sub.args] { *command = [work, args] { return work(*args, std::cout); }; });
  return sub;
}

void AddDays(const AuthSub& sub, const std::string& what) {
  sub.app->add_option("--days", sub.args->days, what)
      ->check(CLI::Range(1, kMostValidDays))
      ->capture_default_str();
}

void AddHosts(const AuthSub& sub) {
  sub.app
      ->add_option("--host", sub.args->hosts, "a name or address by which the server is reached; repeatable")
      ->take_all()
      ->allow_extra_args(false);
}

CLI::Option* AddRoles(const AuthSub& sub, const std::string& what) {
  return sub.app->add_option("--role", sub.args->roles, what)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("ROLE");
}

void AddName(const AuthSub& sub, const std::string& what) {
  sub.app->add_option("NAME", sub.args->name, what)->required();
}

}  // namespace

void AddAuthCommands(CLI::App* app, Command* command) {
  CLI::App* const auth = app->add_subcommand("auth", "make, change and revoke the credentials of a farm");
  auth->require_subcommand(1);
  const AuthSub init = AddAuthSub(
      auth, command, "init",
      "make a folder with an authority, the server's certificate, and the callers admin and worker",
      AuthInit);
  AddHosts(init);
  AddDays(init, "days until the certificates expire");

  const AuthSub add = AddAuthSub(auth, command, "add", "add a caller", AuthAdd);
  AddName(add, "the caller's name; jobs have it as their owner");
  AddRoles(add, "read, submit, work or admin; repeatable")->required();
  auto* const token = add.app->add_flag("--token", add.args->token, "make a token in place of a certificate");
  add.app
      ->add_flag("--no-secret", add.args->no_secret,
                 "make neither: the caller is known by --uid or --common-name")
      ->excludes(token);
  add.app
      ->add_option("--uid", add.args->uids,
                   "a user of the server's host, who needs no credential on a local address")
      ->take_all()
      ->allow_extra_args(false);
  add.app
      ->add_option("--common-name", add.args->common_names,
                   "the common name of certificates that an authority of one's own makes for this caller")
      ->take_all()
      ->allow_extra_args(false);
  AddDays(add, "days until the token or the certificate expires");

  const AuthSub grant = AddAuthSub(auth, command, "grant", "give a caller more roles", AuthGrant);
  AddName(grant, "the caller");
  AddRoles(grant, "read, submit, work or admin; repeatable")->required();

  const AuthSub revoke =
      AddAuthSub(auth, command, "revoke", "refuse a caller, or take roles away", AuthRevoke);
  AddName(revoke, "the caller");
  AddRoles(revoke, "take this role alone; repeatable");

  const AuthSub rotate =
      AddAuthSub(auth, command, "rotate", "replace a token, a certificate, or the authority", AuthRotate);
  AddName(rotate, "a caller, `server`, or `ca`");
  AddHosts(rotate);
  AddDays(rotate, "days until the new one expires");
  rotate.app
      ->add_option("--overlap-hours", rotate.args->overlap_hours,
                   "hours for which a caller's earlier one still counts")
      ->check(CLI::Range(0.0, kMostOverlapHours))
      ->capture_default_str();
  rotate.app->add_flag("--drop-old", rotate.args->drop_old, "of `ca`: the earlier authority counts no more");

  const AuthSub list = AddAuthSub(auth, command, "list", "list the callers", AuthList);
  list.app->add_flag("--json", list.args->json, "print JSON lines");
}

}  // namespace mycc
