#include "tuner/cost/appraisals.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "codegen/passes/lower.h"
#include "codegen/schedule/schedule.h"
#include "tuner/search/search_ledger.h"

namespace mycc {

absl::StatusOr<Appraisal> Appraise(const Workload& canonical, const Target& target, const Trace& trace) {
  return Appraise(canonical, target, Machine(target), trace);
}

absl::StatusOr<Appraisal> Appraise(const Workload& canonical, const Target& target, const Machine& machine,
                                   const Trace& trace) {
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return AppraiseFunction(schedule.function(), machine);
}

absl::StatusOr<Appraisal> AppraiseFunction(const Function& scheduled, const Machine& machine) {
  const FunctionNest nest = AnalyzeNest(scheduled);
  MYCC_RETURN_IF_ERROR(CheckLimits(nest, machine));
  const Cost cost = EstimateCost(nest, machine);
  return Appraisal{FunctionFeatures(nest, cost, machine), cost.seconds};
}

std::string TextWithoutNames(const Function& function) {
  const std::string text = PrintFunction(function);
  const auto is_word = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
  static const auto& kBefore =
      *new absl::flat_hash_set<std::string>{"for", "parallel", "vector", "unroll", "block", "thread", "let"};
  absl::flat_hash_map<std::string, std::string> names;
  std::string plain, before;
  for (size_t i = 0; i < text.size();) {
    if (!is_word(text[i])) {
      plain.push_back(text[i++]);
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    std::string word = text.substr(i, end - i);
    i = end;
    // A loop's name comes behind the kind of the loop, before it is used.
    if (kBefore.contains(before)) names.try_emplace(word, absl::StrCat("%", names.size()));
    before = word;
    const auto found = names.find(word);
    plain += found == names.end() ? word : found->second;
  }
  return plain;
}

absl::StatusOr<std::string> CodeDigest(const Workload& canonical, const Target& target, const Trace& trace) {
  MYCC_ASSIGN_OR_RETURN(const Schedule schedule, Replay(canonical, target, trace));
  return CodeDigestOfFunction(schedule.function(), target);
}

absl::StatusOr<std::string> CodeDigestOfFunction(const Function& scheduled, const Target& target) {
  MYCC_ASSIGN_OR_RETURN(const LoweredFunction lowered, Lower(scheduled, target));
  std::string text = absl::StrCat(TextWithoutNames(lowered.kernel), TextWithoutNames(lowered.pack));
  for (const PackedBuffer& packed : lowered.packed)
    absl::StrAppend(&text, packed.buffer->name, " ", packed.param, " ", packed.offset, "\n");
  for (const WorkspaceBuffer& buffer : lowered.workspace)
    absl::StrAppend(&text, buffer.buffer->name, " ", buffer.per_thread, " ", buffer.offset, "\n");
  return Sha256Hex(text).substr(0, 32);
}

const absl::StatusOr<Appraisal>* AppraisalMemo::Find(const std::string& key) const {
  for (const Appraisals* half : {&young_, &old_}) {
    if (const auto found = half->find(key); found != half->end()) return &found->second;
  }
  return nullptr;
}

void AppraisalMemo::Put(const std::string& key, const absl::StatusOr<Appraisal>& appraisal) {
  if (2 * (young_.size() + 1) > capacity_) old_ = std::exchange(young_, {});
  young_.insert_or_assign(key, appraisal);
}

std::vector<absl::StatusOr<Appraisal>> Appraiser::Appraise(const std::string& task, const Workload& canonical,
                                                           const Target& target, const Machine& machine,
                                                           const std::vector<const Trace*>& traces) {
  std::vector<absl::StatusOr<Appraisal>> appraisals(traces.size(), absl::UnknownError("not appraised"));
  std::vector<std::string> keys;
  std::vector<SharedReplays::Asked> asked;
  std::vector<size_t> places;
  for (const Trace* trace : traces) keys.push_back(StepsKey(*trace));
  for (size_t i = 0; i < traces.size(); ++i) {
    if (const absl::StatusOr<Appraisal>* known = memo_.Find(absl::StrCat(task, "\n", keys[i]))) {
      appraisals[i] = *known;
    } else {
      asked.push_back({traces[i], keys[i]});
      places.push_back(i);
    }
  }
  replays_.Replay(task, canonical, target, asked, parallel_,
                  [&](size_t i, const absl::StatusOr<Function>& function) {
                    absl::StatusOr<Appraisal>& appraisal = appraisals[places[i]];
                    if (function.ok()) {
                      appraisal = AppraiseFunction(*function, machine);
                    } else {
                      appraisal = function.status();
                    }
                  });
  for (const size_t i : places) memo_.Put(absl::StrCat(task, "\n", keys[i]), appraisals[i]);
  return appraisals;
}

std::vector<absl::StatusOr<std::string>> Appraiser::CodesOf(const std::string& task,
                                                            const Workload& canonical, const Target& target,
                                                            const std::vector<const Trace*>& traces) {
  std::vector<std::string> keys;
  for (const Trace* trace : traces) keys.push_back(StepsKey(*trace));
  std::vector<SharedReplays::Asked> asked;
  for (size_t i = 0; i < traces.size(); ++i) asked.push_back({traces[i], keys[i]});
  std::vector<absl::StatusOr<Function>> functions(traces.size(), absl::UnknownError("not replayed"));
  replays_.Replay(task, canonical, target, asked, parallel_,
                  [&](size_t i, const absl::StatusOr<Function>& function) { functions[i] = function; });
  // Lowering takes many times as long as a replay. It shares no work, so each function is one call.
  std::vector<absl::StatusOr<std::string>> codes(traces.size(), absl::UnknownError("not lowered"));
  parallel_->Run(traces.size(), [&](size_t i) {
    if (functions[i].ok()) {
      codes[i] = CodeDigestOfFunction(*functions[i], target);
    } else {
      codes[i] = functions[i].status();
    }
  });
  return codes;
}

}  // namespace mycc
