// Makes the accesses of vector loops whole: loads and stores of consecutive elements become accesses of up to
// 16 bytes. Each lane is scalar code.
//
//   vector v in 4: y[i*4 + v] = x[i*4 + v] * 2   ->   vectors
//                                                       load x.v = x[i*4], 4 at a time
//                                                       vector v in 4: y.v[v] = x.v[v] * 2
//                                                       store y[i*4] = y.v, 4 at a time
//
// A loop over two lanes that stores a product's left operand in registers packs them into one register. A
// store of sums as they are is marked, since the registers of a vector are neighbours.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/lanes.h"
#include "codegen/passes/passes.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/passes/thread_registers.h"

namespace mycc {
namespace {

constexpr int64_t kMaxAccessBytes = 16;

// The numbers of stores to buffers.
using StoreCounts = std::unordered_map<const BufferNode*, int>;
StoreCounts StoresUnder(const Stmt& root) {
  StoreCounts stores;
  VisitEach<Store>(root, [&](const Store& store) { ++stores[store.buffer.get()]; });
  return stores;
}

// Left operands of 16 bits that are stored in pairs: no statement but a product reads the tensor, and each
// store is the only one of a vector loop over two elements.
BufferSet PackedOperands(const Stmt& launch) {
  StoreCounts pairs, stores = StoresUnder(launch);
  BufferSet operands;
  VisitEach<Mma>(launch, [&](const Mma& mma) {
    if (mma.a.buffer->scope != Scope::kShared) operands.insert(mma.a.buffer.get());
  });
  VisitEach<For>(launch, [&](const For& loop) {
    const Store* store = DynAs<Store>(loop.body);
    const bool is_pair = loop.loop_kind == LoopKind::kVector && IsConstInt(loop.extent, 2);
    if (store != nullptr && is_pair) ++pairs[store->buffer.get()];
  });
  const BufferSet loaded = LoadedUnder(launch);
  std::erase_if(operands, [&](const BufferNode* operand) {
    return (operand->dtype != DType::kF16 && operand->dtype != DType::kBF16) || loaded.contains(operand) ||
           stores[operand] != pairs[operand];
  });
  return operands;
}

// The f32 accumulators in registers that loops add products to.
BufferSet SumsOfProducts(const Stmt& launch) {
  BufferSet sums;
  VisitEach<Store>(launch, [&](const Store& store) {
    if (ReductionOf(store) == ReduceOp::kSum && store.value->args[1]->op == Op::kMul &&
        store.buffer->scope == Scope::kAccumulator && store.buffer->dtype == DType::kF32)
      sums.insert(store.buffer.get());
  });
  return sums;
}

constexpr int64_t kMuchMore = 4;
constexpr int64_t kMaxLoads = int64_t{1} << 50;

// Counts the executed loads of each buffer, over all threads.
void CountLoads(const Stmt& root, int64_t times, std::unordered_map<const BufferNode*, int64_t>* loads) {
  if (const For* loop = DynAs<For>(root)) times = std::min(times * loop->var->extent, kMaxLoads);
  std::unordered_set<const ExprNode*> counted;  // a load that occurs twice in a statement counts once
  ForEachLoad(root, [&](const ExprNode& load) {
    if (counted.insert(&load).second) (*loads)[load.buffer.get()] += times;
  });
  for (const Stmt& child : Children(root)) CountLoads(child, times, loads);
}

// The tensors whose elements `launch`, one of the launches in `body`, reads once. Only inputs much larger
// than the outputs count: for others the gain of evicting their cache lines first is smaller than the cost of
// evicting half-read lines. Less than twice is once, to allow for partial tiles at the edges.
BufferSet ReadOnce(const Stmt& body, const Launch& launch) {
  const BufferSet written = WrittenUnder(body);
  BufferSet tensors = BuffersUnder(launch.body);  // from outside of it
  VisitEach<Alloc>(launch.body, [&](const Alloc& alloc) { tensors.erase(alloc.buffer.get()); });
  std::unordered_map<const BufferNode*, int64_t> loads;
  Stmt block;
  GridLoopsOf(launch.body, &block);
  CountLoads(block, launch.shape.grid / launch.shape.cluster_reduce, &loads);
  int64_t written_bytes = 0;
  for (const BufferNode* tensor : tensors) written_bytes += written.contains(tensor) ? tensor->bytes() : 0;
  std::erase_if(tensors, [&](const BufferNode* tensor) {
    return written.contains(tensor) || tensor->bytes() < kMuchMore * written_bytes ||
           loads[tensor] >= 2 * std::max<int64_t>(tensor->num_elements(), 1);
  });
  return tensors;
}

// Tensors of a launch by their uses, for its vector loops.
struct LaunchTensors {
  BufferSet once;    // ReadOnce
  BufferSet packed;  // PackedOperands
  BufferSet sums;    // SumsOfProducts
};

// One vector loop.
class LaneMoves {
 public:
  LaneMoves(const For& loop, const LaunchTensors& tensors, const ExecutingThreads& threads)
      : loop_(loop),
        tensors_(tensors),
        threads_(threads),
        written_(StoresUnder(loop.body)),
        read_(LoadedUnder(loop.body)),
        lanes_(ConstExtent(loop).value_or(0)) {
    for (const Stmt& part : StmtsOf(loop.body)) {
      if (const Store* store = DynAs<Store>(part)) stores_.push_back(store);
    }
  }

  Stmt Build() {
    const bool all_memory = std::ranges::none_of(
        written_, [&](const auto& written) { return threads_.registers.contains(written.first); });
    const bool by_one = all_memory && threads_.replication > 1;
    for (const Store* store : stores_) Loads(store->value, {});
    for (const Store* store : stores_) {
      if (tensors_.packed.contains(store->buffer.get())) MoveStore(*store, 2);
    }
    for (const Store* store : stores_) {
      if (by_one || threads_.replication == 1) VectorStore(*store);
    }
    return std::make_shared<Vectors>(std::move(load_moves_), loop_.With({.body = OverLanes(loop_.body)}),
                                     std::move(store_moves_), by_one);
  }

 private:
  // Elements of one access by all lanes; 1 when they are not consecutive, or not provably aligned.
  int64_t CountOf(const Buffer& tensor, const std::vector<Expr>& indices) const {
    if (threads_.registers.contains(tensor.get()) || lanes_ < 2) return 1;
    return ConsecutiveElements(tensor->layout, indices, loop_.var.get(),
                               std::gcd(kMaxAccessBytes / DTypeBytes(tensor->dtype), lanes_));
  }

  VectorMove Move(const Buffer& tensor, const std::vector<Expr>& indices, int64_t count) {
    const int number = ++moved_[tensor.get()];
    const std::string name = absl::StrCat(tensor->name, ".v", number == 1 ? "" : absl::StrCat(number));
    const VarMap first = {{loop_.var.get(), IntConst(0)}};
    return {MakeBuffer(name, tensor->dtype, {lanes_}, Scope::kLocal), tensor, Substitute(indices, first),
            count};
  }

  // The loads of an expression that every lane executes if the conditions hold.
  void Loads(const Expr& expr, std::vector<Expr> conditions) {
    if (expr->op == Op::kSelect) {
      Loads(expr->args[0], conditions);
      if (UsesVar(expr->args[0], loop_.var.get())) return;
      // The condition is the same in all lanes.
      conditions.push_back(expr->args[0]);
      return Loads(expr->args[1], std::move(conditions));
    }
    if (expr->op != Op::kLoad) {
      for (const Expr& arg : expr->args) Loads(arg, conditions);
      return;
    }
    if (written_.contains(expr->buffer.get()) || loaded_.contains(expr.get())) return;
    const int64_t count = CountOf(expr->buffer, expr->args);
    if (count == 1) return;
    VectorMove move = Move(expr->buffer, expr->args, count);
    move.conditions = std::move(conditions);
    move.once = tensors_.once.contains(expr->buffer.get());
    loaded_[expr.get()] = Load(move.lanes, {VarRef(loop_.var)});
    load_moves_.push_back(std::move(move));
  }

  // A store that every lane executes, if it is the only use of its tensor in the loop.
  void VectorStore(const Store& store) {
    if (written_.at(store.buffer.get()) > 1 || read_.contains(store.buffer.get())) return;
    const int64_t count = CountOf(store.buffer, store.indices);
    if (count == 1) return;
    MoveStore(store, count);
    store_moves_.back().sums =
        store.value->op == Op::kLoad && tensors_.sums.contains(store.value->buffer.get());
  }

  void MoveStore(const Store& store, int64_t count) {
    store_moves_.push_back(Move(store.buffer, store.indices, count));
    stored_[&store] = store_moves_.back().lanes;
  }

  // The lanes' code, over the moved elements.
  Stmt OverLanes(const Stmt& body) const {
    const auto in_lanes = [&](const Expr& expr) {
      return Rewrite(expr, [&](const Expr& e) -> Expr {
        const auto load = loaded_.find(e.get());
        return load == loaded_.end() ? nullptr : load->second;
      });
    };
    const Store* store = DynAs<Store>(body);
    if (store == nullptr) {
      const Stmt own = MapExprs(body, in_lanes);
      return MapChildren(own, [&](const Stmt& child) { return OverLanes(child); });
    }
    const auto stored = stored_.find(store);
    const Expr value = in_lanes(store->value);
    if (stored == stored_.end()) return std::make_shared<Store>(store->buffer, store->indices, value);
    return std::make_shared<Store>(stored->second, std::vector<Expr>{VarRef(loop_.var)}, value);
  }

  const For& loop_;
  const LaunchTensors& tensors_;
  const ExecutingThreads& threads_;
  const StoreCounts written_;
  const BufferSet read_;
  const int64_t lanes_;
  std::vector<const Store*> stores_;  // that every lane executes
  std::unordered_map<const BufferNode*, int> moved_;
  std::unordered_map<const ExprNode*, Expr> loaded_;
  std::unordered_map<const Store*, Buffer> stored_;
  std::vector<VectorMove> load_moves_, store_moves_;
};

}  // namespace

Stmt PlaceVectors(const Stmt& body) {
  return RewriteEach<Launch>(body, [&](const Launch& launch) {
    const LaunchTensors tensors = {ReadOnce(body, launch), PackedOperands(launch.body),
                                   SumsOfProducts(launch.body)};
    return RewriteInThreads(launch, [&](const Stmt& stmt, const ExecutingThreads& threads) -> Stmt {
      if (stmt->kind == StmtKind::kCopy) return stmt;
      const For* loop = DynAs<For>(stmt);
      if (loop == nullptr || loop->loop_kind != LoopKind::kVector) return nullptr;
      const StoreTargets targets = TargetsOf(
          loop->body, [&](const BufferNode& buffer) { return threads.registers.contains(&buffer); });
      if (targets == StoreTargets::kOther || (targets == StoreTargets::kBoth && threads.replication > 1))
        return nullptr;
      return LaneMoves(*loop, tensors, threads).Build();
    });
  });
}

}  // namespace mycc
