#include "codegen/program/normal_form.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/str_cat.h"

namespace mycc {
namespace {

using BufferMap = std::unordered_map<const BufferNode*, Buffer>;

// Whether a reduction reads at sums or quotients of axes, as convolutions and pooling do.
bool HasWindows(const Workload& workload) {
  bool found = false;
  for (const Stage& stage : workload.stages) {
    Visit(stage.value, [&](const ExprNode& e) {
      if (e.op != Op::kLoad) return;
      for (const Expr& index : e.args) {
        const bool is_plain = index->op == Op::kVar || index->op == Op::kConst;
        found = found || (stage.reduce != ReduceOp::kNone && !is_plain);
      }
    });
  }
  return found;
}

// Replaces the tensors of a workload, and what the stages say of their dimensions.
template <typename ShapeOf, typename RewriteStage>
Workload Reshaped(Workload workload, const ShapeOf& shape_of, const RewriteStage& rewrite) {
  BufferMap buffers;
  const auto replace = [&](Buffer* buffer) {
    Buffer& known = buffers[buffer->get()];
    if (known == nullptr) {
      const std::vector<int64_t> shape = shape_of(*buffer);
      known = shape == (*buffer)->shape ? *buffer : MakeBuffer((*buffer)->name, (*buffer)->dtype, shape);
    }
    *buffer = known;
  };
  for (Argument& input : workload.inputs) replace(&input.tensor);
  for (Stage& stage : workload.stages) {
    const Buffer old = stage.output;
    replace(&stage.output);
    rewrite(&stage, old, buffers);
  }
  for (Buffer& output : workload.outputs) replace(&output);
  return workload;
}

// The dimensions of a tensor that stay: those of more than one element, or the last one.
std::vector<size_t> LongDims(const std::vector<int64_t>& shape) {
  std::vector<size_t> dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) dims.push_back(i);
  }
  if (dims.empty() && !shape.empty()) dims.push_back(shape.size() - 1);
  return dims;
}

template <typename T>
std::vector<T> Picked(const std::vector<T>& values, const std::vector<size_t>& numbers) {
  std::vector<T> picked;
  picked.reserve(numbers.size());
  for (size_t i : numbers) picked.push_back(values[i]);
  return picked;
}

// A dimension of one element is read at the stage's own axis of one element, as by an element-wise stage, and
// constants have none.
Workload WithOwnAxesAtUnits(Workload workload) {
  BufferSet constants;
  for (const Argument& input : workload.inputs) {
    if (input.is_const) constants.insert(input.tensor.get());
  }
  const auto dims_of = [&](const Buffer& b) {
    std::vector<size_t> all(b->shape.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return constants.count(b.get()) > 0 ? LongDims(b->shape) : all;
  };
  workload = Reshaped(
      std::move(workload), [&](const Buffer& b) { return Picked(b->shape, dims_of(b)); },
      [&](Stage* stage, const Buffer&, const BufferMap& buffers) {
        stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
          if (e->op != Op::kLoad) return nullptr;
          return Load(buffers.at(e->buffer.get()), Picked(e->args, dims_of(e->buffer)));
        });
      });
  for (Stage& stage : workload.stages) {
    stage.value = Rewrite(stage.value, [&](const Expr& e) -> Expr {
      if (e->op != Op::kLoad || e->args.size() != stage.axes.size()) return nullptr;
      std::vector<Expr> indices = e->args;
      for (size_t i = 0; i < indices.size(); ++i) {
        if (stage.axes[i]->extent == 1 && e->buffer->shape[i] == 1 && IsConstInt(indices[i], int64_t{0}))
          indices[i] = VarRef(stage.axes[i]);
      }
      return Load(e->buffer, std::move(indices));
    });
  }
  return workload;
}

// Dimensions of tensors and axes of stages, in classes: those that plain reads make one.
class DimensionClasses {
 public:
  explicit DimensionClasses(const Workload& workload) : workload_(workload) {
    for (const Argument& input : workload.inputs) buffers_.push_back(input.tensor);
    for (const Stage& stage : workload.stages) {
      buffers_.push_back(stage.output);
      for (size_t i = 0; i < stage.axes.size(); ++i) Join(DimOf(stage.output, i), stage.axes[i].get());
      AddReads(stage.value);
    }
    for (const Stage& stage : workload.stages) {
      std::vector<Var> axes = stage.axes;
      axes.insert(axes.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
      BlockRepeated(axes);
    }
  }

  // The class of a dimension, or of an axis.
  const void* Of(const Buffer& buffer, size_t dim) const { return Root(DimOf(buffer, dim)); }
  const void* Of(const Var& axis) const { return Root(axis.get()); }

  // Two classes: each dimension of the first is followed by one of the second, everywhere.
  std::optional<std::pair<const void*, const void*>> Neighbours() const {
    std::map<const void*, const void*> next, previous;
    std::unordered_set<const void*> apart;
    const auto see = [&](const void* first, const void* second) {
      const auto follows = next.emplace(first, second), precedes = previous.emplace(second, first);
      if (follows.first->second != second) apart.insert(first);
      if (precedes.first->second != first) apart.insert({precedes.first->second, first});
    };
    const auto see_all = [&](const std::vector<const void*>& classes) {
      for (size_t i = 0; i <= classes.size(); ++i)
        see(i == 0 ? nullptr : classes[i - 1], i == classes.size() ? nullptr : classes[i]);
    };
    for (const Buffer& buffer : buffers_) {
      std::vector<const void*> classes;
      for (size_t i = 0; i < buffer->shape.size(); ++i) classes.push_back(Of(buffer, i));
      see_all(classes);
    }
    for (const Stage& stage : workload_.stages) {
      std::vector<const void*> classes;
      for (const Var& axis : stage.reduce_axes) classes.push_back(Of(axis));
      if (!classes.empty()) see_all(classes);
    }
    for (const auto& [first, second] : next) {
      if (first == nullptr || second == nullptr || first == second || apart.count(first)) continue;
      if (!blocked_.count(first) && !blocked_.count(second)) return std::pair(first, second);
    }
    return std::nullopt;
  }

 private:
  const void* DimOf(const Buffer& buffer, size_t dim) const {
    return dims_.try_emplace({buffer.get(), dim}, std::make_shared<char>()).first->second.get();
  }

  const void* Root(const void* node) const {
    for (auto at = parent_.find(node); at != parent_.end(); at = parent_.find(node)) node = at->second;
    return node;
  }

  void Join(const void* a, const void* b) {
    const void *x = Root(a), *y = Root(b);
    if (x == y) return;
    parent_[x] = y;
    if (blocked_.count(x)) blocked_.insert(y);
  }

  void Block(const void* node) { blocked_.insert(Root(node)); }

  // A dimension that is read at anything but a plain axis of its own extent is blocked, and so is an axis
  // that is used for anything but plain reads.
  void AddReads(const Expr& e) {
    if (e->op == Op::kVar) Block(e->var.get());
    for (size_t i = 0; i < e->args.size(); ++i) {
      const Expr& arg = e->args[i];
      if (e->op != Op::kLoad) {
        AddReads(arg);
        continue;
      }
      const bool is_plain = arg->op == Op::kVar && arg->var->extent == e->buffer->shape[i];
      if (is_plain) {
        Join(DimOf(e->buffer, i), arg->var.get());
      } else {
        Block(DimOf(e->buffer, i));
        AddReads(arg);
      }
    }
  }

  // Two axes of a stage in one class: which of them a dimension means is not known.
  void BlockRepeated(const std::vector<Var>& axes) {
    std::unordered_set<const void*> seen;
    for (const Var& axis : axes) {
      if (!seen.insert(Of(axis)).second) Block(axis.get());
    }
  }

  const Workload& workload_;
  std::vector<Buffer> buffers_;
  mutable std::map<std::pair<const BufferNode*, size_t>, std::shared_ptr<char>> dims_;
  std::unordered_map<const void*, const void*> parent_;
  std::unordered_set<const void*> blocked_;
};

// The workload with the dimensions of two classes as one.
class PairMerger {
 public:
  PairMerger(const DimensionClasses& classes, const void* first) : classes_(classes), first_(first) {}

  Workload Run(Workload workload) const {
    return Reshaped(
        std::move(workload), [&](const Buffer& b) { return ShapeOf(b); },
        [&](Stage* stage, const Buffer&, const BufferMap& buffers) {
          std::unordered_map<const VarNode*, Var> merged;
          stage->axes = Merged(stage->axes, &merged);
          stage->reduce_axes = Merged(stage->reduce_axes, &merged);
          stage->value = Rewrite(stage->value, [&](const Expr& e) -> Expr {
            if (e->op != Op::kLoad) return nullptr;
            std::vector<Expr> indices;
            for (size_t i = 0; i < e->args.size(); ++i) {
              const bool is_pair = classes_.Of(e->buffer, i) == first_;
              indices.push_back(is_pair ? VarRef(merged.at(e->args[i]->var.get())) : e->args[i]);
              if (is_pair) ++i;
            }
            return Load(buffers.at(e->buffer.get()), std::move(indices));
          });
        });
  }

 private:
  std::vector<int64_t> ShapeOf(const Buffer& buffer) const {
    std::vector<int64_t> shape;
    for (size_t i = 0; i < buffer->shape.size(); ++i) {
      const bool is_pair = classes_.Of(buffer, i) == first_;
      shape.push_back(is_pair ? buffer->shape[i] * buffer->shape[i + 1] : buffer->shape[i]);
      if (is_pair) ++i;
    }
    return shape;
  }

  std::vector<Var> Merged(const std::vector<Var>& axes,
                          std::unordered_map<const VarNode*, Var>* merged) const {
    std::vector<Var> result;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (classes_.Of(axes[i]) != first_) {
        result.push_back(axes[i]);
        continue;
      }
      result.push_back(MakeVar(axes[i]->name, axes[i]->extent * axes[i + 1]->extent));
      (*merged)[axes[i].get()] = result.back();
      ++i;
    }
    return result;
  }

  const DimensionClasses& classes_;
  const void* const first_;
};

}  // namespace

Workload WithoutUnits(Workload workload) {
  return Reshaped(
      std::move(workload), [](const Buffer& b) { return Picked(b->shape, LongDims(b->shape)); },
      [](Stage* stage, const Buffer& old, const BufferMap& buffers) {
        const std::vector<size_t> kept = LongDims(old->shape);
        VarMap zeros;
        for (const Var& axis : stage->axes) zeros[axis.get()] = IntConst(0);
        for (size_t i : kept) zeros.erase(stage->axes[i].get());
        for (const Var& axis : stage->axes) {
          if (axis->extent != 1) zeros.erase(axis.get());
        }
        stage->axes = Picked(stage->axes, kept);
        stage->value = Rewrite(Substitute(stage->value, zeros), [&](const Expr& e) -> Expr {
          if (e->op != Op::kLoad) return nullptr;
          return Load(buffers.at(e->buffer.get()), Picked(e->args, LongDims(e->buffer->shape)));
        });
      });
}

Workload NormalForm(Workload workload) {
  if (HasWindows(workload)) return WithOwnAxesAtUnits(std::move(workload));
  return NormalFormWithoutImages(std::move(workload));
}

Workload NormalFormWithoutImages(Workload workload) {
  workload = WithoutUnits(std::move(workload));
  while (true) {
    const DimensionClasses classes(workload);
    const auto pair = classes.Neighbours();
    if (!pair) return workload;
    workload = PairMerger(classes, pair->first).Run(std::move(workload));
  }
}

}  // namespace mycc
