#include "worker/local_worker.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/target/target.h"
#include "process/host_lock.h"
#include "proto/device_constants.h"
#include "proto/timer_version.h"
#include "worker/device.h"
#include "worker/device_reading.h"
#include "worker/gpu_device.h"
#include "worker/grpc_link.h"

namespace mycc {
namespace {

// Enough to keep all builders busy, few enough that a death or a cancellation costs little.
constexpr int kBatchesABuilder = 2;
constexpr int kLeastBatch = 4;
// One lane's candidates are built while another's are measured.
constexpr int kGpuLanes = 2;
// Lanes of a build-only worker: an order in each, and one more, so that no builder waits for the server.
constexpr int kMostBuildLanes = 32;
// Every architecture that there is a preset of.
constexpr const char* kBuildTargets[] = {"a100", "rtx3090", "l40", "h200", "b200"};

std::string DefaultName() {
  char host[256] = "worker";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat(host, "-", getpid());
}

// Children do not see the worker's credentials.
Confinement ConfinementOf(const LocalWorkerOptions& options) {
  Confinement confinement;
  confinement.mode = options.confinement;
  const ServerAddress& server = options.server;
  for (const std::string& file : {server.tls_ca_file, server.token_file, server.tls_cert_file,
                                  server.tls_key_file, server.credentials}) {
    if (!file.empty()) confinement.hidden.push_back(file);
  }
  return confinement;
}

int BuildersOf(const LocalWorkerOptions& options) {
  return options.builders > 0 ? options.builders : UsableCpus();
}

}  // namespace

int UsableCpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

absl::StatusOr<WorkerDevice> LocalWorker::AddCpu(const LocalWorkerOptions& options) {
  const int builders = BuildersOf(options);
  CpuMeasurerOptions measuring;
  measuring.builders = builders;
  measuring.confinement = confinement_;
  MYCC_ASSIGN_OR_RETURN(cpu_, CpuMeasurer::Create(measuring));
  WorkerDevice device;
  device.offer.set_device("cpu");
  const Target target = DetectHostTarget();
  device.offer.set_target(PrintTarget(target));
  *device.offer.mutable_info() = DescribeCpu();
  device.offer.set_timer_version(kTimerVersion);
  for (const auto protocol : {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD, v1::TIMING_PROTOCOL_MODEL})
    device.offer.add_protocols(protocol);
  device.offer.set_unconfined(cpu_->unconfined());
  device.batch = std::max(kLeastBatch, kBatchesABuilder * builders);
  device.measure = [measurer = cpu_.get()](const std::vector<v1::Assignment>& assignments,
                                           const IsRevoked& is_revoked, const OnMeasured& done) {
    measurer->Measure(assignments, is_revoked, done);
  };
  device.measure_constants = [measurer = cpu_.get(), target](const std::function<bool()>& gives_up) {
    return measurer->MeasureConstants(target.threads, gives_up);
  };
  device.trouble = [] { return StoppedHolderOf(kCpuLock); };
  device.reading = [reader = std::make_shared<CpuReader>()] { return reader->Read(); };
  return device;
}

absl::StatusOr<WorkerDevice> LocalWorker::AddBuilds(const LocalWorkerOptions& options) {
  std::vector<std::string> names = options.build_targets, targets;
  if (names.empty()) names.assign(std::begin(kBuildTargets), std::end(kBuildTargets));
  for (const std::string& name : names) {
    MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(name));
    targets.push_back(PrintTarget(target));
  }
  const int builders = BuildersOf(options);
  build_link_ = std::make_unique<BuildLink>(link_.get(), targets, builders);
  const KernelBuilds::OnBuilt attach = [link = build_link_.get()](const v1::LeaseId& lease,
                                                                  std::string artifact) {
    link->Attach(lease, std::move(artifact));
  };
  MYCC_ASSIGN_OR_RETURN(builds_, KernelBuilds::Create(builders, confinement_, attach));
  WorkerDevice device;
  device.offer.set_device("build");
  device.lanes = std::min(builders + 1, kMostBuildLanes);
  device.batch = (builders + device.lanes - 1) / device.lanes;
  device.reports_at_once = true;
  device.measure = [builds = builds_.get()](const std::vector<v1::Assignment>& assignments,
                                            const IsRevoked& is_revoked, const OnMeasured& done) {
    builds->Build(assignments, is_revoked, done);
  };
  return device;
}

absl::StatusOr<WorkerDevice> LocalWorker::AddGpu(const std::string& name, const LocalWorkerOptions& options) {
  MYCC_ASSIGN_OR_RETURN(const int ordinal, ParseGpuName(name));
  MYCC_ASSIGN_OR_RETURN(const Gpu gpu, DescribeGpu(ordinal));
  const int builders = BuildersOf(options);
  if (gpu_builders_ == nullptr)
    gpu_builders_ = std::make_unique<BuildPool>(builders, BuildLimits(), confinement_);
  GpuMeasurerOptions measuring;
  measuring.confinement = confinement_;
  MYCC_ASSIGN_OR_RETURN(
      std::unique_ptr<GpuMeasurer> made,
      GpuMeasurer::Create(gpu, gpu_builders_.get(), measuring, options.log,
                          [this](const std::string& digest) { return worker_->FetchArtifact(digest); }));
  WorkerDevice device;
  device.offer.set_device(gpu.info.device());
  device.offer.set_target(PrintTarget(gpu.target));
  *device.offer.mutable_info() = gpu.info;
  device.offer.set_timer_version(kTimerVersion);
  for (const auto protocol : {v1::TIMING_PROTOCOL_WARM, v1::TIMING_PROTOCOL_COLD})
    device.offer.add_protocols(protocol);
  device.offer.set_unconfined(made->unconfined());
  device.batch = std::max(kLeastBatch, builders);
  device.lanes = kGpuLanes;
  device.reports_at_once = true;
  device.measure = [measurer = made.get()](const std::vector<v1::Assignment>& assignments,
                                           const IsRevoked& is_revoked, const OnMeasured& done) {
    measurer->Measure(assignments, is_revoked, done);
  };
  device.measure_constants = [measurer = made.get()](const std::function<bool()>& gives_up) {
    return measurer->MeasureConstants(gives_up);
  };
  device.trouble = [uuid = gpu.uuid] { return StoppedHolderOf(uuid); };
  device.reading = [reader = std::make_shared<GpuReader>(gpu.uuid, gpu.info.device())] {
    return reader->Read();
  };
  gpus_.push_back(std::move(made));
  return device;
}

absl::StatusOr<std::unique_ptr<LocalWorker>> LocalWorker::Create(const LocalWorkerOptions& options) {
  std::unique_ptr<LocalWorker> local(new LocalWorker());
  WorkerOptions worker;
  worker.name = options.name.empty() ? DefaultName() : options.name;
  worker.instance = NewInstance();
  if (!options.name.empty() && !options.is_alone) {
    MYCC_ASSIGN_OR_RETURN(NameLock name, NameLock::Take(options.server.address, options.name));
    worker.instance = name.instance();
    worker.replaces = name.replaces();
    local->name_.emplace(std::move(name));
  }
  worker.toolchain = CpuToolchain();
  worker.log = options.log;
  worker.role = options.role;
  MYCC_ASSIGN_OR_RETURN(local->link_, ConnectToServer(options.server));
  local->confinement_ = ConfinementOf(options);
  std::vector<WorkerDevice> devices;
  if (options.role == v1::WORKER_ROLE_BUILD) {
    MYCC_ASSIGN_OR_RETURN(devices.emplace_back(), local->AddBuilds(options));
    MYCC_ASSIGN_OR_RETURN(worker.toolchain, GpuToolchain());
    if (options.log && !local->builds_->unconfined().empty())
      options.log(absl::StrCat("warning: builds are not confined in: ", local->builds_->unconfined()));
    local->worker_ = std::make_unique<Worker>(worker, local->build_link_.get(), std::move(devices));
    return local;
  }
  for (const std::string& name : options.devices) {
    absl::StatusOr<WorkerDevice> device =
        name == "cpu" ? local->AddCpu(options) : local->AddGpu(name, options);
    MYCC_RETURN_IF_ERROR(device.status());
    device->offer.mutable_info()->set_worker(worker.name);
    if (options.measures_constants) {
      device->offer.mutable_constants()->set_version(kConstantsVersion);
    } else {
      device->measure_constants = nullptr;
    }
    if (options.log && !device->offer.unconfined().empty())
      options.log(absl::StrCat("warning: candidates of ", name,
                               " are not confined in: ", device->offer.unconfined()));
    devices.push_back(*std::move(device));
  }
  if (!local->gpus_.empty()) {
    local->gpu_builders_->WarmUp();
    MYCC_ASSIGN_OR_RETURN(worker.toolchain, GpuToolchain());
  }
  local->worker_ = std::make_unique<Worker>(worker, local->link_.get(), std::move(devices));
  return local;
}

absl::StatusOr<std::string> DeviceFor(const std::string& target_text) {
  MYCC_ASSIGN_OR_RETURN(const Target target, ParseTarget(target_text));
  std::string device = "cpu", why;
  Target here;
  if (target.kind == TargetKind::kCuda) {
    const absl::StatusOr<Gpu> gpu = DescribeGpu(0);
    if (gpu.ok()) here = gpu->target;
    why = std::string(gpu.status().message());
    device = "cuda:0";
  } else {
    here = DetectHostTarget();
  }
  if (why.empty() && IsMeasurableOn(target, here, &why)) return device;
  return absl::FailedPreconditionError(absl::StrCat("this machine cannot run ", target_text, ": ", why));
}

absl::StatusOr<v1::MeasureResult> LocalMeasurer::Measure(const v1::Assignment& assignment) {
  MYCC_ASSIGN_OR_RETURN(const std::string device, DeviceFor(assignment.target()));
  v1::MeasureResult measured;
  const IsRevoked never = [](const v1::LeaseId&) { return false; };
  const OnMeasured keep = [&measured](const v1::Assignment&, std::vector<v1::MeasureResult> results) {
    measured = std::move(results[0]);
  };
  if (device == "cpu") {
    if (cpu_ == nullptr) {
      CpuMeasurerOptions measuring;
      measuring.confinement.mode = ConfinementMode::kWherePossible;
      MYCC_ASSIGN_OR_RETURN(cpu_, CpuMeasurer::Create(measuring));
    }
    cpu_->Measure({assignment}, never, keep);
    return measured;
  }
  if (gpu_ == nullptr) {
    MYCC_ASSIGN_OR_RETURN(const Gpu gpu, DescribeGpu(0));
    GpuMeasurerOptions measuring;
    measuring.confinement.mode = ConfinementMode::kWherePossible;
    // A candidate, and its reference.
    gpu_builders_ = std::make_unique<BuildPool>(/*builders=*/2, BuildLimits(), measuring.confinement);
    MYCC_ASSIGN_OR_RETURN(gpu_, GpuMeasurer::Create(gpu, gpu_builders_.get(), measuring, nullptr));
  }
  gpu_->Measure({assignment}, never, keep);
  return measured;
}

}  // namespace mycc
