// Finds the path from the root to a node by name. Replacing a node rebuilds only the nodes on its path.
#include "codegen/schedule/tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

template <typename Predicate>
bool FindPath(const Stmt& stmt, const Predicate& predicate, std::vector<Stmt>* path) {
  path->push_back(stmt);
  if (predicate(stmt)) return true;
  switch (stmt->kind) {
    case StmtKind::kSeq:
      for (const Stmt& part : As<Seq>(stmt).stmts) {
        if (FindPath(part, predicate, path)) return true;
      }
      break;
    case StmtKind::kFor:
      if (FindPath(As<For>(stmt).body, predicate, path)) return true;
      break;
    case StmtKind::kAlloc:
      if (FindPath(As<Alloc>(stmt).body, predicate, path)) return true;
      break;
    default:
      for (const Stmt& child : Children(stmt)) {
        if (FindPath(child, predicate, path)) return true;
      }
  }
  path->pop_back();
  return false;
}

template <typename Visitor>
void ForEachLoad(const Expr& expr, const Visitor& visit) {
  if (expr->op == Op::kLoad) visit(*expr);
  for (const Expr& arg : expr->args) ForEachLoad(arg, visit);
}

std::string NamesOf(const Function& function, StmtKind kind) {
  std::vector<std::string> names;
  VisitStmts(function.body, [&](const Stmt& stmt) {
    if (stmt->kind == kind && kind == StmtKind::kFor) names.push_back(As<For>(stmt).var->name);
    if (stmt->kind == kind && kind == StmtKind::kBlock) names.push_back(As<Block>(stmt).name);
    return true;
  });
  return absl::StrJoin(names, ", ");
}

bool ReadsAnywhere(const Stmt& stmt, const Buffer& buffer) {
  const std::vector<const Block*> blocks = BlocksUnder(stmt);
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block* block) { return Reads(*block, buffer); });
}

}  // namespace

absl::StatusOr<Path> FindLoop(const Function& function, const std::string& name) {
  Path path;
  const auto is_loop = [&](const Stmt& s) {
    return s->kind == StmtKind::kFor && As<For>(s).var->name == name;
  };
  if (FindPath(function.body, is_loop, &path.nodes)) return path;
  return absl::FailedPreconditionError(
      absl::StrCat("there is no loop ", name, "; the loops are ", NamesOf(function, StmtKind::kFor)));
}

absl::StatusOr<Path> FindBlock(const Function& function, const std::string& name) {
  Path path;
  const auto is_block = [&](const Stmt& s) {
    return s->kind == StmtKind::kBlock && As<Block>(s).name == name;
  };
  if (FindPath(function.body, is_block, &path.nodes)) return path;
  return absl::FailedPreconditionError(
      absl::StrCat("there is no block ", name, "; the blocks are ", NamesOf(function, StmtKind::kBlock)));
}

absl::StatusOr<Path> FindAlloc(const Function& function, const Buffer& buffer) {
  Path path;
  const auto is_alloc = [&](const Stmt& s) {
    return s->kind == StmtKind::kAlloc && As<Alloc>(s).buffer == buffer;
  };
  if (FindPath(function.body, is_alloc, &path.nodes)) return path;
  return absl::FailedPreconditionError(
      absl::StrCat(buffer->name, " is a parameter, not an allocated buffer"));
}

Stmt ReplaceAt(const Path& path, Stmt replacement) {
  Stmt current = std::move(replacement);
  for (size_t i = path.nodes.size() - 1; i-- > 0;) {
    const Stmt& parent = path.nodes[i];
    const Stmt& old = path.nodes[i + 1];
    if (parent->kind == StmtKind::kSeq) {
      std::vector<Stmt> stmts;
      for (const Stmt& part : As<Seq>(parent).stmts) stmts.push_back(part == old ? current : part);
      current = MakeSeq(std::move(stmts));
      if (DynAs<Seq>(current) && As<Seq>(current).stmts.empty()) current = nullptr;
      continue;
    }
    if (!current) continue;
    std::vector<Stmt> children = Children(parent);
    std::replace(children.begin(), children.end(), old, current);
    current = WithChildren(parent, std::move(children));
  }
  return current ? current : MakeSeq({});
}

Function WithBody(const Function& function, Stmt body) {
  return Function{function.name, function.params, std::move(body)};
}

Function WithMarks(const Function& function, const Path& path, LoopMarks marks) {
  const For& loop = path.loop();
  return WithBody(function, ReplaceAt(path, std::make_shared<For>(loop.var, loop.extent, loop.loop_kind,
                                                                  loop.body, std::move(marks))));
}

std::vector<const Block*> BlocksUnder(const Stmt& stmt) {
  std::vector<const Block*> blocks;
  VisitStmts(stmt, [&](const Stmt& s) {
    if (s->kind == StmtKind::kBlock) blocks.push_back(&As<Block>(s));
    return true;
  });
  return blocks;
}

const Block* WriterOf(const Function& function, const Buffer& buffer) {
  const Block* writer = nullptr;
  for (const Block* block : BlocksUnder(function.body)) {
    if (block->out == buffer) writer = block;
  }
  return writer;
}

absl::Status CheckOnlyWriter(const Function& function, const Block& block) {
  for (const Block* other : BlocksUnder(function.body)) {
    if (other->out == block.out && other->name != block.name) {
      return absl::FailedPreconditionError(absl::StrCat(other->name, " writes ", block.out->name, " too"));
    }
  }
  return absl::OkStatus();
}

bool Reads(const Block& block, const Buffer& buffer) {
  bool found = false;
  const auto check = [&](const ExprNode& load) { found |= load.buffer == buffer; };
  ForEachLoad(block.value, check);
  for (const Expr& index : block.indices) ForEachLoad(index, check);
  return found;
}

bool ContainsBlock(const Stmt& stmt, const std::string& name) {
  const std::vector<const Block*> blocks = BlocksUnder(stmt);
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block* block) { return block->name == name; });
}

std::unordered_set<const VarNode*> LoopVarsUnder(const Stmt& stmt) {
  std::unordered_set<const VarNode*> vars;
  VisitStmts(stmt, [&](const Stmt& s) {
    if (s->kind == StmtKind::kFor) vars.insert(As<For>(s).var.get());
    return true;
  });
  return vars;
}

bool HasLoad(const Expr& expr) {
  return expr->op == Op::kLoad || std::any_of(expr->args.begin(), expr->args.end(), HasLoad);
}

bool UsesAnyOf(const Expr& expr, const std::unordered_set<const VarNode*>& vars) {
  if (expr->op == Op::kVar) return vars.count(expr->var.get()) > 0;
  return std::any_of(expr->args.begin(), expr->args.end(),
                     [&](const Expr& arg) { return UsesAnyOf(arg, vars); });
}

std::vector<const For*> LoopsOn(const Path& path) {
  std::vector<const For*> loops;
  for (const Stmt& node : path.nodes) {
    if (node->kind == StmtKind::kFor) loops.push_back(&As<For>(node));
  }
  return loops;
}

VarMap BindingsOf(const Block& block) {
  VarMap map;
  for (const IterVar& iter : block.iters) map.emplace(iter.var.get(), iter.binding);
  return map;
}

Stmt MakeNest(const std::vector<LoopSpec>& loops, Stmt body) {
  for (auto it = loops.rbegin(); it != loops.rend(); ++it) {
    body = std::make_shared<For>(it->var, IntConst(it->var->extent), it->kind, std::move(body));
  }
  return body;
}

bool IsReduceLoop(const For& loop) {
  for (const Block* block : BlocksUnder(loop.body)) {
    for (const IterVar& iter : block->iters) {
      if (iter.reduce && UsesVar(iter.binding, loop.var.get())) return true;
    }
  }
  return false;
}

absl::StatusOr<Buffer> FindAllocated(const Function& function, const std::string& name) {
  Buffer found;
  VisitStmts(function.body, [&](const Stmt& stmt) {
    if (stmt->kind == StmtKind::kAlloc && As<Alloc>(stmt).buffer->name == name)
      found = As<Alloc>(stmt).buffer;
    return !found;
  });
  if (found) return found;
  return absl::FailedPreconditionError(absl::StrCat("there is no allocated buffer ", name));
}

absl::StatusOr<Buffer> FindBuffer(const Function& function, const std::string& name) {
  for (const Param& param : function.params) {
    if (param.buffer->name == name) return param.buffer;
  }
  return FindAllocated(function, name);
}

std::string FreshName(const Function& function, const std::string& base) {
  std::unordered_set<std::string> taken;
  for (const Param& param : function.params) taken.insert(param.buffer->name);
  VisitStmts(function.body, [&](const Stmt& stmt) {
    if (stmt->kind == StmtKind::kAlloc) taken.insert(As<Alloc>(stmt).buffer->name);
    if (stmt->kind == StmtKind::kBlock) taken.insert(As<Block>(stmt).name);
    return true;
  });
  if (!taken.count(base)) return base;
  int number = 2;
  while (taken.count(absl::StrCat(base, number))) ++number;
  return absl::StrCat(base, number);
}

Stmt InsertBeforeReader(const Stmt& body, const Buffer& buffer, const Stmt& stmt) {
  if (const Alloc* alloc = DynAs<Alloc>(body)) {
    return std::make_shared<Alloc>(alloc->buffer, InsertBeforeReader(alloc->body, buffer, stmt));
  }
  const Seq* seq = DynAs<Seq>(body);
  if (seq == nullptr) return MakeSeq({stmt, body});
  std::vector<Stmt> parts;
  bool inserted = false;
  for (const Stmt& part : seq->stmts) {
    if (!inserted && ReadsAnywhere(part, buffer)) {
      parts.push_back(stmt);
      inserted = true;
    }
    parts.push_back(part);
  }
  MYCC_CHECK(inserted) << "no reader of " << buffer->name;
  return MakeSeq(std::move(parts));
}

Stmt Append(const Stmt& body, const Stmt& stmt) {
  if (const Alloc* alloc = DynAs<Alloc>(body)) {
    return std::make_shared<Alloc>(alloc->buffer, Append(alloc->body, stmt));
  }
  return MakeSeq({body, stmt});
}

}  // namespace mycc
