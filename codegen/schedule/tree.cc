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

// Appends the path from the first node that the predicate accepts up to `stmt`. False, and no path, where
// there is none.
template <typename Predicate>
bool FindPathUp(const Stmt& stmt, const Predicate& predicate, std::vector<Stmt>* path) {
  const auto find = [&](const Stmt& child) { return FindPathUp(child, predicate, path); };
  const auto find_in = [&] {
    switch (stmt->kind) {
      case StmtKind::kSeq: return std::any_of(As<Seq>(stmt).stmts.begin(), As<Seq>(stmt).stmts.end(), find);
      case StmtKind::kFor: return find(As<For>(stmt).body);
      case StmtKind::kAlloc: return find(As<Alloc>(stmt).body);
      default: {
        const std::vector<Stmt> children = Children(stmt);
        return std::any_of(children.begin(), children.end(), find);
      }
    }
  };
  const bool found = predicate(stmt) || find_in();
  if (found) path->push_back(stmt);
  return found;
}

template <typename Predicate>
bool FindPath(const Stmt& root, const Predicate& predicate, std::vector<Stmt>* path) {
  constexpr size_t kUsualDepth = 16;
  path->reserve(kUsualDepth);
  const bool found = FindPathUp(root, predicate, path);
  std::reverse(path->begin(), path->end());
  return found;
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
      std::vector<Stmt> stmts = As<Seq>(parent).stmts;
      std::replace(stmts.begin(), stmts.end(), old, current);
      current = MakeSeq(std::move(stmts));
      if (DynAs<Seq>(current) && As<Seq>(current).stmts.empty()) current = nullptr;
      continue;
    }
    if (!current) continue;
    current = MapChildren(parent, [&](const Stmt& child) { return child == old ? current : child; });
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
  loops.reserve(path.nodes.size());
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
  const auto is_taken = [&](const std::string& name) {
    bool taken = std::any_of(function.params.begin(), function.params.end(),
                             [&](const Param& param) { return param.buffer->name == name; });
    VisitStmts(function.body, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kAlloc) taken = taken || As<Alloc>(stmt).buffer->name == name;
      if (stmt->kind == StmtKind::kBlock) taken = taken || As<Block>(stmt).name == name;
      return !taken;
    });
    return taken;
  };
  std::string name = base;
  for (int number = 2; is_taken(name); ++number) name = absl::StrCat(base, number);
  return name;
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
