// Derives the thread of each element from the thread loops in access indices, and checks that all accesses
// agree.
#include "codegen/passes/thread_registers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/print.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/stmt_facts.h"

namespace mycc {
namespace {

class ThreadWalk {
 public:
  ThreadWalk(const LaunchShape& shape, const ThreadRewrite& rewrite) : rewrite_(rewrite) {
    threads_.team = threads_.replication = shape.threads * shape.cluster_reduce;
  }

  Stmt Walk(const Stmt& stmt) {
    if (Stmt made = IsGridLoop(stmt) ? nullptr : rewrite_(stmt, threads_)) return made;
    if (const Roles* roles = DynAs<Roles>(stmt)) return WalkRoles(stmt, *roles);
    const int64_t around = threads_.replication, nest = threads_.nest;
    const For* loop = IsThreadLoop(stmt) ? &As<For>(stmt) : nullptr;
    if (loop != nullptr) {
      threads_.replication = ThreadsUnder(loop->body);
      if (nest == 0) threads_.nest = threads_.replication * loop->var->extent;
      threads_.loops[loop->var.get()] = ThreadDigit{1, threads_.replication, loop->var->extent};
    }
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc != nullptr && alloc->buffer->scope != Scope::kShared) {
      VarSet& loops = threads_.registers[alloc->buffer.get()];
      for (const auto& [var, digit] : threads_.loops) loops.insert(var);
    }
    Stmt made = MapChildren(stmt, [&](const Stmt& child) { return Walk(child); });
    if (alloc != nullptr) threads_.registers.erase(alloc->buffer.get());
    if (loop != nullptr) threads_.loops.erase(loop->var.get());
    threads_.nest = nest;
    threads_.replication = around;
    return made;
  }

 private:
  Stmt WalkRoles(const Stmt& stmt, const Roles& roles) {
    const int64_t block = threads_.team;
    threads_.in_role = true;
    std::vector<Stmt> bodies;
    for (const Roles::Role& role : roles.roles) {
      threads_.team = role.threads;
      threads_.replication = role.by_one ? 1 : role.threads;
      bodies.push_back(Walk(role.body));
    }
    threads_.in_role = false;
    threads_.team = threads_.replication = block;
    return bodies == Children(stmt) ? stmt : WithChildren(stmt, std::move(bodies));
  }

  const ThreadRewrite& rewrite_;
  ExecutingThreads threads_;
};

// One index, separated into the part of thread loops and the rest.
struct SplitIndex {
  std::vector<ThreadDigit> digits;
  Expr own;
  bool is_linear = true;  // in the thread loops' variables
};

// Merges digits that continue each other, so that a thread loop and its splits give the same distribution.
void Normalize(std::vector<ThreadDigit>* digits) {
  std::ranges::sort(*digits, std::greater(), &ThreadDigit::stride);
  for (size_t i = 0; i + 1 < digits->size();) {
    ThreadDigit& high = (*digits)[i];
    const ThreadDigit low = (*digits)[i + 1];
    if (high.stride != low.stride * low.extent || high.coefficient != low.coefficient * low.extent) {
      ++i;
      continue;
    }
    high = ThreadDigit{low.coefficient, low.stride, low.extent * high.extent};
    digits->erase(digits->begin() + static_cast<ptrdiff_t>(i) + 1);
  }
  std::ranges::sort(*digits, std::greater(), &ThreadDigit::coefficient);
}

SplitIndex Split(const Expr& index, const ThreadLoops& threads) {
  SplitIndex split;
  Linear linear = ToLinear(Simplify(index)), own;
  own.constant = linear.constant;
  for (const auto& [atom, coefficient] : linear.terms) {
    const auto thread = atom->op == Op::kVar ? threads.find(atom->var.get()) : threads.end();
    if (thread != threads.end()) {
      split.digits.push_back({coefficient, thread->second.stride, thread->second.extent});
      continue;
    }
    own.terms.emplace_back(atom, coefficient);
    split.is_linear &= !AnyExpr(atom, [&](const ExprNode& e) { return threads.contains(e.var.get()); });
  }
  Normalize(&split.digits);
  split.own = FromLinear(own);
  return split;
}

// The rest of an index without the range of the thread's digits: the part above a digit moves down.
Expr Close(Expr own, const std::vector<ThreadDigit>& digits) {
  for (const ThreadDigit& digit : digits) {
    const int64_t period = digit.coefficient * digit.extent;
    own = FloorDiv(own, period) * digit.coefficient + Mod(own, period);
  }
  return Simplify(own);
}

// Whether no value of the rest overlaps the range of the digits.
bool IsClear(const Expr& own, const std::vector<ThreadDigit>& digits) {
  return std::ranges::all_of(digits, [&](const ThreadDigit& digit) {
    const auto range = RangeOf(Simplify(Mod(own, digit.coefficient * digit.extent)));
    return digit.coefficient > 0 && range && range->max < digit.coefficient;
  });
}

// The digit of an outermost loop with no part of the index above it: an element's thread does not depend on
// the loop's extent.
constexpr int64_t kNoExtent = int64_t{1} << 20;

void ForgetTopExtent(SplitIndex* split, int64_t in_nest) {
  if (split->digits.empty()) return;
  ThreadDigit& top = split->digits.front();
  if (IsWithin(split->own, top.coefficient) && top.stride * top.extent == in_nest) top.extent = kNoExtent;
}

// One access of a buffer.
struct RegisterAccess {
  std::vector<Expr> indices;
  ThreadLoops threads;
  int64_t in_nest;  // threads of the nest that executes it
  bool is_write;

  // "acc[i,0]".
  std::string Where(const BufferNode& buffer) const {
    const auto print = [](std::string* text, const Expr& index) { absl::StrAppend(text, PrintExpr(index)); };
    return absl::StrCat(buffer.name, "[", absl::StrJoin(indices, ",", print), "]");
  }
};

using RegisterAccesses = std::unordered_map<const BufferNode*, std::vector<RegisterAccess>>;

// The threads that have their own buffer: those of the nest inside its Alloc. Without one, those that share
// the buffer.
int64_t ThreadsWith(const BufferNode& buffer, const ExecutingThreads& at, int64_t threads) {
  const VarSet& around = at.registers.at(&buffer);
  int64_t in_nest = 0;
  for (const auto& [var, digit] : at.loops) {
    if (around.contains(var)) {
      threads = std::min(threads, digit.stride);
    } else {
      in_nest = std::max(in_nest, digit.stride * digit.extent);
    }
  }
  return in_nest > 0 ? in_nest : threads;
}

// The accesses of buffers whose elements `threads` threads of a block may divide.
RegisterAccesses AccessesIn(const Stmt& block, int64_t threads) {
  RegisterAccesses accesses;
  const auto collect = [&](const Stmt& stmt, const ExecutingThreads& at) -> Stmt {
    const auto add = [&](const BufferNode& buffer, const std::vector<Expr>& indices, bool is_write) {
      const auto found = accesses.find(&buffer);
      if (found == accesses.end()) return;
      found->second.push_back({indices, at.loops, ThreadsWith(buffer, at, threads), is_write});
    };
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc != nullptr && IsInRegisters(*alloc->buffer) &&
        (at.loops.empty() || ThreadsUnder(alloc->body) > 1))
      accesses[alloc->buffer.get()];
    ForEachLoad(stmt, [&](const ExprNode& load) { add(*load.buffer, load.args, /*is_write=*/false); });
    if (const Store* store = DynAs<Store>(stmt)) add(*store->buffer, store->indices, /*is_write=*/true);
    if (const Combine* combine = DynAs<Combine>(stmt))
      combine->ForEachBuffer([&](const Buffer& buffer) { add(*buffer, combine->indices, true); });
    const Vectors* vectors = DynAs<Vectors>(stmt);
    if (vectors == nullptr) return nullptr;
    // Elements that a vector loop stores are consecutive along the last dimension.
    for (const VectorMove& store : vectors->stores) {
      std::vector<Expr> indices = store.indices;
      indices.back() = indices.back() + VarRef(As<For>(vectors->loop).var);
      add(*store.tensor, indices, /*is_write=*/true);
    }
    return nullptr;
  };
  RewriteInThreads(Launch({.threads = threads}, block), collect);
  return accesses;
}

std::string Describe(const std::vector<ThreadDigit>& digits) {
  if (digits.empty()) return "every thread";
  return absl::StrJoin(digits, " + ", [](std::string* text, const ThreadDigit& digit) {
    absl::StrAppend(text, digit.coefficient, " * (thread / ", digit.stride, " % ", digit.extent, ")");
  });
}

absl::Status Disagree(const BufferNode& buffer, const std::string& what) {
  return Refusal(buffer.name, " is in the threads' registers (scope ", ScopeName(buffer.scope), "), and ",
                 what, "; set_scope(", buffer.name, ", shared) shares it");
}

absl::Status AddAccess(const BufferNode& buffer, const RegisterAccess& access, const RegisterAccess& first,
                       Distribution* distribution) {
  for (size_t d = 0; d < access.indices.size(); ++d) {
    SplitIndex split = Split(access.indices[d], access.threads);
    if (!split.is_linear || !IsClear(split.own, split.digits)) {
      return Disagree(buffer, absl::StrCat("dimension ", d, " of ", access.Where(buffer),
                                           " does not determine the thread that has the element"));
    }
    ForgetTopExtent(&split, access.in_nest);
    if (&access == &first) distribution->digits.push_back(split.digits);
    if (split.digits != distribution->digits[d]) {
      return Disagree(buffer, absl::StrCat("in dimension ", d, " ", first.Where(buffer), " is of thread ",
                                           Describe(distribution->digits[d]), ", but ", access.Where(buffer),
                                           " of thread ", Describe(split.digits)));
    }
    const auto range = RangeOf(Close(split.own, split.digits));
    const int64_t whole = buffer.shape[d];
    const int64_t end = range && range->min >= 0 ? std::min(range->max + 1, whole) : whole;
    distribution->shape[d] = std::max(distribution->shape[d], end);
  }
  return absl::OkStatus();
}

// The number of threads with a copy of each element, without outer loops that index it.
int64_t ThreadsForAll(const RegisterAccess& access) {
  int64_t threads = access.in_nest;
  for (bool found = true; found;) {
    found = false;
    for (const auto& [var, digit] : access.threads) {
      if (!UsesVar(access.indices, var) || digit.stride * digit.extent != threads || digit.extent == 1)
        continue;
      threads = digit.stride;
      found = true;
    }
  }
  return threads;
}

absl::StatusOr<Distribution> Distribute(const BufferNode& buffer,
                                        const std::vector<RegisterAccess>& accesses) {
  Distribution distribution;
  distribution.shape.assign(buffer.rank(), 1);
  int64_t written = INT64_MAX, read = 0;
  for (const RegisterAccess& access : accesses) {
    MYCC_RETURN_IF_ERROR(AddAccess(buffer, access, accesses.front(), &distribution));
    const int64_t replication = ThreadsForAll(access);
    (access.is_write ? written : read) =
        access.is_write ? std::min(written, replication) : std::max(read, replication);
  }
  if (read > written) {
    return Disagree(buffer, absl::StrCat(written, " threads write it, but ", read, " read it"));
  }
  return distribution;
}

}  // namespace

std::shared_ptr<const Launch> RewriteInThreads(const Launch& launch, const ThreadRewrite& rewrite) {
  return std::make_shared<Launch>(launch.shape, ThreadWalk(launch.shape, rewrite).Walk(launch.body));
}

std::vector<Expr> OwnIndices(const Distribution& distribution, const std::vector<Expr>& indices,
                             const ThreadLoops& threads) {
  std::vector<Expr> own;
  for (size_t d = 0; d < indices.size(); ++d)
    own.push_back(Close(Split(indices[d], threads).own, distribution.digits[d]));
  return own;
}

absl::StatusOr<Distributions> DistributeRegisters(const Stmt& launch, int64_t threads) {
  Distributions distributions;
  for (const auto& [buffer, accesses] : AccessesIn(launch, threads)) {
    if (accesses.empty()) continue;
    MYCC_ASSIGN_OR_RETURN(distributions[buffer], Distribute(*buffer, accesses));
  }
  return distributions;
}

}  // namespace mycc
