// Buffers of Allocs that are too large for the stack move to the workspace: the call's, or the running
// thread's where the Alloc stands inside a parallel loop. Buffers that are never live together share bytes.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "codegen/passes/passes.h"

namespace mycc {
namespace {

// Tiles up to this size stay on the stack of the thread that runs.
constexpr int64_t kMaxStackBytes = 16 * 1024;
// Bytes left free after a buffer, so that a vector load of its last elements may read past them.
constexpr int64_t kSlack = 64;

bool OnStack(const BufferNode& buffer) {
  return buffer.scope == Scope::kAccumulator || buffer.scope == Scope::kShared ||
         buffer.bytes() <= kMaxStackBytes;
}

// A buffer and the stretch of the program, in statement numbers, during which it holds something.
struct Live {
  Buffer buffer;
  bool per_thread = false;
  int first = -1, last = -1;
  size_t depth = 0;  // loops around its Alloc
  int64_t offset = 0;

  int64_t bytes() const { return (buffer->bytes() + kSlack + 63) / 64 * 64; }
  bool Overlaps(const Live& other) const {
    return per_thread == other.per_thread && first <= other.last && other.first <= last;
  }
};

class Liveness {
 public:
  std::vector<Live> Run(const Stmt& body) {
    Walk(body);
    return std::move(live_);
  }

 private:
  struct Range {
    int first, last;
  };

  void Walk(const Stmt& stmt) {
    const int start = ++clock_;
    if (const Alloc* alloc = DynAs<Alloc>(stmt); alloc != nullptr && !OnStack(*alloc->buffer)) {
      index_[alloc->buffer.get()] = live_.size();
      live_.push_back(Live{alloc->buffer, parallel_ > 0, -1, -1, loops_.size(), 0});
    }
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) {
        if (e.op == Op::kLoad) Use(*e.buffer, start);
      });
    });
    if (const Store* store = DynAs<Store>(stmt)) Use(*store->buffer, start);
    if (const Mma* mma = DynAs<Mma>(stmt)) {
      for (const TileView* view : {&mma->acc, &mma->a, &mma->b}) Use(*view->buffer, start);
    }
    const For* loop = DynAs<For>(stmt);
    if (loop != nullptr) {
      loops_.push_back(Range{start, 0});
      parallel_ += loop->loop_kind == LoopKind::kParallel;
    }
    for (const Stmt& child : Children(stmt)) Walk(child);
    if (loop != nullptr) {
      parallel_ -= loop->loop_kind == LoopKind::kParallel;
      CloseLoop(++clock_);
    }
  }

  // A use inside a loop that runs around it and inside the Alloc lives as long as that loop.
  void Use(const BufferNode& buffer, int at) {
    const auto it = index_.find(&buffer);
    if (it == index_.end()) return;
    Live& live = live_[it->second];
    const int from = loops_.size() > live.depth ? loops_[live.depth].first : at;
    if (live.first < 0) live.first = from;
    live.last = std::max(live.last, at);
    if (loops_.size() > live.depth) open_.push_back({it->second, live.depth});
  }

  void CloseLoop(int end) {
    const size_t closing = loops_.size() - 1;
    loops_.pop_back();
    for (auto it = open_.begin(); it != open_.end();) {
      if (it->loop != closing) {
        ++it;
        continue;
      }
      live_[it->live].last = std::max(live_[it->live].last, end);
      it = open_.erase(it);
    }
  }

  struct Open {
    size_t live;
    size_t loop;  // position in loops_
  };

  int clock_ = 0;
  int parallel_ = 0;
  std::vector<Range> loops_;
  std::vector<Open> open_;
  std::vector<Live> live_;
  std::unordered_map<const BufferNode*, size_t> index_;
};

// Lowest offset at which `live` overlaps none of the placed buffers that live at the same time.
int64_t LowestOffset(const Live& live, const std::vector<Live>& all, size_t placed) {
  int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < placed; ++i) {
      const Live& other = all[i];
      if (!live.Overlaps(other) || offset >= other.offset + other.bytes() ||
          other.offset >= offset + live.bytes())
        continue;
      offset = other.offset + other.bytes();
      moved = true;
    }
  }
  return offset;
}

}  // namespace

StoragePlan PlanStorage(const Stmt& body) {
  StoragePlan plan;
  std::vector<Live> live = Liveness().Run(body);
  for (size_t i = 0; i < live.size(); ++i) {
    live[i].offset = LowestOffset(live[i], live, i);
    int64_t& total = live[i].per_thread ? plan.thread_bytes : plan.shared_bytes;
    total = std::max(total, live[i].offset + live[i].bytes());
    plan.workspace.push_back(WorkspaceBuffer{live[i].buffer, live[i].per_thread, live[i].offset});
  }
  plan.body = RewriteStmts(body, [](const Stmt& stmt) -> Stmt {
    const Alloc* alloc = DynAs<Alloc>(stmt);
    return alloc != nullptr && !OnStack(*alloc->buffer) ? alloc->body : nullptr;
  });
  return plan;
}

}  // namespace mycc
