#include "mycc_tune/doctor_cli.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "base/status.h"
#include "mycc_tune/doctor_command.h"
#include "worker/gpu_device.h"

namespace mycc {

void AddDoctor(CLI::App* app, std::function<absl::Status()>* command,
               const std::function<std::shared_ptr<ServerAddress>(CLI::App*)>& add_server) {
  auto options = std::make_shared<DoctorOptions>();
  Installation* const examined = &options->installation;
  CLI::App* sub = app->add_subcommand("doctor", "say what is wrong with an installation, and how to mend it");
  sub->add_option("--device", examined->devices,
                  "a device to measure on: cpu, cuda:0; repeatable; all that there are if not given")
      ->check([](const std::string& word) {
        return word == "cpu" ? std::string() : std::string(ParseGpuName(word).status().message());
      });
  const std::shared_ptr<ServerAddress> server = add_server(sub);
  sub->add_option("--log", examined->log, "the tuning log of a server on this host")->type_name("FILE");
  sub->add_option("--listen", examined->listen, "the address of a server that is to be started here")
      ->check([](const std::string& word) { return std::string(CheckAddress(word).message()); });
  sub->add_option("--own-cert", examined->certificates, "that server's certificate chain, its --tls-cert")
      ->type_name("FILE");
  sub->add_option("--own-key", examined->key, "that server's private key, its --tls-key")->type_name("FILE");
  sub->add_flag("--json", options->json, "print JSON lines");
  sub->callback([=] {
    *command = [=]() -> absl::Status {
      if (!server->address.empty()) {
        MYCC_ASSIGN_OR_RETURN(examined->server, WithCredentials(*server));
      }
      return DoctorCommand(*options, std::cout);
    };
  });
}

}  // namespace mycc
