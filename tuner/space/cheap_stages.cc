#include "tuner/space/cheap_stages.h"

#include <algorithm>
#include <map>

#include "tuner/space/stage_class.h"

namespace mycc {
namespace {

// The nodes of an expression as a function of what stands in place of its variables.
struct Size {
  double fixed = 0;
  std::map<const VarNode*, double> uses;  // how often each stands there

  void Add(const Size& other, double times) {
    fixed += times * other.fixed;
    for (const auto& [var, count] : other.uses) uses[var] += times * count;
  }
  double nodes() const {
    double sum = fixed;
    for (const auto& [var, count] : uses) sum += count;
    return sum;
  }
};

class Inlining {
 public:
  Inlining(const Anatomy& anatomy, const Target& target)
      : anatomy_(anatomy), on_gpu_(target.kind == TargetKind::kCuda) {
    const int n = anatomy.num_stages();
    for (int s = 0; s < n; ++s) class_.push_back(Classify(anatomy, s, target));
    inlined_.resize(n, false);
    follows_tiled_.resize(n, false);
    for (int s = 0; s < n; ++s) {  // producers come before their readers
      sizes_.push_back(SizeOf(anatomy.stage(s).value));
      follows_tiled_[s] = FollowsTiled(s);
      inlined_[s] = IsCheap(s);
      inlined_[s] = inlined_[s] && LeavesReadersSmall(s);  // which asks with it inlined
    }
  }
  std::vector<int> Find() const {
    std::vector<int> stages;
    for (int s = 0; s < anatomy_.num_stages(); ++s) {
      if (inlined_[s]) stages.push_back(s);
    }
    return stages;
  }

 private:
  bool IsCheap(int s) const {
    const StageInfo& info = anatomy_.info(s);
    if (class_[s] != StageClass::kElementwise || info.is_output || info.readers.empty() || follows_tiled_[s])
      return false;
    const bool cheap = info.ops_per_element <= 4;
    return std::ranges::all_of(info.readers, [&](int reader) {
      if (class_[reader] == StageClass::kContraction || class_[reader] == StageClass::kTile) return false;
      if (on_gpu_ && IsCheapForGpu(s, reader)) return true;
      return cheap || (info.readers.size() == 1 && anatomy_.ReadsElementwise(reader, s));
    });
  }
  // Arithmetic is cheaper than another pass over memory, and the same arithmetic of one thread is done once.
  bool IsCheapForGpu(int s, int reader) const {
    constexpr double kMostOps = 64;
    return class_[reader] == StageClass::kElementwise && anatomy_.info(s).ops_per_element <= kMostOps &&
           ReadsAtOwnPosition(anatomy_.stage(reader), anatomy_.stage(s).output);
  }
  // An epilogue of a contraction or tile: left for its rule.
  bool FollowsTiled(int s) const {
    return std::ranges::any_of(anatomy_.info(s).producers, [&](int producer) {
      if (class_[producer] == StageClass::kContraction || class_[producer] == StageClass::kTile) return true;
      return class_[producer] == StageClass::kElementwise && !inlined_[producer] && follows_tiled_[producer];
    });
  }

  // REQUIRES: inlined_[s], for the readers to be what they then are.
  bool LeavesReadersSmall(int s) const {
    const std::vector<int>& readers = anatomy_.info(s).readers;
    return std::ranges::all_of(readers, [&](int reader) {
      return SizeOf(anatomy_.stage(reader).value).nodes() <= kMostInlinedNodes;
    });
  }
  // With the stages inlined that are known to be.
  Size SizeOf(const Expr& expr) const {
    Size size;
    if (expr->op == Op::kVar) {
      size.uses[expr->var.get()] = 1;
      return size;
    }
    const int producer = expr->op == Op::kLoad ? anatomy_.ProducerOf(expr->buffer.get()) : -1;
    if (producer < 0 || !inlined_[producer]) {
      size.fixed = 1;
      for (const Expr& arg : expr->args) size.Add(SizeOf(arg), 1);
      return size;
    }
    const std::vector<Var>& axes = anatomy_.stage(producer).axes;
    size.fixed = sizes_[producer].fixed;
    for (size_t a = 0; a < axes.size(); ++a) {
      const auto used = sizes_[producer].uses.find(axes[a].get());
      if (used != sizes_[producer].uses.end()) size.Add(SizeOf(expr->args[a]), used->second);
    }
    return size;
  }

  const Anatomy& anatomy_;
  const bool on_gpu_;
  std::vector<StageClass> class_;
  std::vector<Size> sizes_;  // of what a stage computes
  std::vector<bool> inlined_, follows_tiled_;
};

}  // namespace

std::vector<int> CheapStages(const Anatomy& anatomy, const Target& target) {
  return Inlining(anatomy, target).Find();
}

Workload WithoutStages(const Workload& workload, const std::vector<int>& stages) {
  Workload result = workload;
  for (int s : stages) {
    const Stage gone = result.stages[s];
    for (Stage& stage : result.stages) {
      stage.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
        if (e->op != Op::kLoad || e->buffer != gone.output) return nullptr;
        VarMap axes;
        for (size_t a = 0; a < gone.axes.size(); ++a) axes[gone.axes[a].get()] = e->args[a];
        return Substitute(gone.value, axes);
      });
    }
  }
  for (auto s = stages.rbegin(); s != stages.rend(); ++s) result.stages.erase(result.stages.begin() + *s);
  return result;
}

}  // namespace mycc
