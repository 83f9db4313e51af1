#include "tests/workload/random_workload.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace mycc {
namespace {

const std::vector<DType>& AllTypes() {
  static const std::vector<DType> types = {DType::kF32, DType::kF32, DType::kF64, DType::kF16, DType::kBF16,
                                           DType::kI64, DType::kI32, DType::kI8,  DType::kU8,  DType::kBool,
                                           DType::kI16, DType::kU16, DType::kU32, DType::kU64};
  return types;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : dice_(seed) {}

  Workload Run() {
    workload_.name = "f";
    const int inputs = static_cast<int>(dice_.Below(4));
    for (int i = 0; i < inputs; ++i) {
      const Buffer tensor = NewTensor("x" + std::to_string(i), 0);
      workload_.inputs.push_back({tensor, dice_.Chance(30)});
      readable_.push_back(tensor);
    }
    const int stages = 1 + static_cast<int>(dice_.Below(5));
    for (int i = 0; i < stages; ++i) AddStage(NewTensor("s" + std::to_string(i), 20));
    for (const Stage& stage : workload_.stages) {
      if (dice_.Chance(30)) workload_.outputs.push_back(stage.output);
    }
    if (workload_.outputs.empty()) workload_.outputs.push_back(workload_.stages.back().output);
    if (dice_.Chance(30)) std::ranges::reverse(workload_.outputs);
    workload_.count = dice_.Chance(50) ? 1 : 1 + dice_.Below(9);
    return std::move(workload_);
  }

 private:
  Buffer NewTensor(const std::string& name, int empty_percent) {
    std::vector<int64_t> shape(dice_.Below(4));
    for (int64_t& extent : shape) extent = 1 + dice_.Below(5);
    if (!shape.empty() && dice_.Chance(empty_percent / 4)) shape[0] = 0;
    return MakeBuffer(name, dice_.Pick(AllTypes()), shape);
  }

  void AddStage(const Buffer& output) {
    Stage stage;
    stage.output = output;
    axes_.clear();
    for (int d = 0; d < output->rank(); ++d)
      stage.axes.push_back(NewAxis("i" + std::to_string(d), output->shape[d]));
    DType type = output->dtype;
    if (type != DType::kBool && dice_.Chance(40)) {
      stage.reduce = static_cast<ReduceOp>(1 + dice_.Below(6));
      const bool is_arg = stage.reduce == ReduceOp::kArgMax || stage.reduce == ReduceOp::kArgMin;
      if (is_arg) {
        stage.output = MakeBuffer(output->name, DType::kI32, output->shape);
        type = dice_.Pick(std::vector<DType>{DType::kF32, DType::kF16, DType::kI8, DType::kU64});
      }
      const int axes = is_arg ? 1 : 1 + static_cast<int>(dice_.Below(2));
      for (int k = 0; k < axes; ++k) {
        stage.reduce_axes.push_back(
            NewAxis("k" + std::to_string(k), is_arg || dice_.Chance(95) ? 1 + dice_.Below(4) : 0));
      }
    }
    stage.value = Value(type, 3);
    workload_.stages.push_back(stage);
    readable_.push_back(stage.output);
  }

  Var NewAxis(const std::string& name, int64_t extent) {
    axes_.push_back(MakeVar(name, extent));
    return axes_.back();
  }

  Expr Literal(DType type) {
    if (type == DType::kBool) return BoolConst(dice_.Chance(50));
    if (!IsFloat(type)) return IntConst(dice_.Below(7) - 3, type);
    if (dice_.Chance(5)) return FloatConst(dice_.Chance(50) ? INFINITY : -INFINITY, type);
    if (dice_.Chance(3)) return FloatConst(NAN, type);
    return FloatConst(static_cast<double>(dice_.Below(41) - 20) / 8, type);
  }

  Expr Leaf(DType type) {
    if (type == DType::kI64 && !axes_.empty() && dice_.Chance(50)) return VarRef(dice_.Pick(axes_));
    std::vector<Buffer> fitting;
    for (const Buffer& tensor : readable_) {
      const bool empty = tensor->num_elements() == 0;
      if (!empty && (tensor->dtype == type || dice_.Chance(20))) fitting.push_back(tensor);
    }
    if (fitting.empty() || dice_.Chance(20)) return Literal(type);
    const Buffer& tensor = dice_.Pick(fitting);
    return MakeCast(type, Read(tensor));
  }

  Expr Read(const Buffer& tensor) {
    std::vector<Expr> indices;
    Expr guard = BoolConst(true);
    for (int64_t extent : tensor->shape) indices.push_back(Index(extent, &guard));
    const Expr read = Load(tensor, std::move(indices));
    return IsConstInt(guard) ? read : MakeSelect(guard, read, Literal(tensor->dtype));
  }

  // An index in 0..extent-1, perhaps only where `guard` holds.
  Expr Index(int64_t extent, Expr* guard) {
    if (axes_.empty() || dice_.Chance(10)) return IntConst(dice_.Below(extent));
    const Var& axis = dice_.Pick(axes_);
    const Expr i = VarRef(axis);
    const Expr highest = IntConst(extent - 1);
    switch (dice_.Below(5)) {
      case 0:
        if (axis->extent <= extent) return i;
        return Mod(i, extent);
      case 1: return FloorDiv(i, (std::max<int64_t>(axis->extent, 1) + extent - 1) / extent);
      case 2: return MakeBinary(Op::kMin, MakeBinary(Op::kMax, i * 2 - 1, IntConst(0)), highest);
      case 3: return Gather(extent);
      default: {
        const Expr shifted = i + VarRef(dice_.Pick(axes_)) - dice_.Below(3);
        const Expr low = MakeBinary(Op::kLe, IntConst(0), shifted),
                   high = MakeBinary(Op::kLt, shifted, IntConst(extent));
        *guard = MakeBinary(Op::kAnd, *guard, MakeBinary(Op::kAnd, low, high));
        return shifted;
      }
    }
  }

  Expr Gather(int64_t extent) {
    for (const Buffer& tensor : readable_) {
      if (!IsInt(tensor->dtype) || tensor->num_elements() == 0 || dice_.Chance(30)) continue;
      std::vector<Expr> zeros(tensor->rank(), IntConst(0));
      const Expr data = MakeCast(DType::kI64, Load(tensor, zeros));
      return MakeBinary(Op::kMin, MakeBinary(Op::kMax, data, IntConst(0)), IntConst(extent - 1));
    }
    return IntConst(extent - 1);
  }

  Expr Value(DType type, int depth) {
    if (depth == 0 || dice_.Chance(20)) return Leaf(type);
    if (dice_.Chance(10))
      return MakeSelect(Value(DType::kBool, depth - 1), Value(type, depth - 1), Value(type, depth - 1));
    if (dice_.Chance(10)) return MakeCast(type, Value(dice_.Pick(AllTypes()), depth - 1));
    if (type == DType::kBool) return Condition(depth);
    static const std::vector<Op> unary = {Op::kNeg,   Op::kAbs,  Op::kExp,  Op::kLog, Op::kSqrt,
                                          Op::kRsqrt, Op::kTanh, Op::kErf,  Op::kSin, Op::kCos,
                                          Op::kFloor, Op::kCeil, Op::kRound};
    if (dice_.Chance(30)) {
      const Op op = IsFloat(type) ? dice_.Pick(unary) : dice_.Chance(50) ? Op::kNeg : Op::kAbs;
      if (type == DType::kF32 && dice_.Chance(5)) return MakeUnary(Op::kTF32, Value(type, depth - 1));
      return MakeUnary(op, Value(type, depth - 1));
    }
    static const std::vector<Op> floats = {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv,
                                           Op::kMin, Op::kMax, Op::kPow};
    static const std::vector<Op> ints = {Op::kAdd, Op::kSub, Op::kMul, Op::kFloorDiv,
                                         Op::kMod, Op::kMin, Op::kMax};
    return MakeBinary(dice_.Pick(IsFloat(type) ? floats : ints), Value(type, depth - 1),
                      Value(type, depth - 1));
  }

  Expr Condition(int depth) {
    if (dice_.Chance(20)) return MakeUnary(Op::kNot, Value(DType::kBool, depth - 1));
    if (dice_.Chance(30)) {
      return MakeBinary(dice_.Chance(50) ? Op::kAnd : Op::kOr, Value(DType::kBool, depth - 1),
                        Value(DType::kBool, depth - 1));
    }
    const DType type = dice_.Pick(AllTypes());
    static const std::vector<Op> ordered = {Op::kLt, Op::kLe, Op::kEq, Op::kNe}, equal = {Op::kEq, Op::kNe};
    return MakeBinary(dice_.Pick(type == DType::kBool ? equal : ordered), Value(type, depth - 1),
                      Value(type, depth - 1));
  }

  Dice dice_;
  Workload workload_;
  std::vector<Buffer> readable_;
  std::vector<Var> axes_;
};

bool SameExpr(const Expr& a, const Expr& b) {
  if (a->op != b->op || a->dtype != b->dtype || a->args.size() != b->args.size()) return false;
  if (a->op == Op::kVar && a->var->name != b->var->name) return false;
  if (a->op == Op::kLoad && a->buffer->name != b->buffer->name) return false;
  if (a->op == Op::kConst) {
    const bool both_nan = std::isnan(a->value.f) && std::isnan(b->value.f);
    if (a->value.i != b->value.i || std::signbit(a->value.f) != std::signbit(b->value.f)) return both_nan;
    return both_nan || a->value.f == b->value.f;
  }
  return std::equal(a->args.begin(), a->args.end(), b->args.begin(), SameExpr);
}

bool SameTensor(const Buffer& a, const Buffer& b) {
  return a->name == b->name && a->dtype == b->dtype && a->shape == b->shape;
}

bool SameAxes(const std::vector<Var>& a, const std::vector<Var>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Var& x, const Var& y) { return x->name == y->name && x->extent == y->extent; });
}

bool SameStage(const Stage& a, const Stage& b) {
  return SameTensor(a.output, b.output) && SameAxes(a.axes, b.axes) && a.reduce == b.reduce &&
         SameAxes(a.reduce_axes, b.reduce_axes) && SameExpr(a.value, b.value);
}

}  // namespace

Workload RandomWorkload(uint64_t seed) { return Generator(seed).Run(); }

bool SameWorkload(const Workload& a, const Workload& b, std::string* why) {
  const auto same_input = [](const Argument& x, const Argument& y) {
    return x.is_const == y.is_const && SameTensor(x.tensor, y.tensor);
  };
  *why = a.name != b.name ? "name" : a.count != b.count ? "count" : "";
  if (!std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same_input))
    *why = "inputs";
  if (!std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(), SameTensor))
    *why = "outputs";
  if (a.stages.size() != b.stages.size()) *why = "number of stages";
  for (size_t i = 0; why->empty() && i < a.stages.size(); ++i) {
    if (!SameStage(a.stages[i], b.stages[i])) *why = "stage " + a.stages[i].output->name;
  }
  return why->empty();
}

}  // namespace mycc
