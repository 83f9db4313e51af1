// Walks scheduled IR once, and computes for each access its strides and footprint at every loop level.
#include "tuner/cost/nest.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "absl/container/inlined_vector.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/visit.h"
#include "tuner/cost/index_form.h"
#include "tuner/cost/op_counts.h"

namespace mycc {
namespace {

double ExtentOf(const For& loop) {
  int64_t extent = loop.var->extent;
  IsConstInt(loop.extent, &extent);
  return static_cast<double>(std::max<int64_t>(1, extent));
}

// An access while its forms are at hand: one for each dimension.
struct Pending {
  NestAccess access;
  std::vector<IndexForm> dims;
};

// The cover of one dimension of an access by some loops: the number of values, and how far apart they are, in
// bytes.
struct DimCover {
  double values, apart;
};
using DimCovers = absl::InlinedVector<DimCover, 8>;

// Aligned pieces of memory of `size` bytes that hold the elements. From the innermost dimension outwards,
// runs that lie closer than `size` join into longer ones.
double Pieces(const DimCovers& dims, double elem_bytes, double size) {
  double span = elem_bytes, pieces = 1;
  bool aligned = true;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d].values <= 1) continue;
    if (pieces == 1 && dims[d].apart <= std::max(size, span)) {
      span += (dims[d].values - 1) * dims[d].apart;
    } else {
      pieces *= dims[d].values;
      aligned = aligned && std::fmod(dims[d].apart, size) == 0;
    }
  }
  // Runs that begin anywhere end in one more piece than they fill, on average.
  return pieces * (aligned ? std::ceil(span / size) : 1 + (span - elem_bytes) / size);
}

void Cover(const IndexScope& scope, const Pending& pending, size_t level, NestAccess* access) {
  const BufferNode& buffer = *access->buffer;
  const double bytes = DTypeBytes(buffer.dtype);
  double elements = 1;
  DimCovers dims;
  for (size_t d = 0; d < pending.dims.size(); ++d) {
    double smallest = std::numeric_limits<double>::infinity();
    for (size_t l = level; l < scope.num_loops(); ++l) {
      const double step = std::abs(pending.dims[d].per_step[l]);
      if (step != 0 && scope.extent(l) > 1) smallest = std::min(smallest, step);
    }
    const double values =
        std::min(static_cast<double>(buffer.shape[d]), scope.Values(pending.dims[d], level));
    const double step = std::isinf(smallest) ? 1 : std::max(1.0, smallest);
    dims.push_back({values, step * static_cast<double>(buffer.stride(static_cast<int>(d))) * bytes});
    elements *= values;
  }
  access->elements.push_back(elements);
  access->line_bytes.push_back(
      kLineBytes * (access->gather ? elements : std::min(elements, Pieces(dims, bytes, kLineBytes))));
  access->pages.push_back(access->gather ? elements : std::min(elements, Pieces(dims, bytes, kPageBytes)));
}

bool MoveAlike(const std::vector<IndexForm>& a, const std::vector<IndexForm>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const IndexForm& x, const IndexForm& y) { return x.per_step == y.per_step; });
}

void AddAccess(const IndexScope& scope, const Buffer& buffer, const std::vector<Expr>& indices, bool write,
               std::vector<Pending>* all) {
  std::vector<IndexForm> dims;
  dims.reserve(indices.size());
  for (const Expr& index : indices) dims.push_back(scope.FormOf(index));
  for (Pending& known : *all) {
    if (known.access.buffer == buffer && known.access.write == write && MoveAlike(known.dims, dims)) {
      ++known.access.count;
      return;
    }
  }
  Pending& pending = all->emplace_back();
  pending.access.buffer = buffer;
  pending.access.write = write;
  pending.access.stride.assign(scope.num_loops(), 0.0);
  for (size_t d = 0; d < dims.size(); ++d) {
    pending.access.gather = pending.access.gather || dims[d].gather;
    const double stride = static_cast<double>(buffer->stride(static_cast<int>(d)));
    for (size_t l = 0; l < scope.num_loops(); ++l) pending.access.stride[l] += dims[d].per_step[l] * stride;
  }
  pending.dims = std::move(dims);
}

void AddLoads(const IndexScope& scope, const Expr& expr, std::vector<Pending>* all) {
  if (expr->op == Op::kLoad) AddAccess(scope, expr->buffer, expr->args, false, all);
  for (const Expr& arg : expr->args) AddLoads(scope, arg, all);
}

// The share of instances inside the iteration domains. Variables over the same loops (a guard and what it
// guards) count once.
void SetUseful(const std::vector<std::pair<IndexForm, double>>& domains, const IndexScope& scope,
               NestBlock* nest) {
  std::vector<double> by_loop(scope.num_loops(), 1.0);
  for (const auto& [form, extent] : domains) {
    double covered = 0, step = 1;  // a quotient moves by less than one
    size_t outermost = scope.num_loops();
    for (size_t l = scope.num_loops(); l-- > 0;) {
      if (form.per_step[l] == 0) continue;
      covered += std::abs(form.per_step[l]) * (scope.extent(l) - 1);
      step = std::min(step, std::abs(form.per_step[l]));
      outermost = l;
    }
    covered += step;
    if (outermost == scope.num_loops()) continue;
    const double share = std::min(1.0, extent / std::min(covered, form.distinct));
    by_loop[outermost] = std::min(by_loop[outermost], share);
    if (nest->lane >= 0 && form.per_step[nest->lane] != 0 && share < nest->lane_useful) {
      nest->lane_useful = share;
      nest->lane_covered = extent / share;
    }
  }
  for (const double share : by_loop) nest->useful *= share;
}

// The lane loop: the one bound to vectors, or, inside an instruction, the innermost one that moves the output
// by one element.
void SetTile(NestBlock* nest) {
  bool in_instruction = false;
  for (NestLoop& loop : nest->loops) {
    loop.in_tile = in_instruction || loop.loop->loop_kind == LoopKind::kUnroll ||
                   loop.loop->loop_kind == LoopKind::kVector;
    if (!loop.loop->marks.instruction.empty()) {
      in_instruction = true;
      nest->instruction = loop.loop->marks.instruction;
    }
  }
  nest->tile_begin = nest->loops.size();
  while (nest->tile_begin > 0 && nest->loops[nest->tile_begin - 1].in_tile) --nest->tile_begin;
  for (size_t l = nest->tile_begin; l < nest->loops.size(); ++l) {
    if (nest->loops[l].loop->loop_kind == LoopKind::kVector) nest->lane = static_cast<int>(l);
  }
}

void SetInstructionLane(NestBlock* nest) {
  if (nest->instruction.empty() || nest->lane >= 0) return;
  for (size_t l = nest->tile_begin; l < nest->loops.size(); ++l) {
    if (nest->accesses[0].stride[l] == 1) nest->lane = static_cast<int>(l);
  }
}

class Analyzer {
 public:
  explicit Analyzer(const Function& function) {
    nest_.body = function.body;
    for (const Param& param : function.params) {
      if (param.kind == ParamKind::kConst) constant_.insert(param.buffer.get());
      params_.insert(param.buffer.get());
      nest_.param_bytes += static_cast<double>(param.buffer->bytes());
    }
    FindWriters(function.body);
    Root(function.body);
  }

  FunctionNest Take() {
    nest_.groups = group_;
    return std::move(nest_);
  }

 private:
  void FindWriters(const Stmt& stmt) {
    if (const For* loop = DynAs<For>(stmt)) {
      loops_.push_back(loop);
      FindWriters(loop->body);
      loops_.pop_back();
    } else if (const Block* block = DynAs<Block>(stmt)) {
      for (const Buffer& buffer : ReducedBy(*block).buffers) {
        std::vector<const For*>& around = writers_[buffer.get()];
        around.insert(around.end(), loops_.begin(), loops_.end());
      }
    } else {
      for (const Stmt& child : Children(stmt)) FindWriters(child);
    }
  }

  // Statements outside all loops: each is a group.
  void Root(const Stmt& stmt) {
    if (const Seq* seq = DynAs<Seq>(stmt)) {
      for (const Stmt& part : seq->stmts) Root(part);
    } else if (stmt->kind == StmtKind::kAlloc) {
      Enter(As<Alloc>(stmt));
      Root(As<Alloc>(stmt).body);
    } else {
      const size_t first = nest_.blocks.size();
      Walk(stmt);
      SetAheadOfTime(first);
      ++group_;
    }
  }

  void Walk(const Stmt& stmt) {
    switch (stmt->kind) {
      case StmtKind::kFor: {
        const For& loop = As<For>(stmt);
        const bool region = loop.loop_kind == LoopKind::kParallel && !InParallel();
        if (region) {
          double entered = 1;
          for (const For* outer : loops_) entered *= ExtentOf(*outer);
          nest_.parallel_regions += entered;
        }
        loops_.push_back(&loop);
        Walk(loop.body);
        loops_.pop_back();
        return;
      }
      case StmtKind::kAlloc: Enter(As<Alloc>(stmt)); return Walk(As<Alloc>(stmt).body);
      case StmtKind::kBlock: return Add(As<Block>(stmt));
      default:
        for (const Stmt& child : Children(stmt)) Walk(child);
    }
  }

  bool InParallel() const {
    return std::ranges::any_of(loops_,
                               [](const For* loop) { return loop->loop_kind == LoopKind::kParallel; });
  }

  void Enter(const Alloc& alloc) {
    nest_.allocs.push_back({alloc.buffer, loops_.size()});
    if (alloc.buffer->scope != Scope::kAccumulator)
      nest_.workspace_bytes += static_cast<double>(alloc.buffer->bytes());
  }

  void Add(const Block& block) {
    std::vector<IndexScope::Loop> scope_loops;
    NestBlock nest{&block};
    nest.group = group_;
    for (const For* loop : loops_) {
      nest.loops.push_back({loop, ExtentOf(*loop)});
      scope_loops.push_back({loop->var.get(), nest.loops.back().extent});
    }
    SetTile(&nest);
    IndexScope scope(std::move(scope_loops));
    std::vector<std::pair<IndexForm, double>> domains;
    for (const IterVar& iter : block.iters) {
      IndexForm form = scope.FormOf(iter.binding);
      for (size_t l = 0; l < nest.loops.size(); ++l)
        nest.loops[l].reduces |= iter.reduce && form.per_step[l] != 0;
      domains.emplace_back(form, static_cast<double>(iter.var->extent));
      scope.Bind(iter.var.get(), std::move(form));
    }
    std::vector<Pending> pending;
    AddAccess(scope, block.out, block.indices, true, &pending);
    block.ForEachValue([&](const Expr& value) { AddLoads(scope, value, &pending); });
    for (Pending& p : pending) {
      p.access.produced_here = !p.access.write && writers_.contains(p.access.buffer.get());
      for (size_t level = 0; level <= nest.loops.size(); ++level) Cover(scope, p, level, &p.access);
      nest.accesses.push_back(std::move(p.access));
    }
    for (size_t l = 0; l < nest.loops.size(); ++l) nest.loops[l].moves_out = nest.accesses[0].stride[l] != 0;
    SetInstructionLane(&nest);
    SetUseful(domains, scope, &nest);
    nest.ops = CountOps(nest, scope, writers_);
    nest_.blocks.push_back(std::move(nest));
  }

  // A group that reads const inputs alone, or what earlier such groups made of them, runs when the weights
  // are packed.
  void SetAheadOfTime(size_t first) {
    BufferSet inside;
    bool reads = false;
    for (size_t b = first; b < nest_.blocks.size(); ++b) {
      for (const NestAccess& access : nest_.blocks[b].accesses) {
        const BufferNode* buffer = access.buffer.get();
        if (access.write && params_.count(buffer) > 0) return;
        if (!access.write && constant_.count(buffer) == 0 && inside.count(buffer) == 0) return;
        reads = reads || !access.write;
      }
      inside.insert(nest_.blocks[b].accesses[0].buffer.get());
    }
    if (!reads) return;
    for (size_t b = first; b < nest_.blocks.size(); ++b) nest_.blocks[b].ahead_of_time = true;
    constant_.insert(inside.begin(), inside.end());
  }

  FunctionNest nest_;
  std::vector<const For*> loops_;
  BufferSet params_, constant_;
  WriterLoops writers_;
  int group_ = 0;
};

}  // namespace

double NestBlock::Product(size_t from, size_t to) const {
  double product = 1;
  for (size_t l = from; l < to; ++l) product *= loops[l].extent;
  return product;
}

double NestBlock::elem_bytes() const {
  double bytes = DTypeBytes(block->out->dtype);
  block->ForEachValue([&](const Expr& value) { bytes = std::max<double>(bytes, DTypeBytes(value->dtype)); });
  return bytes;
}

double NestBlock::vectors(const Machine& machine) const {
  return lane < 0 ? 1 : std::ceil(loops[lane].extent * elem_bytes() / machine.vector_bytes);
}

double NestBlock::parallel_iterations() const {
  double iterations = 1;
  for (const NestLoop& loop : loops) {
    if (loop.loop->loop_kind == LoopKind::kParallel) iterations *= loop.extent;
  }
  return iterations;
}

double NestBlock::footprint_bytes(size_t level) const {
  double bytes = 0;
  for (const NestAccess& access : accesses) {
    if (access.buffer->scope != Scope::kAccumulator) bytes += access.line_bytes[level];
  }
  return bytes;
}

FunctionNest AnalyzeNest(const Function& function) { return Analyzer(function).Take(); }

}  // namespace mycc
