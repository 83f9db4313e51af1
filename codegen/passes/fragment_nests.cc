#include "codegen/passes/fragment_nests.h"

#include <algorithm>

#include "base/status.h"
#include "codegen/expr/conjunction.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

// Appends the nests under `stmt` to `nests`; false where there is other code.
bool CollectNests(const Stmt& stmt, FragmentNest around, std::vector<FragmentNest>* nests) {
  if (const Store* store = DynAs<Store>(stmt)) {
    around.store = store;
    nests->push_back(std::move(around));
    return true;
  }
  if (const For* loop = DynAs<For>(stmt)) {
    if (loop->loop_kind != LoopKind::kSerial || !ConstExtent(*loop)) return false;
    around.loops.push_back(loop);
  } else if (const If* branch = DynAs<If>(stmt)) {
    if (branch->otherwise) return false;
    SplitConjunction(branch->condition, &around.conditions);
  } else if (stmt->kind != StmtKind::kSeq) {
    return false;
  }
  const std::vector<Stmt> children = Children(stmt);
  return std::all_of(children.begin(), children.end(),
                     [&](const Stmt& child) { return CollectNests(child, around, nests); });
}

bool AreIndexedByVar(const FragmentNest& nest, const Buffer& buffer, const VarNode* var) {
  bool all = true;
  nest.ForEachAccess([&](const Buffer& accessed, const std::vector<Expr>& indices) {
    if (accessed != buffer) return;
    all &= std::any_of(indices.begin(), indices.end(),
                       [&](const Expr& index) { return index->op == Op::kVar && index->var.get() == var; });
  });
  return all;
}

bool TouchesBuffer(const FragmentNest& nest, const Buffer& buffer) {
  bool touches = false;
  nest.ForEachAccess(
      [&](const Buffer& accessed, const std::vector<Expr>&) { touches |= accessed == buffer; });
  return touches;
}

absl::Status CheckPair(const FragmentNest& writer, const FragmentNest& other) {
  const Buffer& buffer = writer.store->buffer;
  if (!TouchesBuffer(other, buffer)) return absl::OkStatus();
  for (size_t i = 0; i < std::min(writer.loops.size(), other.loops.size()); ++i) {
    if (writer.loops[i] != other.loops[i]) break;
    const Var& var = writer.loops[i]->var;
    if (AreIndexedByVar(writer, buffer, var.get()) && AreIndexedByVar(other, buffer, var.get())) continue;
    return Refusal("statements in loop ", var->name, " share elements of ", buffer->name,
                   " between its iterations, so that threads cannot execute one after the other");
  }
  return absl::OkStatus();
}

}  // namespace

void FragmentNest::ForEachAccess(
    const std::function<void(const Buffer& buffer, const std::vector<Expr>& indices)>& visit) const {
  const auto loads = [&](const Expr& expr) {
    ForEachLoad(expr, [&](const ExprNode& load) { visit(load.buffer, load.args); });
  };
  visit(store->buffer, store->indices);
  for (const Expr& index : store->indices) loads(index);
  loads(store->value);
  for (const Expr& condition : conditions) loads(condition);
}

std::vector<FragmentNest> NestsOf(const Stmt& root) {
  std::vector<FragmentNest> nests;
  if (!CollectNests(root, FragmentNest{}, &nests)) return {};
  return nests;
}

absl::Status CheckSeparable(const std::vector<FragmentNest>& nests) {
  absl::Status status;
  for (const FragmentNest& writer : nests) {
    for (const FragmentNest& other : nests) {
      if (&writer != &other) status.Update(CheckPair(writer, other));
    }
  }
  return status;
}

}  // namespace mycc
