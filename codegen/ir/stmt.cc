// Walks and rewrites of the IR. A rewrite keeps every node that does not change, so that an unchanged tree is
// the same pointer.
#include "codegen/ir/stmt.h"

#include <algorithm>
#include <utility>

namespace mycc {

std::shared_ptr<const For> For::With(ForParts parts) const {
  auto loop = std::make_shared<For>(*this);
  if (parts.var) loop->var = std::move(parts.var);
  if (parts.extent) loop->extent = std::move(parts.extent);
  if (parts.loop_kind) loop->loop_kind = *parts.loop_kind;
  if (parts.body) loop->body = std::move(parts.body);
  return loop;
}

std::shared_ptr<const For> For::Marked(LoopMarks changed) const {
  auto loop = std::make_shared<For>(*this);
  loop->marks = std::move(changed);
  return loop;
}

bool Block::Writes(const Buffer& buffer) const {
  return out == buffer || std::ranges::any_of(more, [&](const Accumulator& accumulator) {
           return accumulator.buffer == buffer;
         });
}

Stmt MakeNest(const std::vector<LoopSpec>& loops, Stmt body) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    body = std::make_shared<For>(loop->var, IntConst(loop->var->extent), loop->kind, std::move(body));
  return body;
}

std::vector<const For*> LoopsOfNest(const Stmt& nest, Stmt* inside, std::optional<LoopKind> kind) {
  std::vector<const For*> loops;
  *inside = nest;
  for (const For* loop = DynAs<For>(nest); loop != nullptr; loop = DynAs<For>(*inside)) {
    if (kind && loop->loop_kind != *kind) break;
    loops.push_back(loop);
    *inside = loop->body;
  }
  return loops;
}

int64_t IterationsOf(const std::vector<const For*>& loops) {
  int64_t iterations = 1;
  for (const For* loop : loops) iterations *= loop->var->extent;
  return iterations;
}

Expr IterationNumber(const std::vector<const For*>& loops) {
  Expr number = IntConst(0);
  for (const For* loop : loops) number = number * loop->var->extent + VarRef(loop->var);
  return number;
}

Stmt InLoops(const std::vector<const For*>& loops, Stmt body) {
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop)
    body = (*loop)->With({.body = std::move(body)});
  return body;
}

Stmt InAllocs(const std::vector<Buffer>& buffers, Stmt body) {
  for (auto buffer = buffers.rbegin(); buffer != buffers.rend(); ++buffer)
    body = std::make_shared<Alloc>(*buffer, std::move(body));
  return body;
}

Stmt MakeSeq(std::vector<Stmt> stmts) {
  const bool flat =
      std::ranges::none_of(stmts, [](const Stmt& stmt) { return !stmt || stmt->kind == StmtKind::kSeq; });
  if (flat) return stmts.size() == 1 ? std::move(stmts[0]) : std::make_shared<Seq>(std::move(stmts));
  std::vector<Stmt> parts;
  const auto append = [&parts](const Stmt& stmt, const auto& self) -> void {
    if (!stmt) return;
    if (stmt->kind != StmtKind::kSeq) {
      parts.push_back(stmt);
      return;
    }
    for (const Stmt& part : As<Seq>(stmt).stmts) self(part, self);
  };
  for (const Stmt& stmt : stmts) append(stmt, append);
  return parts.size() == 1 ? std::move(parts[0]) : std::make_shared<Seq>(std::move(parts));
}

std::vector<Stmt> StmtsOf(const Stmt& stmt) {
  const Seq* seq = DynAs<Seq>(stmt);
  return seq != nullptr ? seq->stmts : std::vector<Stmt>{stmt};
}

}  // namespace mycc
