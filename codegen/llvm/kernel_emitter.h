// Emits the body of one kernel as one LLVM function. A parallel region becomes a function of its own, with
// its own emitter.
//
// A vector loop is emitted by widening: inside it, an expression that depends on the loop's variable is a
// vector with one lane for each iteration. Other values stay scalar, and are broadcast where an operation has
// both. Thread rule: one owner.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/expr/affine.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/function.h"
#include "codegen/llvm/builder.h"
#include "codegen/llvm/kernel_layout.h"
#include "codegen/passes/tile_grid.h"

namespace mycc {

// The context that the functions of one kernel share.
struct KernelContext {
  llvm::Module& module;
  const KernelLayout& layout;
  const std::vector<AliasScope>& scopes;  // by alias group
  const CpuFeatures features;
  const int vector_bytes;
  const int registers;  // number of vector registers
  const std::string symbol;
  int regions = 0;  // parallel regions so far, for their names
};

// Operations that sums of terms are made of.
inline bool IsLinearOp(Op op) { return op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kNeg; }

class LaneProducts;

class LlvmKernelEmitter {
 public:
  // The arguments of a body; see emit.h. `thread` is the running thread's number.
  struct Arguments {
    Value* tensors;
    Value* shared;
    Value* threads;
    Value* thread;
  };

  // Emits into a `function` that has no block yet; Body may be called once.
  LlvmKernelEmitter(KernelContext& kernel, llvm::Function* function, const Arguments& arguments);
  void Body(const Stmt& stmt);

 private:
  // A buffer's place in the kernel.
  struct Place {
    Value* pointer = nullptr;
    bool read_only = false;
    bool over_read = false;  // 64 bytes after its end may be read
    bool on_stack = false;   // private to this thread
    // For a register tile: elements of its last dimension from this index on are never read.
    int64_t read_columns = 0;
    // The number of lanes, for a buffer allocated inside a vector loop (each lane has its own element); else
    // 0.
    int lanes = 0;
    int alias_group = -1;
  };

  // Elements of a row that are a vector: the first `active` of its lanes.
  struct Part {
    int64_t first;
    int lanes;
    int active;
  };

  // Iterations of a vector loop that run at once.
  struct Chunk {
    Value* first;  // the variable's value in lane 0
    int count;     // number of lanes
    int active;    // number of lanes with an iteration, the first ones
  };

  // The lanes of the enclosing vector loop.
  struct Lanes : Chunk {
    const VarNode* var;
    Value* mask;          // lanes that execute here; null for all
    bool mask_is_prefix;  // the mask is exactly the active lanes
  };

  // The largest distance between lanes, in elements, at which vectors and shuffles are cheaper than one
  // element at a time.
  static constexpr int64_t kMostStride = 4;

  // An access: the address of lane 0's element, and the distance to the next lane's in elements; no stride
  // when lanes are scattered.
  struct Access {
    const Place* place;
    DType dtype;
    Value* pointer;
    std::optional<int64_t> stride;  // 0: the same element in all lanes
    Value* scattered = nullptr;     // element offsets from `pointer`, one for each lane
    bool in_bounds = false;         // provably, even without the enclosing conditions
    bool nontemporal = false;       // stores of whole vectors bypass the caches

    int align() const { return DTypeBytes(dtype); }  // of an element, in bytes: its size
  };

  // Expressions (kernel_exprs.cc).
  Value* Emit(const Expr& expr);
  Value* EmitNode(const Expr& expr);
  Value* EmitWide(const Expr& expr);  // broadcast if it is scalar
  Value* EmitSelect(const Expr& expr);
  Value* EmitPadded(const Expr& expr, Value* condition);
  Value* EmitOperation(const Expr& expr);
  Value* EmitQuotient(const Expr& expr);
  Value* EmitCompare(const Expr& expr);
  std::pair<Value*, Value*> EmitOperands(const Expr& a, const Expr& b);
  Value* EmitArm(const Expr& expr, bool wide);
  bool Varies(const Expr& expr);  // from lane to lane

  // Indices (kernel_index.cc).
  Value* Index(const Expr& expr);  // uniform, i64
  Value* IndexDivision(const Expr& expr, Value* a);
  Value* LaneIndex(const Expr& expr, llvm::Type* element);         // a vector of i32 or i64
  llvm::Constant* LaneNumbers(llvm::Type* element, int64_t step);  // 0, step, 2 * step, ...
  bool IsNarrow(const Expr& expr);                                 // fits i32, with all its parts
  bool FitsI32(const Expr& expr);
  int DepthOf(const Expr& expr);
  bool MayEscape(const Expr& expr);  // contains a load that is not provably in bounds

  // Memory (kernel_memory.cc).
  const Place& PlaceOf(const Buffer& buffer);
  // The node, which must stay alive, is the key of its position in flat_.
  Access AccessOf(const Buffer& buffer, const std::vector<Expr>& indices, const void* node);
  Access AccessOf(const ExprNode& load) { return AccessOf(load.buffer, load.args, &load); }
  Access AccessOf(const Store& store) { return AccessOf(store.buffer, store.indices, &store); }
  Access AccessOf(const TileView& view) { return AccessOf(view.buffer, view.indices, &view); }
  Value* LoadAccess(const Access& access);
  Value* LoadContiguous(const Access& access);
  Value* LoadUniform(const Access& access);
  Value* LoadStrided(const Access& access);
  Value* LoadScattered(const Access& access);
  void StoreAccess(const Access& access, Value* stored);  // numbers as memory has them
  void StoreContiguous(const Access& access, Value* value);
  void StoreScattered(const Access& access, Value* value);
  Value* LanePointer(const Access& access, int lane);
  Value* LanePointers(const Access& access);
  // Whole vectors or elements of the accessed buffer, at any of its elements.
  Value* LoadRaw(const Access& access, llvm::Type* type, Value* pointer);
  void StoreRaw(const Access& access, Value* value, Value* pointer);
  // The first `active` of `count` lanes; with groups, the first `valid` lanes of each of these groups.
  llvm::Constant* FirstLanes(int active, int count, int group = 1, int valid = 1);
  // Access only the first `active` elements of a vector; the other lanes of a load are zero.
  Value* LoadFirst(const Access& access, llvm::Type* type, Value* pointer, int active);
  void StoreFirst(const Access& access, Value* value, Value* pointer, int active);
  // Lanes outside of the mask are not read, and zero, or not written.
  Value* LoadMasked(const Access& access, llvm::Type* type, Value* pointer, Value* mask);
  void StoreMasked(const Access& access, Value* value, Value* pointer, Value* mask);
  // Tags the instruction with its buffer's alias group, so that LLVM may move it across accesses to other
  // buffers.
  llvm::Instruction* Annotate(const Access& access, llvm::Instruction* instruction) const {
    if (const int group = access.place->alias_group; group >= 0) {
      instruction->setMetadata(llvm::LLVMContext::MD_alias_scope, kernel_.scopes[group].scope);
      instruction->setMetadata(llvm::LLVMContext::MD_noalias, kernel_.scopes[group].others);
    }
    return instruction;
  }
  void Fetch(Value* pointer, bool to_write = false);
  void StorePastCaches(const Access& access, Value* value);
  Value* ByteOffset(Value* pointer, int64_t bytes);
  // The element that is this number of elements after the access's own.
  Value* ElementAt(const Access& access, int64_t offset) {
    return ByteOffset(access.pointer, offset * access.align());
  }

  // Statements (kernel_stmts.cc).
  void Statement(const Stmt& stmt);
  void EmitFor(const For& loop);
  void EmitRolled(const For& loop);
  // for (v = begin; v < end; v += step) body(v), with the test at the end. `runs_once` says that begin < end
  // is known.
  void EmitLoop(Value* begin, Value* end, int64_t step, bool runs_once,
                const std::function<void(Value*)>& body);
  void EmitUnrolled(const For& loop);
  void EmitIf(const If& branch);
  void EmitAlloc(const Alloc& alloc);
  llvm::AllocaInst* OnStack(llvm::Type* type);
  llvm::AllocaInst* BytesOnStack(int64_t bytes);  // aligned to cache lines
  void EmitStore(const Store& store);
  void EmitBypass(const Bypass& bypass);
  bool BypassesCaches(const Store& store) const;
  void EmitStoreFence();

  // Vector loops (kernel_vector.cc).
  void EmitVectorLoop(const For& loop);
  void EmitLaneReduction(const For& loop, const Store& store);
  void Chunks(const For& loop, const std::function<void(const Chunk&)>& emit);
  // Divides elements [first, end) into vectors: whole ones of `width` lanes, then the rest. The rest is one
  // vector that may be too wide, or one vector for each power of two.
  static std::vector<Part> PartsOf(int64_t first, int64_t end, int width, bool one_rest, int least_lanes = 1);
  void InLanes(const For& loop, const Chunk& chunk, const std::function<void()>& body);
  Value* Combined(Op op, DType dtype, Value* a, Value* b);
  Value* ReduceLanes(Op op, DType dtype, Value* vector);

  // Transposed reads of tiles, and interleaved stores (kernel_shuffles.cc).
  void EmitInterleaved(const For& loop);
  void EmitTransposed(const For& loop);
  void EmitTurnedGroups(const For& loop);
  // The access of a load or store at these values of loops' variables.
  using VarValues = std::vector<std::pair<Var, Value*>>;
  template <typename Node>
  Access AccessAt(const VarValues& values, const Node& node);
  std::vector<Value*> LoadTile(const ExprNode& load, const VarValues& values, const Chunk& chunk,
                               llvm::Type* unit, int64_t columns);

  // Mma statements (kernel_mma.cc). A column is a part of the tile's rows.
  void EmitMma(const Mma& mma);
  Value* LoadColumn(const Access& access, llvm::Type* type, const Part& column, int64_t element,
                    int64_t group = 1);
  Value* LoadGroups(const LaneProducts& products, const Access& access, const TileView& view,
                    const Part& column, int64_t element, int valid);
  Value* LoadGroup(const LaneProducts& products, const Access& a, int64_t element, int valid);
  using Sums = std::vector<std::vector<Value*>>;  // by row and column
  Sums LoadSums(const Mma& mma, const Access& acc, const std::vector<Part>& columns, int64_t first,
                int64_t end);
  void FetchAhead(const Access& access, const TileView& view, int64_t rows, int64_t ahead);
  void StoreSums(const Mma& mma, const Access& acc, const std::vector<Part>& columns, int64_t first,
                 const Sums& sums);

  // Tile registers (kernel_tile_registers.cc).
  void EmitTileRegion(const TileRegion& region);
  void EmitTileMove(const TileMove& tile_move);
  void FetchSums(const Mma& mma, const TileView& destination);
  Value* CopyOfTile(Access access, const std::vector<Value*>& rows, int64_t bytes, int64_t tile_rows,
                    llvm::Constant* last_mask);
  struct TileRows {
    Value* first;
    int64_t stride;  // bytes
  };
  TileRows TileOf(const Mma& mma, const Access& access, const TileGrid& grid, bool of_b, int tile);
  void CopyFixedTiles(const Stmt& products);
  void EmitTileProducts(const Mma& mma);
  Value* TileConfiguration(const TileGrid::Bytes& bytes);
  llvm::CallInst* LoadTileConfiguration(Value* configuration);
  void ConfigureTiles();
  // The end of the function.
  void Return();

  // Parallel loops (kernel_parallel.cc).
  void EmitParallel(const For& loop);
  std::vector<Value**> Capture(const Stmt& body, LlvmKernelEmitter* inner) const;
  void EmitShare(const std::vector<const For*>& loops, llvm::StructType* record,
                 const std::vector<Value**>& captured);

  // Emits `body` with this value of the variable.
  void With(const VarNode* var, Value* value, const std::function<void()>& body) {
    vars_[var] = Variable{value, depth_};
    body();
    vars_.erase(var);
  }

  // Emits `body` for those of the lanes that this mask has.
  void UnderMask(Value* mask, const std::function<void()>& body) {
    const Lanes outer = *lanes_;
    lanes_->mask = outer.mask ? b_.CreateAnd(outer.mask, mask) : mask;
    lanes_->mask_is_prefix = false;
    body();
    lanes_ = outer;
  }
  // Whether other lanes than the first ones are left out.
  bool HasHoles() const { return lanes_ && lanes_->mask && !lanes_->mask_is_prefix; }

  using Memo = std::unordered_map<const ExprNode*, Value*>;

  KernelContext& kernel_;
  llvm::Function* function_;
  Arguments arguments_;
  Builder b_;
  bool exact_quotients_ = false;  // within what is rounded to an integer
  llvm::BasicBlock* entry_;       // has the allocations and pointers of buffers
  bool in_region_ = false;
  int depth_ = 0;  // number of enclosing loops
  // The enclosing region whose sums are in tile registers, and one of its products.
  const TileRegion* tiles_ = nullptr;
  const Mma* tiled_ = nullptr;
  // By products in the same region.
  struct CopiedTiles {
    std::vector<TileRows> a, b;
  };
  std::unordered_map<const Mma*, CopiedTiles> copied_tiles_;
  Value* configuration_ = nullptr;                 // of the function's tiles; null: it has none
  std::vector<llvm::CallInst*> restores_;          // instructions that load it after another one
  std::vector<llvm::Instruction*> after_regions_;  // calls after which no tile configuration is loaded

  struct Variable {
    Value* value;
    int depth;
  };
  std::unordered_map<const VarNode*, Variable> vars_;
  std::unordered_map<const BufferNode*, Place> places_;
  std::optional<Lanes> lanes_;
  bool bypasses_ = false;  // the outputs of the enclosing Bypass begin at cache lines
  // Values of expressions that are already computed here: one level for each enclosing arm of a branch.
  std::vector<Memo> memo_;
  std::vector<std::pair<Expr, Value*>> turned_;   // values of a transposed tile's loads
  std::unordered_map<const void*, Linear> flat_;  // positions of loads and stores, by node
  std::unordered_map<const ExprNode*, bool> escapes_;
  std::vector<Expr> keep_;  // keeps expressions made here alive: the maps above have pointers to their nodes
};

}  // namespace mycc
