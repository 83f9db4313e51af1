#include "mycc_tune/model_commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/plural.h"
#include "base/status.h"
#include "db/model_store.h"
#include "db/tuning_log.h"
#include "proto/utf8.h"
#include "tuner/cost/learner.h"
#include "tuner/cost/model_file.h"
#include "tuner/cost/model_kind.h"

namespace mycc {
namespace {

// A model of the log, as far as this build can read it.
struct ShownModel {
  StoredModel stored;
  absl::Status usable;
  int samples = 0;
  uint64_t unseen = 0;  // candidates that were measured after the training
  ModelMetrics metrics;
  std::vector<std::pair<FeatureSlot, double>> features;  // and their shares of the gain, the greatest first
};

ShownModel Look(StoredModel stored, int features) {
  ShownModel shown{std::move(stored), absl::OkStatus(), 0, 0, {}, {}};
  Learner learner;
  shown.usable = learner.Load(shown.stored.bytes);
  if (!shown.usable.ok()) return shown;
  shown.samples = learner.num_samples();
  shown.unseen = learner.num_unseen();
  shown.metrics = learner.earlier().metrics();
  const absl::StatusOr<std::vector<double>> gains = learner.earlier().Gains();
  if (!gains.ok()) return shown;
  for (size_t i = 0; i < gains->size(); ++i) {
    if ((*gains)[i] > 0) shown.features.emplace_back(FunctionFeatureSlots()[i], (*gains)[i]);
  }
  std::ranges::stable_sort(shown.features, [](const auto& a, const auto& b) { return a.second > b.second; });
  shown.features.resize(std::min(shown.features.size(), static_cast<size_t>(features)));
  return shown;
}

// Says so where a model is worth nothing.
std::string ExportRemark(const StoredModel& stored) {
  const ShownModel model = Look(stored, 0);
  if (!model.usable.ok())
    return absl::StrCat("; this build cannot use it: ", std::string(model.usable.message()));
  return model.metrics.trees > 0 ? "" : "; it has no trees, so it knows no more than the analytic model";
}

nlohmann::json ToJson(const OrderMetrics& order) {
  return {{"rows", order.rows},
          {"pairwise_accuracy", order.pairwise_accuracy},
          {"best_tenth_found", order.recall_at_k},
          {"log_error", order.rmse}};
}

nlohmann::json ToJson(const ShownModel& model) {
  nlohmann::json json = {{"kind", model.stored.kind},
                         {"id", model.stored.id},
                         {"info", model.stored.info},
                         {"created_unix_micros", model.stored.created_unix_micros},
                         {"bytes", model.stored.bytes.size()}};
  if (!model.usable.ok()) {
    json["unusable"] = std::string(model.usable.message());
    return json;
  }
  json["samples_kept"] = model.samples;
  json["samples_since_training"] = model.unseen;
  json["samples"] = model.metrics.samples;
  json["failures"] = model.metrics.failures;
  json["tasks"] = model.metrics.groups;
  json["trees"] = model.metrics.trees;
  json["held_out"] = model.metrics.held_out_tasks ? "tasks" : "samples";
  json["corrected"] = ToJson(model.metrics.corrected);
  json["analytic"] = ToJson(model.metrics.analytic);
  json["features"] = nlohmann::json::array();
  for (const auto& [slot, share] : model.features)
    json["features"].push_back({{"name", slot.name}, {"meaning", slot.meaning}, {"share_of_gain", share}});
  return json;
}

void WriteText(const ShownModel& model, std::ostream& out) {
  const absl::Time created = absl::FromUnixMicros(model.stored.created_unix_micros);
  out << absl::StrFormat("%s  %s  %.1f MB  %s  %s\n", model.stored.kind, model.stored.id.substr(0, 12),
                         static_cast<double>(model.stored.bytes.size()) / 1e6,
                         absl::FormatTime("%Y-%m-%d %H:%M:%SZ", created, absl::UTCTimeZone()),
                         Printable(model.stored.info));
  if (!model.usable.ok()) {
    out << "  this build cannot use it: " << model.usable.message() << "\n";
    return;
  }
  const ModelMetrics& metrics = model.metrics;
  out << absl::StrFormat(
      "  %d valid and %d failed candidates%s%s; %d kept for later jobs\n", metrics.samples, metrics.failures,
      metrics.groups > 0 ? absl::StrCat(" of ", HowMany(metrics.groups, "task")) : "",
      model.unseen > 0 ? absl::StrCat("; ", model.unseen, " measured since the training") : "",
      model.samples);
  if (metrics.corrected.rows == 0) {
    out << "  too few candidates to learn from; expected at least " << ModelConfig().min_samples
        << " valid ones\n";
    return;
  }
  out << absl::StrFormat(
      "  %s; on %s of held-out %s: pairs in order %.1f %% (analytic %.1f %%), fastest tenth "
      "found %.1f %% (%.1f %%)\n",
      HowMany(metrics.trees, "tree"), HowMany(metrics.corrected.rows, "candidate"),
      metrics.held_out_tasks ? "tasks" : "samples", 100 * metrics.corrected.pairwise_accuracy,
      100 * metrics.analytic.pairwise_accuracy, 100 * metrics.corrected.recall_at_k,
      100 * metrics.analytic.recall_at_k);
  for (const auto& [slot, share] : model.features)
    out << absl::StrFormat("  %5.1f %%  %s: %s\n", 100 * share, slot.name, slot.meaning);
}

// The only kind, or the one that was asked for.
absl::StatusOr<StoredModel> FindModel(const ModelStore& store, const ModelExportArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredModel> models, store.ListNewest());
  std::vector<std::string> kinds;
  for (const StoredModel& model : models) kinds.push_back(model.kind);
  if (kinds.empty()) {
    return absl::NotFoundError(
        absl::StrCat(args.log, ": no cost model; a job of `mycc-tune tune` leaves one"));
  }
  if (args.kind.empty() && kinds.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(args.log, ": ", kinds.size(),
                                                   " cost models; expected --kind with one of ",
                                                   absl::StrJoin(kinds, ", ")));
  }
  const auto found = args.kind.empty() ? kinds.begin() : std::ranges::find(kinds, args.kind);
  if (found == kinds.end()) {
    return absl::NotFoundError(absl::StrCat(args.log, ": no cost model of kind ", args.kind,
                                            "; expected one of ", absl::StrJoin(kinds, ", ")));
  }
  return store.Load(models[static_cast<size_t>(found - kinds.begin())].id);
}

absl::Status CheckImported(const ModelFile& file) {
  if (NearestKinds(file.kind, {file.kind}).empty())
    return absl::InvalidArgumentError(
        absl::StrCat("a cost model of kind ", file.kind, ", which this build does not know"));
  if (IsGpuKind(file.kind) != (file.device == TargetKind::kCuda))
    return absl::InvalidArgumentError(
        absl::StrCat("a cost model of kind ", file.kind, " for the other sort of device"));
  return Learner().Load(file.bytes);
}

}  // namespace

absl::Status ModelShowCommand(const ModelShowArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  const ModelStore store(log.get());
  MYCC_ASSIGN_OR_RETURN(const std::vector<StoredModel> models, store.ListNewest());
  if (models.empty())
    return absl::NotFoundError(
        absl::StrCat(args.log, ": no cost model; a job of `mycc-tune tune` leaves one"));
  nlohmann::json all = nlohmann::json::array();
  for (const StoredModel& model : models) {
    MYCC_ASSIGN_OR_RETURN(StoredModel stored, store.Load(model.id));
    const ShownModel shown = Look(std::move(stored), args.features);
    if (args.json) {
      all.push_back(ToJson(shown));
    } else {
      WriteText(shown, out);
    }
  }
  if (args.json) out << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return absl::OkStatus();
}

absl::Status ModelExportCommand(const ModelExportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kRead));
  MYCC_ASSIGN_OR_RETURN(const StoredModel model, FindModel(ModelStore(log.get()), args));
  const std::string text =
      PrintModelFile({IsGpuKind(model.kind) ? TargetKind::kCuda : TargetKind::kCpu, model.kind, model.bytes});
  if (IsStandardOutput(args.output)) {
    out << text;
    return absl::OkStatus();
  }
  MYCC_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(args.output));
  file.stream() << text;
  MYCC_RETURN_IF_ERROR(file.CloseDurably());
  MYCC_RETURN_IF_ERROR(file.Commit());
  out << args.output << ": the model " << model.kind << " of " << args.log << ExportRemark(model) << "\n";
  return absl::OkStatus();
}

absl::Status ModelImportCommand(const ModelImportArgs& args, std::ostream& out) {
  MYCC_ASSIGN_OR_RETURN(const std::string contents, ReadFile(args.input, kMostSourceBytes));
  const auto in_file = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(args.input, ": ", status.message()));
  };
  const absl::StatusOr<ModelFile> file = ParseModelFile(contents);
  if (!file.ok()) return in_file(file.status());
  if (const absl::Status fit = CheckImported(*file); !fit.ok()) return in_file(fit);
  MYCC_ASSIGN_OR_RETURN(const auto log, TuningLog::Open(args.log, OpenMode::kCreate));
  ModelStore store(log.get());
  MYCC_ASSIGN_OR_RETURN(const std::string id,
                        store.Save(file->kind, absl::StrCat("from ", args.input), file->bytes));
  MYCC_ASSIGN_OR_RETURN(const StoredModel known, store.Load(id));
  if (known.kind != file->kind) {
    return in_file(absl::AlreadyExistsError(absl::StrCat(args.log, " has this model as ", known.kind,
                                                         "; expected another one for ", file->kind)));
  }
  out << args.input << ": the model " << file->kind << " is in " << args.log << "\n";
  return log->Close();
}

}  // namespace mycc
