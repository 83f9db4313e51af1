// Tells how the arrays of a GPU's thread are in registers. A register has no address: the loops that index an
// array are unrolled, so that their part of an index is a constant. Elements of narrow floats are
//   - wide where values are reduced into them, or where a product reads them as its left operand: they have
//     the precision of f32, and reads round;
//   - in pairs where vector loops round two neighbours at once: the instruction takes them so.
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// The variables that index arrays of a thread. Accesses of copies do not count: threads divide their loops.
VarSet IndexVars(const Stmt& body) {
  BufferSet arrays;
  VarSet vars;
  const auto add = [&](const BufferNode* buffer, const std::vector<Expr>& indices) {
    if (!arrays.contains(buffer)) return;
    for (const Expr& index : indices) {
      Visit(index, [&](const ExprNode& e) {
        if (e.op == Op::kVar) vars.insert(e.var.get());
      });
    }
  };
  ForEachStmt(body, [&](const Stmt& stmt) {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc != nullptr && IsInRegisters(*alloc->buffer)) arrays.insert(alloc->buffer.get());
    ForEachLoad(stmt, [&](const ExprNode& load) { add(load.buffer.get(), load.args); });
    if (const Store* store = DynAs<Store>(stmt)) add(store->buffer.get(), store->indices);
    if (const Combine* combine = DynAs<Combine>(stmt))
      combine->ForEachBuffer([&](const Buffer& buffer) { add(buffer.get(), combine->indices); });
  });
  return vars;
}

RegisterForm FormOf(const Alloc& alloc) {
  if (!IsNarrowFloat(alloc.buffer->dtype)) return RegisterForm::kOfType;
  bool is_wide = false, is_paired = false;
  ForEachStmt(alloc.body, [&](const Stmt& stmt) {
    if (const Vectors* vectors = DynAs<Vectors>(stmt)) {
      for (const VectorMove& store : vectors->stores) is_paired |= store.tensor == alloc.buffer;
    }
    const Mma* mma = DynAs<Mma>(stmt);
    is_wide |= mma != nullptr && mma->a.buffer == alloc.buffer;
    const Store* store = DynAs<Store>(stmt);
    const bool reduces = store != nullptr ? ReductionOf(*store) != ReduceOp::kNone : mma == nullptr;
    ForEachWritten(stmt,
                   [&](const BufferNode* written) { is_wide |= written == alloc.buffer.get() && reduces; });
  });
  return is_paired ? RegisterForm::kPairs : is_wide ? RegisterForm::kWide : RegisterForm::kOfType;
}

}  // namespace

Stmt PlaceRegisters(const Stmt& body) {
  const VarSet unrolled = IndexVars(body);
  const Stmt loops = RewriteEach<For>(body, [&](const For& loop) -> Stmt {
    if (loop.loop_kind != LoopKind::kSerial || !unrolled.contains(loop.var.get())) return nullptr;
    return loop.With({.loop_kind = LoopKind::kUnroll});
  });
  return RewriteEach<Alloc>(loops, [](const Alloc& alloc) -> Stmt {
    if (!IsInRegisters(*alloc.buffer)) return nullptr;
    const RegisterForm form = FormOf(alloc);
    if (form == alloc.registers) return nullptr;
    return Changed(alloc, [&](Alloc* changed) { changed->registers = form; });
  });
}

}  // namespace mycc
