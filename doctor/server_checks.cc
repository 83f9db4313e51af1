// Checks of the network: the address that a server is to listen on, and the server that workers and clients
// call.
#include <chrono>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/version.h"
#include "doctor/address.h"
#include "doctor/certificate.h"
#include "doctor/installation.h"
#include "doctor/validity.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/server_facts.h"
#include "proto/tuning.grpc.pb.h"

namespace mycc {
namespace {

constexpr double kConnectSeconds = 5, kCallSeconds = 10;
constexpr double kClockMargin = 2;  // seconds

std::string MetadataOf(const grpc::ClientContext& context, const char* key) {
  const auto& all = context.GetServerInitialMetadata();
  const auto found = all.find(key);
  return found == all.end() ? "" : std::string(found->second.data(), found->second.size());
}

void CompareClocks(const std::string& server_micros, int64_t own_unix_seconds, Findings* findings) {
  int64_t micros = 0;
  if (!absl::SimpleAtoi(server_micros, &micros)) return;
  const double ahead = static_cast<double>(micros) * 1e-6 - static_cast<double>(own_unix_seconds);
  if (std::abs(ahead) <= kClockMargin) {
    findings->push_back(Ok("its clock and this host's agree"));
    return;
  }
  findings->push_back(Warning(absl::StrFormat("its clock is %.0f s %s this host's", std::abs(ahead),
                                              ahead > 0 ? "ahead of" : "behind"),
                              "let a time service keep both clocks"));
}

void CompareVersions(const std::string& version, Findings* findings) {
  const std::string own = ProgramVersion();
  if (version.empty()) {
    findings->push_back(Warning("it does not say its version, so it is older than this program",
                                "upgrade the server before its workers and clients"));
  } else if (version == own) {
    findings->push_back(Ok(absl::StrCat("version ", version, ", as this program")));
  } else {
    findings->push_back(Warning(absl::StrCat("version ", version, ", this program is ", own),
                                "upgrade the server first, then its workers and clients"));
  }
}

}  // namespace

Findings CheckListen(const Installation& installation) {
  if (installation.listen.empty()) return {};
  const std::string& address = installation.listen;
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    const std::filesystem::path folder = std::filesystem::path(std::string(path)).parent_path();
    std::error_code error;
    if (std::filesystem::is_directory(folder.empty() ? "." : folder, error)) return {Ok(address)};
    return {Fault(absl::StrCat(address, ": its folder does not exist"),
                  "make the folder; RuntimeDirectory= of a unit does")};
  }
  const std::optional<HostPort> place = SplitAddress(address);
  if (!place) return {};
  const absl::Status bound = installation.system.bind(place->host, place->port);
  if (bound.ok()) return {Ok(address + " is free")};
  return {
      Fault(absl::StrCat(address, ": ", bound.message()),
            absl::StrCat("`ss -ltnp sport = :", place->port, "` shows who has it; choose another --listen"))};
}

Findings CheckServer(const Installation& installation) {
  if (!installation.server) return {};
  const std::string& address = installation.server->address;
  const std::optional<HostPort> place = SplitAddress(address);
  Findings findings;
  if (place && !installation.server->tls_ca_file.empty()) {
    const auto shown = CertificatesOfServer(place->host, place->port, kConnectSeconds);
    if (shown.ok()) findings = CheckValidity(*shown, "its certificate", installation.system.unix_seconds());
  }
  const absl::StatusOr<ServerChannel> channel = ServerChannel::Open(*installation.server);
  if (!channel.ok()) {
    findings.push_back(Fault(std::string(channel.status().message()), "mend the option that it names"));
    return findings;
  }
  channel->WaitUntilOpen(kConnectSeconds);
  grpc::ClientContext context;
  channel->Prepare(&context, kCallSeconds);
  v1::ListDevicesResponse response;
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status =
      channel->StatusOf(v1::TuningService::NewStub(channel->channel())
                            ->ListDevices(&context, v1::ListDevicesRequest(), &response));
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  if (!status.ok()) {
    findings.push_back(
        Fault(absl::StrCat(address, ": ", status.message()),
              "is it running there, does a firewall let the port through, and is this its token?"));
    return findings;
  }
  findings.push_back(Ok(absl::StrFormat("%s answers in %.1f ms, with %d device%s", address, took.count(),
                                        response.devices_size(), response.devices_size() == 1 ? "" : "s")));
  CompareVersions(MetadataOf(context, kVersionMetadata), &findings);
  CompareClocks(MetadataOf(context, kTimeMetadata), installation.system.unix_seconds(), &findings);
  return findings;
}

}  // namespace mycc
