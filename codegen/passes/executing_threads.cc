#include "codegen/passes/executing_threads.h"

#include <utility>
#include <vector>

#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

class ThreadWalk {
 public:
  ThreadWalk(const LaunchShape& shape, const ThreadRewrite& rewrite) : rewrite_(rewrite) {
    threads_.team = threads_.replication = shape.threads * shape.cluster_reduce;
  }

  Stmt Walk(const Stmt& stmt) {
    if (Stmt made = IsGridLoop(stmt) ? nullptr : rewrite_(stmt, threads_)) return made;
    const auto inside = [&] { return MapChildren(stmt, [&](const Stmt& child) { return Walk(child); }); };
    if (const Roles* roles = DynAs<Roles>(stmt)) return WalkRoles(stmt, *roles);
    if (IsThreadLoop(stmt)) return InThreadLoop(As<For>(stmt), inside);
    const Alloc* alloc = DynAs<Alloc>(stmt);
    if (alloc == nullptr || alloc->buffer->scope == Scope::kShared) return inside();
    auto& around = threads_.registers[alloc->buffer.get()];
    for (const auto& [var, digit] : threads_.loops) around.insert(var);
    Stmt made = inside();
    threads_.registers.erase(alloc->buffer.get());
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

  template <typename Inside>
  Stmt InThreadLoop(const For& loop, const Inside& inside) {
    const int64_t around = threads_.replication, nest = threads_.nest;
    threads_.replication = ThreadsUnder(loop.body);
    if (nest == 0) threads_.nest = threads_.replication * loop.var->extent;
    threads_.loops[loop.var.get()] = ThreadDigit{1, threads_.replication, loop.var->extent};
    Stmt made = inside();
    threads_.loops.erase(loop.var.get());
    threads_.nest = nest;
    threads_.replication = around;
    return made;
  }

  const ThreadRewrite& rewrite_;
  ExecutingThreads threads_;
};

}  // namespace

std::shared_ptr<const Launch> RewriteInThreads(const Launch& launch, const ThreadRewrite& rewrite) {
  return std::make_shared<Launch>(launch.shape, ThreadWalk(launch.shape, rewrite).Walk(launch.body));
}

}  // namespace mycc
