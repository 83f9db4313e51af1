#include "codegen/ir/interpreter_assembler.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace mycc::interpreter {
namespace {

Code CodeOf(const ExprNode& expr) {
  if (expr.args[0]->dtype == DType::kI64) {
    switch (expr.op) {
      case Op::kAdd: return Code::kAddIndex;
      case Op::kSub: return Code::kSubIndex;
      case Op::kMul: return Code::kMulIndex;
      case Op::kLt: return Code::kLessIndex;
      case Op::kLe: return Code::kLessEqualIndex;
      default: return Code::kEvaluate;
    }
  }
  if (expr.dtype == DType::kF32 && expr.op == Op::kAdd) return Code::kAddF32;
  if (expr.dtype == DType::kF32 && expr.op == Op::kMul) return Code::kMulF32;
  return Code::kEvaluate;
}

}  // namespace

int Assembler::Fail(const std::string& what) {
  if (status_.ok()) {
    const std::string where = site_ < 0 ? "" : absl::StrCat(" in ", StmtName(program_.sites[site_].stmt));
    status_ = Refusal("interpreter: ", what, where);
  }
  return 0;
}

int64_t Assembler::Emit(const Instr& instr) {
  program_.code.push_back(instr);
  program_.site_of.push_back(site_);
  return Here() - 1;
}

void Assembler::Land(const std::vector<int64_t>& jumps) {
  for (const int64_t jump : jumps) Land(jump);
}

int Assembler::NewRegister(Scalar initial) {
  program_.registers.push_back(initial);
  return static_cast<int>(program_.registers.size()) - 1;
}

int Assembler::List(const std::vector<int>& registers) {
  const int first = static_cast<int>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), registers.begin(), registers.end());
  return first;
}

int Assembler::AddMemory(const Buffer& buffer, bool read_only) {
  const bool is_outside = loops_in_scope_.empty() && !group_ && !in_launch_;
  const bool is_shared = is_outside || buffer->scope == Scope::kShared;
  program_.memories.push_back(MemorySlot{buffer, read_only, is_shared, !is_shared && !in_nest_});
  return memories_[buffer.get()] = static_cast<int>(program_.memories.size()) - 1;
}

int Assembler::MemoryOf(const Buffer& buffer, bool write) {
  const auto it = memories_.find(buffer.get());
  if (it == memories_.end()) return Fail(absl::StrCat("buffer ", buffer->name, " is used outside its scope"));
  if (write && program_.memories[it->second].read_only)
    return Fail(absl::StrCat("input ", buffer->name, " is written"));
  return it->second;
}

int Assembler::Expression(const ExprNode& expr) {
  switch (expr.op) {
    case Op::kConst: return NewRegister(expr.value);
    case Op::kVar: {
      const auto it = variables_.find(expr.var.get());
      if (it != variables_.end()) return it->second;
      return Fail(absl::StrCat("variable ", expr.var->name, " is used outside its loop"));
    }
    case Op::kLoad: {
      if (const auto part = parts_.find(expr.buffer.get()); part != parts_.end()) return part->second;
      const int indices = List(Expressions(expr.args)), memory = MemoryOf(expr.buffer, /*write=*/false);
      const int dst = NewRegister(), threads = static_cast<int>(readers_);
      Emit({.code = Code::kLoad, .dst = dst, .a = memory, .b = indices, .c = threads});
      return dst;
    }
    case Op::kSelect: return Select(expr);
    default: return Operation(expr);
  }
}

std::vector<int> Assembler::Expressions(const std::vector<Expr>& exprs) {
  std::vector<int> registers;
  registers.reserve(exprs.size());
  for (const Expr& expr : exprs) registers.push_back(Expression(*expr));
  return registers;
}

// The arm that is not selected is jumped over, with its reads.
int Assembler::Select(const ExprNode& expr) {
  const int dst = NewRegister();
  const int64_t to_else = Emit({.code = Code::kJumpIfZero, .a = Expression(*expr.args[0])});
  Emit({.code = Code::kMove, .dst = dst, .a = Expression(*expr.args[1])});
  const int64_t to_end = Emit({.code = Code::kJump});
  Land(to_else);
  Emit({.code = Code::kMove, .dst = dst, .a = Expression(*expr.args[2])});
  Land(to_end);
  return dst;
}

int Assembler::Operation(const ExprNode& expr) {
  const int a = Expression(*expr.args[0]);
  const int b = expr.args.size() > 1 ? Expression(*expr.args[1]) : a;
  const int dst = NewRegister();
  Emit({.code = CodeOf(expr),
        .op = expr.op,
        .dtype = expr.dtype,
        .operand = expr.args[0]->dtype,
        .dst = dst,
        .a = a,
        .b = b});
  return dst;
}

}  // namespace mycc::interpreter
