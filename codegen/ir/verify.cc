// One walk that tracks the variables, buffers and guards in scope, and keeps the first broken rule. It is one
// class in one file, because every rule needs the scopes of the walk.
#include "codegen/ir/verify.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/expr/print.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/guards.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/verify_lanes.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

constexpr int64_t kSharedAlignment = 16;  // bytes of a vector

// Walks a function and tracks the names in scope. The first broken rule is kept.
class Verifier {
 public:
  explicit Verifier(const Function& function) {
    is_scheduled_ = Contains(function.body, StmtKind::kBlock);
    for (const Param& param : function.params) {
      buffers_[param.buffer.get()] = BufferInfo{0, param.kind != ParamKind::kOutput};
    }
  }

  absl::Status Run(const Stmt& body) {
    Statement(body);
    return status_;
  }

 private:
  struct BufferInfo {
    size_t loops;  // the number of loops around its Alloc
    bool read_only;
  };

  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (!status_.ok()) return;
    status_ = absl::InternalError(absl::StrCat("verify: ", parts..., "; in ", StmtName(current_)));
  }

  void Statement(const Stmt& stmt) {
    if (!status_.ok()) return;
    const Stmt outer = std::exchange(current_, stmt);
    switch (stmt->kind) {
      case StmtKind::kSeq:
        for (const Stmt& part : As<Seq>(stmt).stmts) Statement(part);
        break;
      case StmtKind::kFor: CheckFor(As<For>(stmt)); break;
      case StmtKind::kIf: CheckIf(As<If>(stmt)); break;
      case StmtKind::kLet: CheckLet(As<Let>(stmt)); break;
      case StmtKind::kAlloc: CheckAlloc(As<Alloc>(stmt)); break;
      case StmtKind::kLaunch: CheckLaunch(As<Launch>(stmt)); break;
      case StmtKind::kBlock: CheckBlock(As<Block>(stmt)); break;
      case StmtKind::kStore: {
        const Store& store = As<Store>(stmt);
        Expression(store.value);
        if (store.value->dtype != store.buffer->dtype) {
          Fail(DTypeName(store.value->dtype), " is stored into ", store.buffer->name, " of ",
               DTypeName(store.buffer->dtype));
        }
        for (const ReadAhead& ahead : store.fetches) Expression(ahead.load);
        for (const Expr& load : store.turned) Expression(load);
        if (store.bypass_lanes != 0) CheckBypassed(store);
        Write(store.buffer, store.indices);
        break;
      }
      case StmtKind::kCombine: CheckCombine(As<Combine>(stmt)); break;
      case StmtKind::kMma: CheckMma(As<Mma>(stmt)); break;
      case StmtKind::kCopy: CheckCopy(As<Copy>(stmt)); break;
      case StmtKind::kVectors: CheckVectors(As<Vectors>(stmt)); break;
      case StmtKind::kBypass: CheckBypass(As<Bypass>(stmt)); break;
      case StmtKind::kTileMove: CheckTileMove(As<TileMove>(stmt)); break;
      case StmtKind::kTileRegion: CheckTileRegion(As<TileRegion>(stmt)); break;
      case StmtKind::kRoles: CheckRoles(As<Roles>(stmt)); break;
      case StmtKind::kArrive:
        BarrierIndex(As<Arrive>(stmt).barrier);
        if (As<Arrive>(stmt).cluster) CheckCluster(As<Arrive>(stmt).cluster);
        CheckArrivals(As<Arrive>(stmt));
        break;
      case StmtKind::kWait:
        BarrierIndex(As<Wait>(stmt).barrier);
        Expression(As<Wait>(stmt).phase);
        break;
      case StmtKind::kWaitProducts:
        if (As<WaitProducts>(stmt).pending < 0) Fail("a negative number of pending groups of products");
        break;
      case StmtKind::kWaitGroup:
        if (As<WaitGroup>(stmt).pending < 0) Fail("a negative number of pending groups");
        break;
      case StmtKind::kSignal: CheckFlag(As<Signal>(stmt).flags, As<Signal>(stmt).index); break;
      case StmtKind::kAwait: CheckFlag(As<Await>(stmt).flags, As<Await>(stmt).index); break;
      case StmtKind::kCommitProducts:
      case StmtKind::kCommitGroup:
      case StmtKind::kFence:
      case StmtKind::kTurn:
      case StmtKind::kBarrier: break;
    }
    current_ = outer;
  }

  // Loops.

  void CheckFor(const For& loop) {
    Expression(loop.extent);
    if (loop.extent->dtype != DType::kI64) return Fail("the extent of ", loop.var->name, " is no i64");
    int64_t extent = 0;
    const bool constant = IsConstInt(loop.extent, &extent);
    const std::optional<Interval> range = RangeOf(loop.extent);
    if (range && range->min > loop.var->extent) {
      Fail("loop ", loop.var->name, " of ", range->min, " iterations: its variable's range is ",
           loop.var->extent);
    }
    if (!constant && loop.loop_kind == LoopKind::kVector)
      Fail("vector loop ", loop.var->name, " has no constant extent");
    if (const std::string fault = LaneFormFault(loop); !fault.empty())
      return Fail("loop ", loop.var->name, " ", fault);
    if (loop.loop_kind == LoopKind::kParallel && roles_)
      Fail("parallel loop ", loop.var->name, " inside roles");
    if (!variables_.insert(loop.var.get()).second)
      Fail("the variable of loop ", loop.var->name, " is already in scope");
    // Lowering may clone loops (a main part and a tail); a schedule addresses them by name.
    if (is_scheduled_ && !loop_names_.insert(loop.var->name).second)
      Fail("two loops are named ", loop.var->name);
    const size_t mark = guards_.Mark();
    if (!constant || extent != loop.var->extent) guards_.AssumeWithin(VarRef(loop.var), loop.extent);
    loops_.push_back(&loop);
    Statement(loop.body);
    loops_.pop_back();
    guards_.Restore(mark);
    variables_.erase(loop.var.get());
  }

  void CheckIf(const If& branch) {
    Expression(branch.condition);
    if (branch.condition->dtype != DType::kBool) return Fail("the condition is no bool");
    Where(branch.condition, true, [&] { Statement(branch.then); });
    if (branch.otherwise) Where(branch.condition, false, [&] { Statement(branch.otherwise); });
  }

  // Checks the code that runs where the condition has this truth value.
  template <typename Check>
  void Where(const Expr& condition, bool value, const Check& check) {
    const size_t mark = guards_.Mark();
    guards_.Assume(condition, value);
    check();
    guards_.Restore(mark);
  }

  void CheckLet(const Let& let) {
    Expression(let.value);
    if (let.value->dtype != DType::kI64) return Fail("the value of ", let.var->name, " is no i64");
    if (guards_.ProvablyEscapes(let.value, let.var->extent))
      return Fail("the value of ", let.var->name, " is outside its range of ", let.var->extent);
    if (!variables_.insert(let.var.get()).second) Fail("variable ", let.var->name, " is already in scope");
    // The guard says nothing new, but a variable that it mentions need not take all values of its range.
    const size_t mark = guards_.Mark();
    guards_.AssumeWithin(VarRef(let.var), IntConst(let.var->extent));
    Statement(let.body);
    guards_.Restore(mark);
    variables_.erase(let.var.get());
  }

  void CheckAlloc(const Alloc& alloc) {
    if (!buffers_.emplace(alloc.buffer.get(), BufferInfo{loops_.size(), false}).second) {
      return Fail("buffer ", alloc.buffer->name, " is already in scope");
    }
    const Layout& layout = alloc.buffer->layout;
    bool has_shape = layout.dims.size() == alloc.buffer->shape.size();
    for (size_t d = 0; has_shape && d < layout.dims.size(); ++d)
      has_shape = layout.extent(d) == alloc.buffer->shape[d];
    if (!has_shape || !layout.IsInjective())
      return Fail("buffer ", alloc.buffer->name, " lies as ", layout.Text(),
                  "; expected a place of its own for each element");
    if (alloc.offset != Alloc::kNoOffset) CheckOffset(alloc);
    Statement(alloc.body);
    buffers_.erase(alloc.buffer.get());
  }

  // Launches.

  // The shape says what the loops and buffers of the body say.
  void CheckLaunch(const Launch& launch) {
    const LaunchShape& shape = launch.shape;
    if (launch_ != nullptr || roles_ != nullptr || !loops_.empty()) return Fail("a launch inside other code");
    Stmt inside;
    const int64_t grid = shape.cluster_reduce * IterationsOf(GridLoopsOf(launch.body, &inside));
    const int64_t threads = ThreadsUnder(inside), most = shape.threads * shape.cluster_reduce;
    if (shape.grid != grid) Fail("the grid loops have ", grid, " blocks");
    if (shape.threads < 1 || shape.threads % kThreadsOfWarp != 0 || threads > most)
      Fail(threads, " threads; expected at most ", most, ", whole warps of each block");
    if (shape.cluster < 1 || shape.grid % shape.cluster != 0)
      Fail("clusters of ", shape.cluster, " blocks do not divide the grid");
    launch_ = &launch;
    Statement(launch.body);
    launch_ = nullptr;
  }

  void CheckOffset(const Alloc& alloc) {
    if (launch_ == nullptr || alloc.buffer->scope != Scope::kShared)
      return Fail("an offset of ", alloc.buffer->name, ", which is not in the shared memory of a launch");
    const int64_t end = alloc.offset + alloc.buffer->bytes();
    if (alloc.offset < 0 || alloc.offset % kSharedAlignment != 0 || end > launch_->shape.shared_bytes) {
      Fail(alloc.buffer->name, " in bytes ", alloc.offset, "..", end,
           " of shared memory; expected multiples of ", kSharedAlignment, " up to ",
           launch_->shape.shared_bytes);
    }
  }

  void CheckCombine(const Combine& combine) {
    CheckAccumulators(ReducedBy(combine));
    const size_t mark = guards_.Mark();
    if (combine.condition) {
      Expression(combine.condition);
      guards_.Assume(combine.condition, true);
    }
    if (combine.reduce == ReduceOp::kNone) Fail("threads combine by no reduction");
    combine.ForEachBuffer([&](const Buffer& buffer) { Access(buffer, combine.indices); });
    guards_.Restore(mark);
  }

  // An accumulator for each part of the reduction, of its type, and all of one shape.
  void CheckAccumulators(const ReducedTuple& reduced) {
    if (reduced.reduce == ReduceOp::kArgMax || reduced.reduce == ReduceOp::kArgMin)
      return Fail(reduced.reduce.name(), " reduces tuples; expected its function");
    if (const absl::Status status = CheckReduction(reduced.reduce); !status.ok())
      return Fail(std::string(status.message()));
    if (reduced.reduce.arity() != static_cast<int>(reduced.buffers.size())) {
      return Fail("a reduction of ", reduced.reduce.arity(), " parts into ", reduced.buffers.size(),
                  " accumulators");
    }
    for (size_t i = 0; i < reduced.buffers.size(); ++i) {
      const Buffer& buffer = reduced.buffers[i];
      Expression(reduced.values[i]);
      if (reduced.values[i]->dtype != buffer->dtype) {
        Fail(DTypeName(reduced.values[i]->dtype), " is accumulated in ", buffer->name, " of ",
             DTypeName(buffer->dtype));
      }
      if (buffer->shape != reduced.buffers[0]->shape)
        Fail(buffer->name, " and ", reduced.buffers[0]->name, ", parts of a tuple, have different shapes");
      const TupleFunction* tuple = reduced.reduce.tuple();
      if (tuple != nullptr && tuple->parts[i].a->dtype != buffer->dtype) {
        Fail("part ", i, " of ", tuple->name, " is ", DTypeName(tuple->parts[i].a->dtype), "; ", buffer->name,
             " is ", DTypeName(buffer->dtype));
      }
    }
  }

  // Blocks.

  void CheckBlock(const Block& block) {
    if (!block_names_.insert(block.name).second) Fail("two blocks are named ", block.name);
    for (const IterVar& iter : block.iters) Expression(iter.binding);
    const size_t mark = guards_.Mark();
    for (const IterVar& iter : block.iters) {
      if (iter.binding->dtype != DType::kI64) return Fail("the binding of ", iter.var->name, " is no i64");
      if (!variables_.insert(iter.var.get()).second)
        Fail("iteration variable ", iter.var->name, " is already in scope");
      bindings_[iter.var.get()] = iter.binding;
      if (!IsWithin(iter.binding, iter.var->extent))
        guards_.AssumeWithin(iter.binding, IntConst(iter.var->extent));
    }
    CheckReductionOf(block);
    Write(block.out, block.indices);
    for (const Accumulator& accumulator : block.more) Write(accumulator.buffer, block.indices);
    for (const IterVar& iter : block.iters) variables_.erase(iter.var.get());
    bindings_.clear();
    guards_.Restore(mark);
  }

  void CheckReductionOf(const Block& block) {
    const auto reduced = std::ranges::count_if(block.iters, [](const IterVar& iter) { return iter.reduce; });
    CheckAccumulators(ReducedBy(block));
    if (block.reduce == ReduceOp::kNone && (reduced != 0 || block.init))
      Fail("reduction variables or init without a reduction");
    for (const IterVar& iter : block.iters) {
      if (iter.reduce) CheckSerialReduction(block, iter);
    }
  }

  // Iterations of a parallel loop must not share an accumulator.
  void CheckSerialReduction(const Block& block, const IterVar& iter) {
    const auto buffer = buffers_.find(block.out.get());
    if (buffer == buffers_.end()) return;
    for (size_t i = buffer->second.loops; i < loops_.size(); ++i) {
      if (loops_[i]->loop_kind == LoopKind::kParallel && UsesVar(iter.binding, loops_[i]->var.get())) {
        Fail("reduction variable ", iter.var->name, " runs over the parallel loop ", loops_[i]->var->name);
      }
    }
  }

  // Expressions, with their reads.

  void Expression(const Expr& expr) {
    switch (expr->op) {
      case Op::kVar:
        if (!variables_.contains(expr->var.get()))
          Fail("variable ", expr->var->name, " is used outside its scope");
        return;
      case Op::kLoad: return Access(expr->buffer, expr->args);
      case Op::kSelect: {
        Expression(expr->args[0]);
        const Expr condition = InLoops(expr->args[0]);
        int64_t known = 0;  // then the other arm is never evaluated
        if (IsConstInt(condition, &known)) return Expression(expr->args[known != 0 ? 1 : 2]);
        Where(condition, true, [&] { Expression(expr->args[1]); });
        return Where(condition, false, [&] { Expression(expr->args[2]); });
      }
      default:
        for (const Expr& arg : expr->args) Expression(arg);
        return;
    }
  }

  // The expression over loop variables only: iteration variables are replaced by their bindings.
  Expr InLoops(const Expr& expr) const {
    return bindings_.empty() ? expr : Simplify(Substitute(expr, bindings_));
  }

  // Checks one access: the indices, the buffer's scope, and rank, types and ranges of the indices.
  void Access(const Buffer& buffer, const std::vector<Expr>& indices) {
    for (const Expr& index : indices) Expression(index);
    const auto found = buffers_.find(buffer.get());
    if (found == buffers_.end()) return Fail("buffer ", buffer->name, " is used outside its scope");
    if (indices.size() != buffer->shape.size()) {
      return Fail(buffer->name, " of rank ", buffer->rank(), " is indexed by ", indices.size());
    }
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d]->dtype != DType::kI64) return Fail("an index of ", buffer->name, " is no i64");
      if (IsWithin(indices[d], buffer->shape[d])) continue;
      const Expr index = InLoops(indices[d]);
      // ProvablyEscapes is asked first: it derives no facts.
      if (!guards_.ProvablyEscapes(index, buffer->shape[d]) ||
          guards_.ProvablyInside(index, buffer->shape[d]))
        continue;
      const std::optional<Interval> reached = RangeOf(index);
      return Fail("index ", d, " of ", buffer->name, ", ", PrintExpr(index), ", reaches ", reached->min, "..",
                  reached->max, ", outside 0..", buffer->shape[d] - 1);
    }
    if (buffer->scope == Scope::kAccumulator) CheckConstantExtents(buffer, found->second.loops, indices);
  }

  void Write(const Buffer& buffer, const std::vector<Expr>& indices) {
    Access(buffer, indices);
    const auto found = buffers_.find(buffer.get());
    if (!status_.ok() || found == buffers_.end()) return;
    if (found->second.read_only) return Fail("input ", buffer->name, " is written");
    for (size_t i = found->second.loops; i < loops_.size(); ++i) {
      if (loops_[i]->loop_kind == LoopKind::kParallel) CheckDisjoint(buffer, i, indices);
    }
  }

  // Loops that index an accumulator are unrolled, because registers have names and no addresses.
  void CheckConstantExtents(const Buffer& buffer, size_t outer_loops, const std::vector<Expr>& indices) {
    for (size_t i = outer_loops; i < loops_.size(); ++i) {
      const Var& var = loops_[i]->var;
      const auto uses = [&](const Expr& index) { return UsesVar(InLoops(index), var.get()); };
      if (IsConstInt(loops_[i]->extent) || std::ranges::none_of(indices, uses)) continue;
      return Fail("accumulator ", buffer->name, " is indexed by loop ", var->name,
                  ", which has no constant extent");
    }
  }

  // Iterations of parallel loop number `parallel` must write different elements, where that can be decided.
  void CheckDisjoint(const Buffer& buffer, size_t parallel, const std::vector<Expr>& indices) {
    const Var& var = loops_[parallel]->var;
    if (var->extent < 2 || IsConstInt(loops_[parallel]->extent, 1) || guards_.Mentions(var.get())) return;
    const std::vector<Expr> in_loops = bindings_.empty() ? indices : SimplifiedAt(indices, bindings_);
    const auto users_of = [&](const Var& v) {
      return std::ranges::count_if(in_loops, [&](const Expr& index) { return UsesVar(index, v.get()); });
    };
    const auto users = users_of(var);
    if (users > 1) return;
    if (users == 0)
      return Fail("iterations of the parallel loop ", var->name, " write the same elements of ",
                  buffer->name);
    // c * v + k * u + ... with u an inner loop: iterations of v share elements when k divides c and u's
    // extent is large enough.
    const auto uses_it = [&](const Expr& index) { return UsesVar(index, var.get()); };
    const Linear linear = ToLinear(*std::ranges::find_if(in_loops, uses_it));
    const int64_t step = linear.CoefficientOf(var.get());
    for (size_t i = parallel + 1; i < loops_.size() && step != 0; ++i) {
      const Var& inner = loops_[i]->var;
      const int64_t k = linear.CoefficientOf(inner.get());
      if (k == 0 || step % k != 0 || std::abs(step / k) >= inner->extent ||
          !IsConstInt(loops_[i]->extent, inner->extent))
        continue;
      if (guards_.Mentions(inner.get()) || users_of(inner) != 1) continue;
      return Fail("iterations of the parallel loop ", var->name, " write overlapping elements of ",
                  buffer->name);
    }
  }

  // Tile statements and pipelines.

  // The whole view must lie in the buffer. Its first element is checked by its indices; its last one by the
  // strides, when the indices are constant.
  void CheckMma(const Mma& mma) {
    if (mma.group < 1) return Fail("groups of ", mma.group, " elements");
    if (mma.is_async && (mma.row() == nullptr || !mma.row()->is_async))
      return Fail(mma.instruction, " is not asynchronous; expected wgmma");
    const int64_t groups = (mma.k + mma.group - 1) / mma.group;
    const int64_t last = mma.k > 0 ? (mma.k - 1) % mma.group : 0;  // in the last group
    View(mma.acc, mma.m, mma.n, /*write=*/true);
    View(mma.a, mma.m, groups, /*write=*/false, last);
    View(mma.b, groups, mma.n, /*write=*/false, last);
  }

  // `beyond`: the number of elements after the last one that are accessed too.
  void View(const TileView& view, int64_t rows, int64_t cols, bool write, int64_t beyond = 0) {
    if (rows < 1 || cols < 1) return Fail("an empty tile");
    write ? Write(view.buffer, view.indices) : Access(view.buffer, view.indices);
    if (!status_.ok()) return;
    const int64_t corner = view.Row(rows - 1) + (cols - 1) * view.col_stride + beyond;
    const Expr last = FlatIndex(*view.buffer, view.indices) + corner;
    const int64_t elements = view.buffer->num_elements();
    if (!IsWithin(last, elements) && guards_.ProvablyEscapes(Simplify(last), elements)) {
      Fail("the ", rows, "x", cols, " view of ", view.buffer->name, " reaches past its end");
    }
  }

  // Stores past the caches, and sums in tile registers.

  void CheckBypass(const Bypass& bypass) {
    if (bypass_ != nullptr) return Fail("a bypass inside a bypass");
    if (bypass.outputs.empty()) return Fail("a bypass of no outputs");
    for (const Buffer& output : bypass.outputs) {
      if (!buffers_.contains(output.get())) Fail("buffer ", output->name, " is used outside its scope");
    }
    bypass_ = &bypass;
    Statement(bypass.body);
    bypass_ = nullptr;
  }

  // The innermost vector loop has the lanes.
  void CheckBypassed(const Store& store) {
    const auto& outputs = bypass_ == nullptr ? std::vector<Buffer>{} : bypass_->outputs;
    if (std::ranges::find(outputs, store.buffer) == outputs.end())
      return Fail(store.buffer->name, " is stored past the caches outside a bypass of it");
    const auto lanes = std::find_if(loops_.rbegin(), loops_.rend(),
                                    [](const For* loop) { return loop->loop_kind == LoopKind::kVector; });
    if (lanes == loops_.rend()) return Fail("no lanes are stored past the caches");
    const int64_t most = AlignedLanes(*store.buffer, store.indices, *(*lanes)->var);
    if (most % store.bypass_lanes != 0 || most == 0) {
      Fail(store.bypass_lanes, " lanes are stored past the caches from positions that are multiples of ",
           most);
    }
  }

  void CheckTileMove(const TileMove& move) {
    if (tiles_ == nullptr) return Fail("sums in tiles are moved outside their region");
    Access(move.view.buffer, move.view.indices);
    Statement(move.nest);
  }

  void CheckTileRegion(const TileRegion& region) {
    if (tiles_ != nullptr) return Fail("sums in tiles inside others");
    if (region.end->kind != StmtKind::kTileMove) Fail("sums in tiles end with ", StmtName(region.end));
    VisitEach<Mma>(region.products, [&](const Mma& mma) {
      if (mma.row() == nullptr || !mma.row()->in_tiles()) Fail(mma.instruction, " has no sums in tiles");
      const int64_t bytes = mma.k * DTypeBytes(mma.a.buffer->dtype);
      if (bytes > region.depth_bytes) Fail("a step of ", bytes, " bytes in tiles of ", region.depth_bytes);
    });
    tiles_ = &region;
    for (const Stmt* part : {&region.begin, &region.products, &region.end}) Statement(*part);
    tiles_ = nullptr;
  }

  void CheckVectors(const Vectors& vectors) {
    const For* loop = DynAs<For>(vectors.loop);
    if (loop == nullptr || loop->loop_kind != LoopKind::kVector) return Fail("vectors around no vector loop");
    for (const VectorMove& load : vectors.loads) CheckMove(load, loop->extent, /*write=*/false);
    for (const VectorMove& store : vectors.stores) CheckMove(store, loop->extent, /*write=*/true);
    Statement(vectors.loop);
    for (const auto* moves : {&vectors.loads, &vectors.stores}) {
      for (const VectorMove& move : *moves) buffers_.erase(move.lanes.get());
    }
  }

  void CheckMove(const VectorMove& move, const Expr& lanes, bool write) {
    if (move.lanes->rank() != 1 || !IsConstInt(lanes, move.lanes->shape[0]) || move.count < 1 ||
        move.lanes->shape[0] % move.count != 0) {
      return Fail(move.lanes->name, " for ", PrintExpr(lanes), " lanes is moved ", move.count,
                  " elements at a time");
    }
    const size_t mark = guards_.Mark();
    for (const Expr& condition : move.conditions) {
      Expression(condition);
      guards_.Assume(condition, true);
    }
    View({move.tensor, move.indices, move.lanes->shape[0], 1}, 1, move.lanes->shape[0], write);
    guards_.Restore(mark);
    if (!buffers_.emplace(move.lanes.get(), BufferInfo{loops_.size(), false}).second)
      Fail("buffer ", move.lanes->name, " is already in scope");
  }

  void CheckCopy(const Copy& copy) {
    Stmt inner = copy.body;
    while (const For* loop = DynAs<For>(inner)) inner = loop->body;
    if (const If* guard = DynAs<If>(inner)) inner = guard->otherwise ? nullptr : guard->then;
    const Store* store = DynAs<Store>(inner);
    if (store == nullptr) return Fail("a copy is a nest of loops around one store");
    Expr value = store->value;
    if (value->op == Op::kSelect && value->args[2]->op == Op::kConst) value = value->args[1];
    if (value->op != Op::kLoad) Fail("a copy computes its value");
    if (copy.barrier) BarrierIndex(copy.barrier);
    if (copy.cluster) {
      CheckCluster(copy.cluster);
      if (!copy.barrier) Fail("a multicast signals no barrier");
    }
    Statement(copy.body);
  }

  void CheckCluster(const Expr& cluster) {
    const bool is_loop = cluster->op == Op::kVar && !loops_.empty() &&
                         loops_.front()->marks.multicast_cluster && loops_.front()->var == cluster->var;
    if (!is_loop) Fail(PrintExpr(cluster), " is not the loop of the cluster around");
  }

  void CheckFlag(const Buffer& flags, const Expr& index) {
    if (!roles_) return Fail("a flag between thread blocks outside roles");
    if (flags->dtype != DType::kI32 || flags->scope != Scope::kGlobal || flags->rank() != 1)
      return Fail(flags->name, " holds no flags; expected one dimension of i32 in memory");
    Write(flags, {index});
  }

  void BarrierIndex(const Expr& index) {
    Expression(index);
    if (!roles_) return Fail("a barrier outside roles");
    const int64_t barriers = static_cast<int64_t>(roles_->barrier_counts.size());
    if (barriers == 0 || guards_.ProvablyEscapes(index, barriers)) {
      Fail("barrier ", PrintExpr(index), " is not one of ", barriers);
    }
  }

  // The tiles that threads read themselves, not by products or copies.
  static BufferSet LoadedUnder(const Stmt& role) {
    BufferSet loaded;
    VisitStmts(role, [&](const Stmt& stmt) {
      if (stmt->kind == StmtKind::kCopy) return false;
      ForEachLoad(stmt, [&](const ExprNode& load) { loaded.insert(load.buffer.get()); });
      if (const Vectors* vectors = DynAs<Vectors>(stmt)) {
        for (const VectorMove& move : vectors->loads) loaded.insert(move.tensor.get());
      }
      return true;
    });
    return loaded;
  }

  // Each warpgroup waits for its own products, so all of them must arrive.
  void CheckArrivals(const Arrive& arrive) {
    if (arrive.arrivals != std::max(warpgroups_, 1)) {
      Fail(arrive.arrivals, " arrivals in a role that multiplies by ", warpgroups_, " warpgroups; expected ",
           std::max(warpgroups_, 1));
    }
    for (const Buffer& tile : arrive.released) {
      if (!arrive.gathers && loaded_.contains(tile.get()))
        Fail("an arrival releases ", tile->name, ", which threads of its role read, without gathering them");
    }
    if (arrive.expected_bytes < 0) Fail("an arrival that expects ", arrive.expected_bytes, " bytes");
  }

  void CheckRoles(const Roles& roles) {
    if (roles_) return Fail("roles inside roles");
    for (const int count : roles.barrier_counts) {
      if (count < 1) Fail("a barrier of ", count, " arrivals");
    }
    roles_ = &roles;
    std::unordered_set<std::string> names;
    for (const Roles::Role& role : roles.roles) {
      if (!names.insert(role.name).second) Fail("two roles are named ", role.name);
      warpgroups_ = WarpgroupsUnder(role.body);
      loaded_ = LoadedUnder(role.body);
      Statement(role.body);
    }
    roles_ = nullptr;
  }

  absl::Status status_;
  Stmt current_;
  bool is_scheduled_ = false;
  const Launch* launch_ = nullptr;  // the enclosing launch
  const Roles* roles_ = nullptr;    // the enclosing roles
  const Bypass* bypass_ = nullptr;  // the enclosing bypass
  const TileRegion* tiles_ = nullptr;
  int warpgroups_ = 0;             // that multiply together in the enclosing role
  BufferSet loaded_;               // by threads of the enclosing role
  std::vector<const For*> loops_;  // enclosing loops, outermost first
  VarSet variables_;
  std::unordered_map<const BufferNode*, BufferInfo> buffers_;
  std::unordered_set<std::string> loop_names_, block_names_;
  VarMap bindings_;  // of the block being checked
  Guards guards_;
};

}  // namespace

absl::Status VerifyFunction(const Function& function) { return Verifier(function).Run(function.body); }

}  // namespace mycc
