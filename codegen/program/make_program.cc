// MakeProgram: workloads from groups of stages, one for those that are equal; the places of all tensors.
#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/sha256.h"
#include "codegen/graph/stage_reads.h"
#include "codegen/program/alternative_list.h"
#include "codegen/program/memory_plan.h"
#include "codegen/program/partition.h"
#include "codegen/program/program.h"
#include "codegen/program/regroupings.h"
#include "codegen/workload/canonical.h"

namespace mycc {
namespace {

// "conv_add_relu" from the origins "Conv a", "Add b", "Relu c".
std::string KernelName(const std::vector<std::string>& origins, const std::string& label) {
  constexpr size_t kMostWords = 3;
  std::vector<std::string> words;
  for (const std::string& origin : origins) {
    std::string word;
    for (char c : origin.substr(0, origin.find(' '))) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    const bool is_new = !word.empty() && (words.empty() || words.back() != word);
    if (is_new && words.size() < kMostWords) words.push_back(word);
  }
  if (words.empty()) words.push_back("kernel");
  return absl::StrCat("k", label, "_", absl::StrJoin(words, "_"));
}

class ProgramMaker {
 public:
  ProgramMaker(const Graph& graph, const StreamTest& streams, const std::vector<std::string>& chosen)
      : graph_(graph), uses_(graph), streams_(streams), chosen_(chosen.begin(), chosen.end()) {
    program_.name = graph.name;
    program_.inputs = graph.inputs;
    program_.outputs = graph.outputs;
  }

  ModelProgram Run() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      places_[graph_.inputs[i].tensor.get()] = {TensorPlace::kInput, static_cast<int64_t>(i)};
    PlaceOutputs();
    for (const KernelGroup& group : PartitionGraph(uses_, streams_)) AddGroup(group);
    for (const auto& [root, output] : copies_) AddCopy(root, output);
    PlaceArena();
    for (size_t i = 0; i < program_.launches.size(); ++i) {
      for (const Buffer& tensor : program_.launches[i].tensors)
        program_.launches[i].places.push_back(PlaceOf(tensor));
    }
    program_.alternatives = alternatives_.Take(numbers_);
    return std::move(program_);
  }

 private:
  Buffer RootOf(const Buffer& tensor) const { return uses_.RootOf(tensor); }
  const Constant* ConstantOf(const Buffer& tensor) const { return uses_.ConstantOf(tensor); }

  TensorPlace PlaceOf(Buffer tensor) const {
    int64_t offset = 0;
    while (const Reshape* reshape = uses_.ReshapeOf(tensor)) {
      offset += reshape->offset * DTypeBytes(tensor->dtype);
      tensor = reshape->source;
    }
    TensorPlace place = places_.at(tensor.get());
    MYCC_CHECK(offset == 0 || place.kind == TensorPlace::kArena) << tensor->name;
    if (place.kind == TensorPlace::kArena) place.at += offset;
    return place;
  }

  // A kernel writes a model's output directly; an input, a constant or a second output is copied.
  void PlaceOutputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Buffer root = RootOf(graph_.outputs[i].tensor);
      const bool is_made = uses_.IsMade(root) && ConstantOf(root) == nullptr;
      const TensorPlace place = {TensorPlace::kOutput, static_cast<int64_t>(i)};
      if (!is_made || !places_.emplace(root.get(), place).second) copies_.emplace_back(root, i);
    }
  }

  std::vector<std::string> OriginsOf(const KernelGroup& group) const {
    std::vector<std::string> origins;
    for (size_t i : group.nodes) {
      for (const std::string& origin : graph_.nodes[i].origins) {
        if (std::ranges::find(origins, origin) == origins.end()) origins.push_back(origin);
      }
    }
    return origins;
  }

  // A group of the default cut: one launch, or those of the alternative that is chosen.
  void AddGroup(const KernelGroup& group) {
    if (std::holds_alternative<LibraryCall>(graph_.nodes[group.nodes.back()].made_by)) return AddCall(group);
    const Workload by_default = uses_.WorkloadOf(group);
    const std::string text = CanonicalText(by_default);
    const size_t number = numbers_.emplace(text, numbers_.size()).first->second;
    const std::vector<Regrouping> regroupings = RegroupingsOf(uses_, group);
    const std::string hash = regroupings.empty() ? "" : Sha256Hex(text);
    const Regrouping* chosen = nullptr;
    size_t label_of_chosen = 0, next_label = 0;  // each part has its own, so that names tell them apart
    for (const Regrouping& regrouping : regroupings) {
      const std::string name = absl::StrCat(hash, ":", regrouping.kind);
      if (chosen_.count(name) > 0) {
        chosen = &regrouping;
        label_of_chosen = next_label;
      }
      Workload instead_of = by_default;
      instead_of.name = KernelName(OriginsOf(group), absl::StrCat(number));
      std::vector<Workload> parts;
      for (const KernelGroup& part : regrouping.parts)
        parts.push_back(NamedWorkload(part, PartLabel(number, next_label++)));
      alternatives_.Add(name, instead_of, std::move(parts));
    }
    if (chosen == nullptr) return AddLaunch(group, absl::StrCat(number));
    for (const KernelGroup& part : chosen->parts) AddLaunch(part, PartLabel(number, label_of_chosen++));
  }

  // "5a", "5b", ..., "5z", "5a1"
  static std::string PartLabel(size_t number, size_t part) {
    constexpr size_t kLetters = 26;
    return absl::StrCat(number, std::string(1, static_cast<char>('a' + part % kLetters)),
                        part < kLetters ? "" : absl::StrCat(part / kLetters));
  }

  void AddLaunch(const KernelGroup& group, const std::string& label) {
    KernelLaunch launch = LaunchOf(group);
    launch.kernel = KernelOf(NamedWorkload(group, label));
    program_.launches.push_back(std::move(launch));
  }

  void AddCall(const KernelGroup& group) {
    KernelLaunch launch = LaunchOf(group);
    launch.call = std::get<LibraryCall>(graph_.nodes[group.nodes.back()].made_by);
    // A library kernel may read one tensor as several arguments.
    launch.tensors = launch.call.inputs;
    launch.tensors.insert(launch.tensors.end(), group.outputs.begin(), group.outputs.end());
    program_.launches.push_back(std::move(launch));
  }

  KernelLaunch LaunchOf(const KernelGroup& group) {
    KernelLaunch launch;
    launch.tensors = group.inputs;
    launch.tensors.insert(launch.tensors.end(), group.outputs.begin(), group.outputs.end());
    launch.num_outputs = static_cast<int64_t>(group.outputs.size());
    launch.origins = OriginsOf(group);
    for (const Buffer& input : group.inputs) PlaceConstant(input);
    return launch;
  }

  void AddCopy(const Buffer& root, size_t output) {
    PlaceConstant(root);
    const Buffer copy = MakeBuffer(absl::StrCat(root->name, "_copy", output), root->dtype, root->shape);
    places_[copy.get()] = {TensorPlace::kOutput, static_cast<int64_t>(output)};
    Stage stage;
    stage.output = copy;
    std::vector<Expr> indices;
    for (int64_t extent : root->shape) {
      stage.axes.push_back(MakeVar(absl::StrCat("a", indices.size()), extent));
      indices.push_back(VarRef(stage.axes.back()));
    }
    stage.value = Load(root, std::move(indices));
    Workload workload{"copy", {{root, ConstantOf(root) != nullptr}}, {copy}, {std::move(stage)}};
    KernelLaunch launch;
    const size_t number = numbers_.emplace(CanonicalText(workload), numbers_.size()).first->second;
    workload.name = KernelName({"copy"}, absl::StrCat(number));
    launch.kernel = KernelOf(std::move(workload));
    launch.tensors = {root, copy};
    program_.launches.push_back(std::move(launch));
  }

  void PlaceConstant(const Buffer& tensor) {
    const Constant* constant = ConstantOf(RootOf(tensor));
    if (constant == nullptr) return;
    const auto [at, is_new] =
        places_.emplace(RootOf(tensor).get(),
                        TensorPlace{TensorPlace::kConstant, static_cast<int64_t>(program_.constants.size())});
    if (is_new) program_.constants.push_back(*constant);
  }

  Workload NamedWorkload(const KernelGroup& group, const std::string& label) const {
    Workload workload = uses_.WorkloadOf(group);
    workload.name = KernelName(OriginsOf(group), label);
    return workload;
  }

  // The number of a workload's kernel: an earlier one where the computation is the same.
  int64_t KernelOf(Workload workload) {
    const auto [known, is_new] =
        kernels_.emplace(CanonicalText(workload), static_cast<int64_t>(program_.kernels.size()));
    if (is_new) {
      program_.kernels.push_back(std::move(workload));
    } else {
      ++program_.kernels[known->second].count;
    }
    return known->second;
  }

  void PlaceArena() {
    std::unordered_map<const BufferNode*, size_t> last_steps;
    for (size_t step = 0; step < program_.launches.size(); ++step) {
      for (const Buffer& tensor : program_.launches[step].tensors) last_steps[RootOf(tensor).get()] = step;
    }
    std::vector<Lifetime> lifetimes;  // of places, one for each tensor and those that overwrite it
    std::unordered_map<const BufferNode*, size_t> numbers;
    for (size_t step = 0; step < program_.launches.size(); ++step) {
      const KernelLaunch& launch = program_.launches[step];
      for (const Buffer& tensor : launch.tensors) {
        const Buffer root = RootOf(tensor);
        if (places_.count(root.get())) continue;
        auto at = numbers.find(root.get());
        if (at == numbers.end()) {
          program_.tensor_bytes += root->bytes();
          const Buffer overwritten = OverwrittenBy(launch, root, step, last_steps);
          const size_t number = overwritten == nullptr ? lifetimes.size() : numbers.at(overwritten.get());
          if (overwritten == nullptr) lifetimes.push_back({root->bytes(), static_cast<int64_t>(step), 0});
          at = numbers.emplace(root.get(), number).first;
        }
        lifetimes[at->second].last = static_cast<int64_t>(step);
      }
    }
    const MemoryPlan plan = PlanMemory(lifetimes);
    program_.arena_bytes = plan.peak_bytes;
    for (const auto& [root, number] : numbers) places_[root] = {TensorPlace::kArena, plan.offsets[number]};
  }

  // An input of the launch in whose place its only output can be written; null without one. The launch is the
  // last to read it, and each element of the output depends on the same element of the input alone. Kernels
  // take their arguments for apart; the code that they become reads an element before it writes it, once, in
  // one thread.
  Buffer OverwrittenBy(const KernelLaunch& launch, const Buffer& output, size_t step,
                       const std::unordered_map<const BufferNode*, size_t>& last_steps) const {
    if (launch.kernel < 0 || launch.num_outputs != 1 || launch.tensors.back() != output) return nullptr;
    const Workload& workload = program_.kernels[launch.kernel];
    if (!IsElementwise(workload)) return nullptr;
    for (size_t i = 0; i + 1 < launch.tensors.size(); ++i) {
      const Buffer& tensor = launch.tensors[i];
      const Buffer root = RootOf(tensor);
      const bool is_free = places_.count(root.get()) == 0 && last_steps.at(root.get()) == step;
      const bool is_alike =
          tensor->dtype == output->dtype && workload.inputs[i].tensor->shape == workload.outputs[0]->shape;
      if (!is_free || !is_alike || root->bytes() != tensor->bytes()) continue;
      const auto readers =
          std::ranges::count_if(launch.tensors, [&](const Buffer& t) { return RootOf(t) == root; });
      if (readers == 1) return root;
    }
    return nullptr;
  }

  // Whether all stages compute elements of one shape, and read tensors of that shape at their own axes.
  static bool IsElementwise(const Workload& workload) {
    return std::ranges::all_of(workload.stages, [&](const Stage& stage) {
      if (stage.reduce != ReduceOp::kNone || stage.output->shape != workload.outputs[0]->shape) return false;
      const std::vector<Buffer> reads = TensorsIn(stage.value);
      return std::ranges::all_of(reads, [&](const Buffer& read) {
        return read->shape != stage.output->shape || ReadsElementwise(stage, read);
      });
    });
  }

  const Graph& graph_;
  const GraphUses uses_;
  const StreamTest& streams_;
  const std::unordered_set<std::string> chosen_;
  std::unordered_map<std::string, size_t> numbers_;  // of the default cut's kernels, by canonical text
  AlternativeList alternatives_;
  std::unordered_map<const BufferNode*, TensorPlace> places_;  // of roots
  std::unordered_map<std::string, int64_t> kernels_;           // by canonical text
  std::vector<std::pair<Buffer, size_t>> copies_;              // to model outputs
  ModelProgram program_;
};

}  // namespace

ModelProgram MakeProgram(const Graph& graph, const std::vector<std::string>& chosen,
                         const StreamTest& streams) {
  return ProgramMaker(graph, streams, chosen).Run();
}

}  // namespace mycc
