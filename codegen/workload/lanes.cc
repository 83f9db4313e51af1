// Compiles expressions to a list of operations on blocks of values, with one register for each node.
#include "codegen/workload/lanes.h"

#include <algorithm>

#include "codegen/expr/eval.h"
#include "codegen/expr/integers.h"

namespace mycc {
namespace {

template <typename T, typename Result, typename F>
void ForLanes(int count, const T* a, const T* b, Result* result, F f) {
  for (int lane = 0; lane < count; ++lane) result[lane] = f(a[lane], b[lane]);
}

void RoundLanes(DType dtype, int count, double* values) {
  if (dtype == DType::kF32) {
    for (int lane = 0; lane < count; ++lane) values[lane] = static_cast<float>(values[lane]);
  } else if (dtype != DType::kF64) {
    for (int lane = 0; lane < count; ++lane) values[lane] = RoundFloat(dtype, values[lane]);
  }
}

// Executes the most frequent operations; false for others, which EvaluateOp executes.
bool RunCommonFloat(Op op, int count, const double* a, const double* b, double* result) {
  switch (op) {
    case Op::kAdd: ForLanes(count, a, b, result, [](double x, double y) { return x + y; }); return true;
    case Op::kSub: ForLanes(count, a, b, result, [](double x, double y) { return x - y; }); return true;
    case Op::kMul: ForLanes(count, a, b, result, [](double x, double y) { return x * y; }); return true;
    case Op::kDiv: ForLanes(count, a, b, result, [](double x, double y) { return x / y; }); return true;
    case Op::kCast: std::copy_n(a, count, result); return true;
    default: return false;
  }
}

// The same of i64, in which positions are computed.
bool RunCommonInt(Op op, int count, const int64_t* a, const int64_t* b, int64_t* result) {
  switch (op) {
    case Op::kAdd: ForLanes(count, a, b, result, WrapAdd); return true;
    case Op::kMul: ForLanes(count, a, b, result, WrapMul); return true;
    case Op::kFloorDiv: ForLanes(count, a, b, result, FloorDivInt); return true;
    case Op::kMod: ForLanes(count, a, b, result, FloorModInt); return true;
    default: return false;
  }
}

bool RunCommonBool(Op op, int count, const int64_t* a, const int64_t* b, int64_t* result) {
  switch (op) {
    case Op::kLt: ForLanes(count, a, b, result, [](int64_t x, int64_t y) { return x < y; }); return true;
    case Op::kLe: ForLanes(count, a, b, result, [](int64_t x, int64_t y) { return x <= y; }); return true;
    case Op::kAnd:
      ForLanes(count, a, b, result, [](int64_t x, int64_t y) { return (x & y) != 0; });
      return true;
    default: return false;
  }
}

}  // namespace

LaneProgram::LaneProgram(const Stage& stage, const Expr& value)
    : axes_(stage.axes), is_float_(IsFloat(value->dtype)) {
  axes_.insert(axes_.end(), stage.reduce_axes.begin(), stage.reduce_axes.end());
  result_ = Compile(value, /*mask=*/-1);
}

int LaneProgram::NewRegister(DType dtype) {
  Register& added = registers_.emplace_back();
  if (IsFloat(dtype)) {
    added.f.resize(kLanes);
  } else {
    added.i.resize(kLanes);
  }
  return static_cast<int>(registers_.size()) - 1;
}

int LaneProgram::Constant(DType dtype, Scalar value) {
  const int result = NewRegister(dtype);
  std::ranges::fill(registers_[result].f, value.f);
  std::ranges::fill(registers_[result].i, value.i);
  return result;
}

int LaneProgram::Compile(const Expr& expr, int mask) {
  const auto key = std::make_pair(expr.get(), mask);
  if (const auto it = compiled_.find(key); it != compiled_.end()) return it->second;
  return compiled_[key] = CompileNode(expr, mask);
}

int LaneProgram::CompileNode(const Expr& expr, int mask) {
  int result = 0;
  switch (expr->op) {
    case Op::kConst: return Constant(expr->dtype, expr->value);
    case Op::kLoad: return CompileLoad(expr, mask);
    case Op::kSelect: return CompileSelect(expr, mask);
    case Op::kVar:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kNeg:
      if (expr->dtype == DType::kI64 && AddForm(expr, &result)) return result;
      break;
    default: break;
  }
  std::vector<int> args;
  for (const Expr& arg : expr->args) args.push_back(Compile(arg, mask));
  return Emit(expr->op, expr->dtype, expr->args[0]->dtype, std::move(args));
}

int LaneProgram::Emit(Op op, DType dtype, DType operand_dtype, std::vector<int> args) {
  const int result = NewRegister(dtype);
  instructions_.push_back({op, dtype, operand_dtype, result, std::move(args)});
  return result;
}

int LaneProgram::CompileLoad(const Expr& expr, int mask) {
  int position = 0;
  if (!AddFlatPosition(expr, &position)) {
    position = Constant(DType::kI64, Scalar());
    for (int d = 0; d < expr->buffer->rank(); ++d) {
      const int index = Compile(expr->args[d], mask),
                stride = Constant(DType::kI64, Scalar{0, expr->buffer->stride(d)});
      const int scaled = Emit(Op::kMul, DType::kI64, DType::kI64, {index, stride});
      position = Emit(Op::kAdd, DType::kI64, DType::kI64, {position, scaled});
    }
  }
  const int result = NewRegister(expr->dtype);
  instructions_.push_back(
      {Op::kLoad, expr->dtype, expr->dtype, result, {position}, mask, expr->buffer.get()});
  return result;
}

// Both arms run on every lane, but read only on the lanes that select them.
int LaneProgram::CompileSelect(const Expr& expr, int mask) {
  const int condition = Compile(expr->args[0], mask);
  const int otherwise = Emit(Op::kNot, DType::kBool, DType::kBool, {condition});
  const auto both = [&](int arm) {
    return mask < 0 ? arm : Emit(Op::kAnd, DType::kBool, DType::kBool, {mask, arm});
  };
  const int then_value = Compile(expr->args[1], both(condition));
  const int else_value = Compile(expr->args[2], both(otherwise));
  return Emit(Op::kSelect, expr->dtype, expr->dtype, {condition, then_value, else_value});
}

// Adds factor * expr to the form; false when the expression, as written, is not affine.
bool LaneProgram::AccumulateForm(const Expr& expr, uint64_t factor, Form* form) const {
  switch (expr->op) {
    case Op::kConst: form->constant += factor * static_cast<uint64_t>(expr->value.i); return true;
    case Op::kVar: form->factors[std::ranges::find(axes_, expr->var) - axes_.begin()] += factor; return true;
    case Op::kNeg: return AccumulateForm(expr->args[0], 0 - factor, form);
    case Op::kAdd:
    case Op::kSub:
      return AccumulateForm(expr->args[0], factor, form) &&
             AccumulateForm(expr->args[1], expr->op == Op::kSub ? 0 - factor : factor, form);
    case Op::kMul: {
      int64_t constant = 0;
      if (IsConstInt(expr->args[1], &constant))
        return AccumulateForm(expr->args[0], factor * static_cast<uint64_t>(constant), form);
      return IsConstInt(expr->args[0], &constant) &&
             AccumulateForm(expr->args[1], factor * static_cast<uint64_t>(constant), form);
    }
    default: return false;
  }
}

bool LaneProgram::AddForm(const Expr& expr, int* result) {
  Form form;
  form.factors.resize(axes_.size());
  if (!AccumulateForm(expr, 1, &form)) return false;
  StoreForm(std::move(form), result);
  return true;
}

bool LaneProgram::AddFlatPosition(const Expr& read, int* result) {
  Form form;
  form.factors.resize(axes_.size());
  for (int d = 0; d < read->buffer->rank(); ++d) {
    if (!AccumulateForm(read->args[d], static_cast<uint64_t>(read->buffer->stride(d)), &form)) return false;
  }
  StoreForm(std::move(form), result);
  return true;
}

void LaneProgram::StoreForm(Form form, int* result) {
  form.result = *result = NewRegister(DType::kI64);
  forms_.push_back(std::move(form));
}

// Fills lanes in runs along the innermost axis, where a form is an arithmetic sequence. Between runs only the
// axes that carry are updated.
void LaneProgram::FillForms(int64_t first, int count) {
  std::vector<int64_t> point(axes_.size());
  int64_t rest = first;
  for (size_t k = axes_.size(); k-- > 0;) {
    point[k] = rest % axes_[k]->extent;
    rest /= axes_[k]->extent;
  }
  for (Form& form : forms_) {
    form.next = form.constant;
    for (size_t k = 0; k < axes_.size(); ++k) form.next += form.factors[k] * static_cast<uint64_t>(point[k]);
  }
  for (int lane = 0; lane < count;) {
    const int64_t left = axes_.empty() ? 1 : axes_.back()->extent - point.back();
    const int run = static_cast<int>(std::min<int64_t>(count - lane, left));
    for (Form& form : forms_) {
      const uint64_t step = axes_.empty() ? 0 : form.factors.back();
      int64_t* lanes = registers_[form.result].i.data() + lane;
      for (int i = 0; i < run; ++i, form.next += step) lanes[i] = static_cast<int64_t>(form.next);
    }
    lane += run;
    if (axes_.empty()) continue;
    point.back() += run;
    for (size_t k = axes_.size() - 1; k > 0 && point[k] == axes_[k]->extent; --k) {
      point[k] = 0;
      ++point[k - 1];
      for (Form& form : forms_)
        form.next += form.factors[k - 1] - form.factors[k] * static_cast<uint64_t>(axes_[k]->extent);
    }
  }
}

bool LaneProgram::Run(int64_t first, int count, const LaneReader& read) {
  FillForms(first, count);
  for (const Instruction& instruction : instructions_) {
    if (instruction.op != Op::kLoad) {
      RunOperation(instruction, count);
    } else if (!RunLoad(instruction, count, read)) {
      return false;
    }
  }
  return true;
}

bool LaneProgram::RunLoad(const Instruction& load, int count, const LaneReader& read) {
  Register& result = registers_[load.result];
  const int64_t* mask = load.mask < 0 ? nullptr : registers_[load.mask].i.data();
  return read(
      {*load.tensor, count, registers_[load.args[0]].i.data(), mask, result.f.data(), result.i.data()});
}

void LaneProgram::RunOperation(const Instruction& instruction, int count) {
  Register& result = registers_[instruction.result];
  const Register& a = registers_[instruction.args[0]];
  const Register& b = registers_[instruction.args.size() > 1 ? instruction.args[1] : instruction.args[0]];
  const bool is_float = IsFloat(instruction.dtype), of_floats = IsFloat(instruction.operand_dtype);
  if (instruction.op == Op::kSelect) {
    const Register& c = registers_[instruction.args[2]];
    for (int lane = 0; lane < count; ++lane) {
      const Register& taken = a.i[lane] != 0 ? b : c;
      if (is_float) {
        result.f[lane] = taken.f[lane];
      } else {
        result.i[lane] = taken.i[lane];
      }
    }
    return;
  }
  if (is_float && of_floats &&
      RunCommonFloat(instruction.op, count, a.f.data(), b.f.data(), result.f.data())) {
    return RoundLanes(instruction.dtype, count, result.f.data());
  }
  if (instruction.dtype == DType::kI64 && instruction.operand_dtype == DType::kI64 &&
      RunCommonInt(instruction.op, count, a.i.data(), b.i.data(), result.i.data()))
    return;
  if (!of_floats && instruction.dtype == DType::kBool && instruction.operand_dtype != DType::kU64 &&
      RunCommonBool(instruction.op, count, a.i.data(), b.i.data(), result.i.data()))
    return;
  for (int lane = 0; lane < count; ++lane) {
    const Scalar args[] = {of_floats ? Scalar{a.f[lane], 0} : Scalar{0, a.i[lane]},
                           of_floats ? Scalar{b.f[lane], 0} : Scalar{0, b.i[lane]}};
    const Scalar value = EvaluateOp(instruction.op, instruction.dtype, instruction.operand_dtype, args);
    if (is_float) {
      result.f[lane] = value.f;
    } else {
      result.i[lane] = value.i;
    }
  }
}

}  // namespace mycc
