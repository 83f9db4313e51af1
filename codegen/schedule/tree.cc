// Finds the path from the root to a node by name. Replacing a node rebuilds only the nodes on its path.
#include "codegen/schedule/tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

const std::string& NameOf(const For& loop) { return loop.var->name; }
const std::string& NameOf(const Block& block) { return block.name; }

// The path to the loop or the block of this name; `kind` says which of them, in words.
template <typename Kind>
absl::StatusOr<Path> Find(const Function& function, const char* kind, const std::string& name) {
  const auto is_it = [&](const Stmt& stmt) {
    const Kind* one = DynAs<Kind>(stmt);
    return one != nullptr && NameOf(*one) == name;
  };
  if (Path path{PathTo(function.body, is_it)}; !path.nodes.empty()) return path;
  std::vector<std::string> names;
  VisitEach<Kind>(function.body, [&](const Kind& one) { names.push_back(NameOf(one)); });
  return Refusal("there is no ", kind, " ", name, "; the ", kind, "s are ", absl::StrJoin(names, ", "));
}

}  // namespace

absl::StatusOr<Path> FindLoop(const Function& function, const std::string& name) {
  return Find<For>(function, "loop", name);
}

absl::StatusOr<Path> FindBlock(const Function& function, const std::string& name) {
  return Find<Block>(function, "block", name);
}

absl::StatusOr<Path> FindLoopAround(const Function& function, const std::string& name,
                                    const std::string& block) {
  MYCC_ASSIGN_OR_RETURN(Path path, FindLoop(function, name));
  if (ContainsBlock(path.loop().body, block)) return path;
  return Refusal(block, " is not under loop ", name);
}

absl::StatusOr<Path> FindAlloc(const Function& function, const Buffer& buffer) {
  const auto is_alloc = [&](const Stmt& s) {
    return s->kind == StmtKind::kAlloc && As<Alloc>(s).buffer == buffer;
  };
  if (Path path{PathTo(function.body, is_alloc)}; !path.nodes.empty()) return path;
  return Refusal(buffer->name, " is a parameter, not an allocated buffer");
}

absl::StatusOr<Function> WithoutAlloc(const Function& function, const Buffer& buffer) {
  MYCC_ASSIGN_OR_RETURN(const Path alloc, FindAlloc(function, buffer));
  return WithBody(function, ReplaceAt(alloc, As<Alloc>(alloc.target()).body));
}

bool IsParam(const Function& function, const Buffer& buffer, std::optional<ParamKind> kind) {
  const auto param = std::ranges::find(function.params, buffer, &Param::buffer);
  return param != function.params.end() && param->kind == kind.value_or(param->kind);
}

Stmt ReplaceAt(const Path& path, Stmt replacement) {
  Stmt current = std::move(replacement);
  for (size_t i = path.nodes.size() - 1; i-- > 0;) {
    const Stmt& parent = path.nodes[i];
    const Stmt& old = path.nodes[i + 1];
    if (parent->kind == StmtKind::kSeq) {
      std::vector<Stmt> stmts = As<Seq>(parent).stmts;
      std::ranges::replace(stmts, old, current);
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

Function WithLoopBody(const Function& function, const Path& loop, Stmt body) {
  return WithBody(function, ReplaceAt(loop, loop.loop().With({.body = std::move(body)})));
}

std::vector<const Block*> BlocksUnder(const Stmt& stmt) {
  std::vector<const Block*> blocks;
  VisitEach<Block>(stmt, [&](const Block& block) { blocks.push_back(&block); });
  return blocks;
}

const Block* WriterOf(const Function& function, const Buffer& buffer) {
  const Block* writer = nullptr;
  for (const Block* block : BlocksUnder(function.body)) {
    if (block->Writes(buffer)) writer = block;
  }
  return writer;
}

absl::Status CheckOnlyWriter(const Function& function, const Block& block) {
  for (const Block* other : BlocksUnder(function.body)) {
    if (other->Writes(block.out) && other->name != block.name) {
      return Refusal(other->name, " writes ", block.out->name, " too");
    }
  }
  return absl::OkStatus();
}

bool Reads(const Block& block, const Buffer& buffer) {
  bool found = std::ranges::any_of(block.indices, [&](const Expr& index) { return Loads(index, buffer); });
  block.ForEachValue([&](const Expr& value) { found = found || Loads(value, buffer); });
  return found;
}

std::vector<const ExprNode*> LoadsOf(const Block& block) {
  std::vector<const ExprNode*> loads;
  const auto add = [&](const ExprNode& load) { loads.push_back(&load); };
  block.ForEachValue([&](const Expr& value) { ForEachLoad(value, add); });
  for (const Expr& index : block.indices) ForEachLoad(index, add);
  return loads;
}

bool ReadsAnywhere(const Stmt& stmt, const Buffer& buffer) {
  return AnyOf<Block>(stmt, [&](const Block& block) { return Reads(block, buffer); });
}

bool ContainsBlock(const Stmt& stmt, const std::string& name) {
  return AnyOf<Block>(stmt, [&](const Block& block) { return block.name == name; });
}

VarSet LoopVarsUnder(const Stmt& stmt) {
  VarSet vars;
  VisitEach<For>(stmt, [&](const For& loop) { vars.insert(loop.var.get()); });
  return vars;
}

VarSet LoopVarsOn(const Path& path) {
  VarSet vars;
  for (const For* loop : LoopsOn(path)) vars.insert(loop->var.get());
  return vars;
}

std::vector<const For*> LoopsOn(const Path& path) {
  std::vector<const For*> loops;
  loops.reserve(path.nodes.size());
  for (const Stmt& node : path.nodes) {
    if (node->kind == StmtKind::kFor) loops.push_back(&As<For>(node));
  }
  return loops;
}

std::vector<const For*> LoopsInside(const Path& path, const For& loop) {
  const std::vector<const For*> loops = LoopsOn(path);
  const auto at = std::ranges::find(loops, &loop);
  return at == loops.end() ? std::vector<const For*>() : std::vector<const For*>(at + 1, loops.end());
}

VarMap BindingsOf(const Block& block) {
  VarMap map;
  for (const IterVar& iter : block.iters) map.emplace(iter.var.get(), iter.binding);
  return map;
}

std::vector<Var> ReduceAxesOf(const Block& block) {
  std::vector<Var> axes;
  for (const IterVar& iter : block.iters) {
    if (iter.reduce) axes.push_back(iter.var);
  }
  return axes;
}

std::shared_ptr<Block> MakeBlock(std::string name, std::vector<IterVar> iters, Buffer out,
                                 std::vector<Expr> indices, Expr value) {
  auto block = std::make_shared<Block>();
  block->name = std::move(name);
  block->iters = std::move(iters);
  block->out = std::move(out);
  block->indices = std::move(indices);
  block->value = std::move(value);
  return block;
}

Var AddGuard(Block* block, int64_t extent, Expr index) {
  const Var guard = MakeVar(absl::StrCat("g", block->iters.size()), extent);
  block->iters.push_back({guard, false, std::move(index)});
  return guard;
}

VarMap ValuesAt(const std::vector<const For*>& loops, Expr number) {
  VarMap values;
  for (size_t l = loops.size(); l-- > 0;) {
    const int64_t extent = loops[l]->var->extent;
    values[loops[l]->var.get()] = l == 0 ? number : Simplify(Mod(number, extent));
    number = Simplify(FloorDiv(number, extent));
  }
  return values;
}

VarMap DigitsOf(const std::vector<const For*>& loops, const Expr& number) {
  VarMap values;
  int64_t stride = 1;
  for (size_t l = loops.size(); l-- > 0;) {
    const int64_t extent = loops[l]->var->extent;
    const Expr quotient = FloorDiv(number, stride);
    values[loops[l]->var.get()] = l == 0 ? quotient : Mod(quotient, extent);
    stride *= extent;
  }
  return values;
}

absl::StatusOr<Buffer> FindAllocated(const Function& function, const std::string& name) {
  const auto is_it = [&](const Alloc& alloc) { return alloc.buffer->name == name; };
  if (const Alloc* alloc = FirstOf<Alloc>(function.body, is_it)) return alloc->buffer;
  return Refusal("there is no allocated buffer ", name);
}

absl::StatusOr<Buffer> FindBuffer(const Function& function, const std::string& name) {
  for (const Param& param : function.params) {
    if (param.buffer->name == name) return param.buffer;
  }
  return FindAllocated(function, name);
}

std::string FreshName(const Function& function, const std::string& base) {
  const auto is_taken = [&](const std::string& name) {
    return FindBuffer(function, name).ok() || ContainsBlock(function.body, name);
  };
  return FirstFree(base, is_taken);
}

std::vector<Stmt> PartsOf(const Stmt& body) {
  if (const Alloc* alloc = DynAs<Alloc>(body)) return PartsOf(alloc->body);
  return StmtsOf(body);
}

Stmt WithParts(const Stmt& body, std::vector<Stmt> parts) {
  const Alloc* alloc = DynAs<Alloc>(body);
  if (alloc == nullptr) return MakeSeq(std::move(parts));
  return std::make_shared<Alloc>(alloc->buffer, WithParts(alloc->body, std::move(parts)));
}

Stmt InsertBeforeReader(const Stmt& body, const std::vector<Buffer>& buffers, const Stmt& stmt) {
  std::vector<Stmt> parts = PartsOf(body);
  const auto reader = std::ranges::find_if(parts, [&](const Stmt& part) {
    return std::ranges::any_of(buffers, [&](const Buffer& buffer) { return ReadsAnywhere(part, buffer); });
  });
  MYCC_CHECK(reader != parts.end()) << "no reader of " << buffers[0]->name;
  parts.insert(reader, stmt);
  return WithParts(body, std::move(parts));
}

Stmt Append(const Stmt& body, const Stmt& stmt) {
  std::vector<Stmt> parts = PartsOf(body);
  parts.push_back(stmt);
  return WithParts(body, std::move(parts));
}

}  // namespace mycc
