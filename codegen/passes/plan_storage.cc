// Moves buffers that are too large for the stack to the workspace: the call's, or the running thread's for an
// Alloc inside a parallel loop. On a GPU these are the buffers outside of all loops, through which launches
// pass data. Buffers that are never live at the same time may overlap, in the workspace and in a GPU's shared
// memory.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "codegen/expr/integers.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/passes.h"

namespace mycc {
namespace {

// Buffers up to this size stay on the running thread's stack.
constexpr int64_t kMaxStackBytes = int64_t{16} * 1024;
// Unused bytes after a buffer: a vector load of its last elements may read past them.
constexpr int64_t kSlack = 64;

// Whether the buffer of an Alloc inside `loops` loops is to be placed.
using Selector = std::function<bool(const BufferNode& buffer, size_t loops)>;

// A buffer and its live range in statement numbers.
struct Live {
  Buffer buffer;
  bool per_thread = false;
  int first = -1, last = -1;
  size_t depth = 0;  // loops around its Alloc
  int64_t bytes = 0;
  int64_t alignment = 64;
  int64_t offset = 0;

  bool Overlaps(const Live& other) const {
    return per_thread == other.per_thread && first <= other.last && other.first <= last;
  }
};

class Liveness {
 public:
  explicit Liveness(Selector selector) : selector_(std::move(selector)) {}

  std::vector<Live> Run(const Stmt& body) {
    Walk(body, /*per_thread=*/false);
    return std::move(live_);
  }

 private:
  void Walk(const Stmt& stmt, bool per_thread) {
    const int start = ++clock_;
    if (const Alloc* alloc = DynAs<Alloc>(stmt);
        alloc != nullptr && selector_(*alloc->buffer, loops_.size())) {
      live_.push_back(Live{alloc->buffer, per_thread, -1, -1, loops_.size()});
    }
    ForEachBuffer(stmt, [&](const Buffer& buffer) { Use(buffer, start); });
    const For* loop = DynAs<For>(stmt);
    if (loop != nullptr) {
      loops_.push_back(start);
      per_thread |= loop->loop_kind == LoopKind::kParallel;
    }
    for (const Stmt& child : Children(stmt)) Walk(child, per_thread);
    if (loop != nullptr) CloseLoop();
  }

  // A use extends the live range over each loop that is around it and inside the Alloc.
  void Use(const Buffer& buffer, int at) {
    const auto live = std::ranges::find(live_.rbegin(), live_.rend(), buffer, &Live::buffer);
    if (live == live_.rend()) return;
    if (live->first < 0) live->first = loops_.size() > live->depth ? loops_[live->depth] : at;
    live->last = std::max(live->last, at);
  }

  // A buffer that the loop has used, and whose Alloc is just outside of it, lives to its end.
  void CloseLoop() {
    const int end = ++clock_, start = loops_.back();
    loops_.pop_back();
    for (Live& live : live_) {
      if (live.depth == loops_.size() && live.last > start) live.last = end;
    }
  }

  const Selector selector_;
  int clock_ = 0;
  std::vector<int> loops_;  // where those around begin
  std::vector<Live> live_;
};

// The lowest offset at which `live` overlaps no placed buffer that is live at the same time.
int64_t LowestOffset(const Live& live, const std::vector<Live>& all, size_t placed) {
  int64_t offset = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < placed; ++i) {
      const Live& other = all[i];
      if (!live.Overlaps(other) || offset >= other.offset + other.bytes ||
          other.offset >= offset + live.bytes)
        continue;
      offset = RoundUp(other.offset + other.bytes, live.alignment);
      moved = true;
    }
  }
  return offset;
}

}  // namespace

Stmt MoveToWorkspace(const Stmt& body, const Target& target, LoweredFunction* lowered) {
  const bool on_gpu = target.kind == TargetKind::kCuda;
  const Selector selector = [&](const BufferNode& buffer, size_t loops) {
    if (buffer.scope == Scope::kShared || buffer.scope == Scope::kAccumulator) return false;
    return on_gpu ? loops == 0 : buffer.bytes() > kMaxStackBytes;
  };
  std::vector<Live> live = Liveness(selector).Run(body);
  for (size_t i = 0; i < live.size(); ++i) {
    live[i].bytes = RoundUp(live[i].buffer->bytes() + kSlack, live[i].alignment);
    live[i].offset = LowestOffset(live[i], live, i);
    int64_t& total = live[i].per_thread ? lowered->workspace_thread_bytes : lowered->workspace_shared_bytes;
    total = std::max(total, live[i].offset + live[i].bytes);
    lowered->workspace.push_back({live[i].buffer, live[i].per_thread, live[i].offset});
  }
  return RewriteEach<Alloc>(body, [&](const Alloc& alloc) {
    return std::ranges::find(live, alloc.buffer, &Live::buffer) == live.end() ? nullptr : alloc.body;
  });
}

SharedPlan PlanShared(const Stmt& launch) {
  // The hardware's swizzles depend on addresses, and repeat every 1024 bytes.
  constexpr int64_t kSwizzleAlignment = 1024, kAlignment = 16;
  // Buffers of asynchronous copies and of concurrent roles are live longer than the order of statements
  // shows.
  const bool asynchronous = Contains(launch, StmtKind::kCopy) || Contains(launch, StmtKind::kRoles);
  SharedPlan plan;
  std::vector<Live> live =
      Liveness([](const BufferNode& buffer, size_t) { return buffer.scope == Scope::kShared; }).Run(launch);
  for (size_t i = 0; i < live.size(); ++i) {
    const BufferNode& buffer = *live[i].buffer;
    live[i].alignment = asynchronous || buffer.swizzle_bytes() != 0 ? kSwizzleAlignment : kAlignment;
    live[i].bytes = RoundUp(buffer.memory_bytes(), kAlignment);
    live[i].offset = asynchronous ? RoundUp(plan.bytes, live[i].alignment) : LowestOffset(live[i], live, i);
    plan.bytes = std::max(plan.bytes, live[i].offset + live[i].bytes);
    plan.buffers.push_back({live[i].buffer, live[i].offset});
  }
  return plan;
}

}  // namespace mycc
