// Emits vector loops: each lane is scalar code, unrolled; loads and stores of consecutive elements become
// accesses of up to 16 bytes.
//
//   vector v in 4: y[i*4 + v] = x[i*4 + v] * 2      const Vec<float, 4> x_v = load_vec<4>(&x[i * 4]);
//                                              ->   Vec<float, 4> y_v;
//                                                   for v in 4: y_v.at[v] = x_v.at[v] * 2
//                                                   store_vec(&y[i * 4], y_v);
#include <algorithm>
#include <numeric>

#include "codegen/cuda/kernel_emitter.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

constexpr int64_t kMaxAccessBytes = 16;

// The number of writes to each buffer in a statement.
std::unordered_map<const BufferNode*, int> WritesUnder(const Stmt& root) {
  std::unordered_map<const BufferNode*, int> writes;
  VisitStmts(root, [&](const Stmt& stmt) {
    if (const Store* store = DynAs<Store>(stmt)) ++writes[store->buffer.get()];
    return true;
  });
  return writes;
}

bool ReadsUnder(const Stmt& root, const BufferNode* buffer) {
  bool reads = false;
  VisitStmts(root, [&](const Stmt& stmt) {
    ForEachExpr(stmt, [&](const Expr& expr) {
      Visit(expr, [&](const ExprNode& e) { reads |= e.op == Op::kLoad && e.buffer.get() == buffer; });
    });
    return !reads;
  });
  return reads;
}

}  // namespace

// The vector access of all lanes; nullopt when they are not consecutive, or not provably aligned.
std::optional<KernelEmitter::VectorAccess> KernelEmitter::VectorAccessOf(const Buffer& buffer,
                                                                         const std::vector<Expr>& indices,
                                                                         const For& loop) {
  const Place& place = PlaceOf(buffer);
  int64_t extent = 0;
  if (place.in_registers || !IsConstInt(loop.extent, &extent) || extent < 2) return std::nullopt;
  Linear flat = Flat(place, indices);
  const int64_t lane_step = flat.CoefficientOf(loop.var.get());
  if (lane_step != 1) return std::nullopt;
  std::erase_if(flat.terms, [&](const auto& term) {
    return term.first->op == Op::kVar && term.first->var.get() == loop.var.get();
  });
  int64_t common = std::gcd(flat.constant, extent);
  for (const auto& [atom, coefficient] : flat.terms) {
    if (UsesVar(atom, loop.var.get())) return std::nullopt;
    common = std::gcd(common, coefficient);
  }
  const int64_t element = DTypeBytes(buffer->dtype);
  int64_t count = std::min(kMaxAccessBytes, place.aligned_bytes) / element;
  while (count > 1 && (common % count != 0 || !IsPowerOfTwo(count))) --count;
  if (count < 2) return std::nullopt;
  return VectorAccess{count, std::move(flat)};
}

// Declares the vectors for all lanes: one, or an array.
KernelEmitter::Vectors KernelEmitter::DeclareVectors(const Buffer& buffer, VectorAccess access,
                                                     const For& loop) {
  Vectors vectors{Name(absl::StrCat(buffer->name, "_v")), buffer, std::move(access), 1};
  int64_t extent = 0;
  IsConstInt(loop.extent, &extent);
  vectors.number = extent / vectors.access.count;
  Line(prelude_.Use("Vec"), "<", arithmetic_.MemoryType(buffer->dtype), ", ", vectors.access.count, "> ",
       vectors.name, vectors.number > 1 ? absl::StrCat("[", vectors.number, "];") : ";");
  return vectors;
}

std::string KernelEmitter::LaneOf(const Vectors& vectors, const std::string& lane) {
  if (vectors.number == 1) return absl::StrCat(vectors.name, ".at[", lane, "]");
  const int64_t count = vectors.access.count;
  return absl::StrCat(vectors.name, "[", lane, " / ", count, "].at[", lane, " % ", count, "]");
}

// Calls `line` with each vector's name and the address of its first element.
void KernelEmitter::ForVectors(const Vectors& vectors,
                               const std::function<void(const std::string&, const std::string&)>& line) {
  Linear first = vectors.access.first;
  for (int64_t i = 0; i < vectors.number; ++i) {
    const std::string at = vectors.number > 1 ? absl::StrCat(vectors.name, "[", i, "]") : vectors.name;
    line(at, absl::StrCat("&", At(PlaceOf(vectors.buffer), first)));
    first.constant += vectors.access.count;
  }
}

// Vectorizes the loads of an expression that every lane executes if `condition` holds (empty: always).
void KernelEmitter::LoadVectors(const Expr& expr, const For& loop, const std::string& lane,
                                const std::unordered_set<const BufferNode*>& written,
                                const std::string& condition) {
  if (expr->op == Op::kSelect) {
    LoadVectors(expr->args[0], loop, lane, written, condition);
    if (UsesVar(expr->args[0], loop.var.get())) return;
    // The condition is the same in all lanes.
    const std::string taken = Value(expr->args[0]).At(kBothOf + 1);
    LoadVectors(expr->args[1], loop, lane, written,
                condition.empty() ? taken : absl::StrCat(condition, " && ", taken));
    return;
  }
  if (expr->op != Op::kLoad) {
    for (const Expr& arg : expr->args) LoadVectors(arg, loop, lane, written, condition);
    return;
  }
  if (written.count(expr->buffer.get()) != 0 || lanes_.count(expr.get()) != 0) return;
  auto access = VectorAccessOf(expr->buffer, expr->args, loop);
  if (!access) return;
  const Vectors vectors = DeclareVectors(expr->buffer, *std::move(access), loop);
  const char* load = launch_.read_once.count(expr->buffer.get()) != 0 ? "load_once" : "load_vec";
  const std::string guard = condition.empty() ? "" : absl::StrCat("if (", condition, ") ");
  ForVectors(vectors, [&](const std::string& at, const std::string& address) {
    Line(guard, at, " = ", prelude_.Use(load), "<", vectors.access.count, ">(", address, ");");
  });
  lanes_[expr.get()] = LaneOf(vectors, lane);
}

// Vectorizes stores that every lane executes, if they are the only use of their buffer in the loop.
std::vector<KernelEmitter::Vectors> KernelEmitter::StoreVectors(const std::vector<const Store*>& stores,
                                                                const For& loop, const std::string& lane) {
  const auto writes = WritesUnder(loop.body);
  std::vector<Vectors> vectors;
  for (const Store* store : stores) {
    if (writes.at(store->buffer.get()) > 1 || ReadsUnder(loop.body, store->buffer.get())) continue;
    auto access = VectorAccessOf(store->buffer, store->indices, loop);
    if (!access) continue;
    vectors.push_back(DeclareVectors(store->buffer, *std::move(access), loop));
    stored_lanes_[store] = LaneOf(vectors.back(), lane);
  }
  return vectors;
}

void KernelEmitter::EmitVectorLoop(const For& loop) {
  // The statements that every lane executes.
  const std::vector<Stmt> parts =
      loop.body->kind == StmtKind::kSeq ? As<Seq>(loop.body).stmts : std::vector<Stmt>{loop.body};
  std::vector<const Store*> stores;
  std::unordered_set<const BufferNode*> written;
  for (const Stmt& part : parts) {
    if (const Store* store = DynAs<Store>(part)) stores.push_back(store);
  }
  for (const auto& [buffer, times] : WritesUnder(loop.body)) written.insert(buffer);
  const bool all_memory = std::none_of(written.begin(), written.end(), [&](const BufferNode* buffer) {
    return places_.at(buffer).in_registers;
  });
  const int64_t replication = replication_;
  if (all_memory && OpenOneOfAlike()) {
    replication_ = 1;
  } else {
    OpenBlock();
  }
  const std::string lane = Name(loop.var->name);
  for (const Store* store : stores) LoadVectors(store->value, loop, lane, written, "");
  std::vector<Vectors> vectors;
  if (replication_ == 1) vectors = StoreVectors(stores, loop, lane);
  Line("#pragma unroll");
  Open("for (int ", lane, " = 0; ", lane, " < ", Index(loop.extent).text, "; ++", lane, ")");
  With(loop.var.get(), lane, [&] { Statement(loop.body); });
  Close();
  for (const Vectors& stored : vectors) {
    ForVectors(stored, [&](const std::string& at, const std::string& address) {
      Line(prelude_.Use("store_vec"), "(", address, ", ", at, ");");
    });
  }
  lanes_.clear();
  stored_lanes_.clear();
  replication_ = replication;
  Close();
}

}  // namespace mycc
