#include "codegen/workload/stage_links.h"

#include <algorithm>
#include <utility>

namespace mycc {
namespace {

// The stages, and all that can be reached from them along the links.
std::set<int> ReachedFrom(std::set<int> stages, const std::vector<std::vector<int>>& links) {
  std::vector<int> open(stages.begin(), stages.end());
  while (!open.empty()) {
    const int s = open.back();
    open.pop_back();
    for (const int next : links[s]) {
      if (stages.insert(next).second) open.push_back(next);
    }
  }
  return stages;
}

template <typename IsOwnFn>
bool AllReads(const Stage& stage, const Buffer& tensor, const IsOwnFn& is_own) {
  const std::vector<const ExprNode*> loads = LoadsOf(stage.value);
  return std::ranges::all_of(loads,
                             [&](const ExprNode* load) { return load->buffer != tensor || is_own(*load); });
}

}  // namespace

StageLinks::StageLinks(const Workload& workload)
    : producers_(workload.stages.size()), readers_(workload.stages.size()) {
  const int count = static_cast<int>(workload.stages.size());
  for (int s = 0; s < count; ++s) producer_of_[workload.stages[s].output.get()] = s;
  is_output_.resize(count, false);
  for (const Buffer& output : workload.outputs) {
    if (const int s = ProducerOf(output.get()); s >= 0) is_output_[s] = true;
  }
  for (int s = 0; s < count; ++s) {
    for (const ExprNode* load : LoadsOf(workload.stages[s].value)) {
      const int producer = ProducerOf(load->buffer.get());
      std::vector<int>& producers = producers_[s];
      if (producer < 0 || std::ranges::count(producers, producer) > 0) continue;
      producers.push_back(producer);
      readers_[producer].push_back(s);
    }
  }
}

int StageLinks::ProducerOf(const BufferNode* tensor) const {
  const auto found = producer_of_.find(tensor);
  return found == producer_of_.end() ? -1 : found->second;
}

std::set<int> StageLinks::WithProducers(std::set<int> stages) const {
  return ReachedFrom(std::move(stages), producers_);
}

std::set<int> StageLinks::WithReaders(std::set<int> stages) const {
  return ReachedFrom(std::move(stages), readers_);
}

std::vector<const ExprNode*> LoadsOf(const Expr& expr) {
  std::vector<const ExprNode*> loads;
  Visit(expr, [&](const ExprNode& node) {
    if (node.op == Op::kLoad) loads.push_back(&node);
  });
  return loads;
}

bool IsAt(const ExprNode& load, const std::vector<Var>& axes) {
  return std::equal(
      load.args.begin(), load.args.end(), axes.begin(), axes.end(),
      [](const Expr& index, const Var& axis) { return index->op == Op::kVar && index->var == axis; });
}

bool IsAtOwnPosition(const ExprNode& load, const Stage& stage) {
  auto axis = stage.axes.begin();
  const auto skip_single = [&] {
    while (axis != stage.axes.end() && (*axis)->extent == 1) ++axis;
  };
  for (size_t d = 0; d < load.args.size(); ++d) {
    const int64_t extent = load.buffer->shape[d];
    if (extent == 1) continue;
    skip_single();
    const bool is_own = axis != stage.axes.end() && (*axis)->extent == extent &&
                        load.args[d]->op == Op::kVar && load.args[d]->var == *axis;
    if (!is_own) return false;
    ++axis;
  }
  skip_single();
  return axis == stage.axes.end();
}

bool ReadsAtOwnAxes(const Stage& stage, const Buffer& tensor) {
  return AllReads(stage, tensor, [&](const ExprNode& load) { return IsAt(load, stage.axes); });
}

bool ReadsAtOwnPosition(const Stage& stage, const Buffer& tensor) {
  return AllReads(stage, tensor, [&](const ExprNode& load) { return IsAtOwnPosition(load, stage); });
}

}  // namespace mycc
