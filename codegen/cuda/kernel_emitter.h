// Emits one launch of a lowered function as one CUDA C++ kernel.
//
// The class is implemented in several files, one for each group of functions below. kernel_stmts.cc
// dispatches on a statement's kind. The first group is used by all files: lines of code, values and indices
// as text, the address of an element, the running thread's number. Thread rule: one owner.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codegen/cuda/arithmetic.h"
#include "codegen/cuda/chunk_place.h"
#include "codegen/cuda/program.h"
#include "codegen/expr/affine.h"
#include "codegen/expr/integers.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/stmt.h"
#include "codegen/ir/threads.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/passes/bulk_box.h"
#include "codegen/passes/fragments.h"
#include "codegen/passes/stmt_facts.h"
#include "codegen/passes/thread_registers.h"
#include "codegen/target/instructions.h"

namespace mycc {

// A buffer that a kernel gets a pointer to.
struct LaunchBuffer {
  Buffer buffer;
  CudaOperand operand;
  bool read_only;
};

// The source of one kernel: a launch of lowered code, its grid loops, and the places of its tensors. It
// points into the function, which must outlive it.
struct CudaLaunch : LaunchShape {
  std::vector<const For*> blocks;     // the grid loops, outermost first
  Stmt body;                          // the code inside them
  std::vector<LaunchBuffer> buffers;  // that it uses
  Distributions registers;            // of buffers allocated outside of thread loops
};

// number / stride % steps, as code; with steps 0 only the quotient.
inline std::string Digit(const std::string& number, int64_t stride, int64_t steps) {
  const std::string quotient = stride == 1 ? number : absl::StrCat(number, " / ", stride);
  return steps == 0 ? quotient : absl::StrCat(quotient, " % ", steps);
}

// The first of a block's 16 named barriers for each purpose; __syncthreads is barrier 0. Only blocks with two
// roles, whose nests have barriers 5 and 6, take turns.
struct NamedBarriers {
  static constexpr int kRoles = 1;   // + the role's number
  static constexpr int kNests = 5;   // + the role's number
  static constexpr int kTurns = 8;   // + the warpgroup
  static constexpr int kParts = 12;  // + the warpgroup
};

class KernelEmitter {
 public:
  KernelEmitter(const CudaLaunch& launch, const Target& target, Prelude* prelude);

  // The kernel's text; FailedPrecondition when a statement cannot be emitted. May be called once.
  absl::StatusOr<std::string> Kernel(const std::string& name);
  // The kernel's tensor maps. Known once Kernel has returned.
  const std::vector<CudaTensorMap>& maps() const { return maps_; }

 private:
  // Used by all files.

  template <typename... Parts>
  void Line(const Parts&... parts) {
    absl::StrAppend(&text_, std::string(2 * depth_, ' '), parts..., "\n");
  }
  // A line that ends in "{", and its end.
  template <typename... Parts>
  void Open(const Parts&... parts) {
    Line(parts..., " {");
    ++depth_;
  }
  void OpenBlock() {
    Line("{");
    ++depth_;
  }
  // Opens a loop that is unrolled.
  template <typename Extent>
  void OpenUnrolled(const std::string& var, const Extent& extent, int64_t first = 0,
                    const char* pragma = "#pragma unroll") {
    Line(pragma);
    Open("for (int ", var, " = ", first, "; ", var, " < ", extent, "; ++", var, ")");
  }
  void Close() {
    --depth_;
    Line("}");
  }
  // Closes a block, and opens another one on the same line, after "else" or "else if (..)".
  template <typename... Parts>
  void CloseAndOpen(const Parts&... parts) {
    --depth_;
    Open("} ", parts...);
  }
  // A call of a function of the prelude.
  template <typename... Args>
  std::string Call(const std::string& function, const Args&... args) {
    return absl::StrCat(prelude_.Use(function), "(", absl::StrJoin(std::tie(args...), ", "), ")");
  }
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    status_.Update(Refusal(parts...));
  }
  // An identifier made from `base` that is unique in this kernel.
  std::string Name(const std::string& base);
  // Defines a constant with such a name, and returns the name.
  template <typename... Parts>
  std::string Define(const std::string& type, const std::string& base, const Parts&... value) {
    const std::string name = Name(base);
    Line("const ", type, " ", name, " = ", value..., ";");
    return name;
  }

  // A value in its register's type; an index (i64), as int where its range provably fits.
  Code Value(const Expr& expr);
  Code Index(const Expr& expr);

  // A buffer's place in the kernel.
  struct Place {
    std::string name;  // of a pointer, or of an array in registers
    Layout layout;     // coalesced: dimensions of one element need no code
    int64_t element_bytes = 0;
    bool in_registers = false;
    int64_t vector = 0;                          // elements of each Vec, for the lanes of a vector loop
    const Distribution* distribution = nullptr;  // of registers over threads; null for none
    RegisterForm form = RegisterForm::kOfType;
    std::optional<FragmentLayout> fragment;  // the layout of a tensor-core accumulator
  };
  const Place& PlaceOf(const Buffer& buffer);
  // The element's position in the buffer's memory, in elements, before swizzling.
  Linear Flat(const Place& place, const std::vector<Expr>& indices);
  // The same as code.
  Code Offset(const Buffer& buffer, const std::vector<Expr>& indices);
  // "t0[i * 32 + 4]", to be read or assigned.
  std::string Element(const Buffer& buffer, const std::vector<Expr>& indices);
  std::string At(const Place& place, const Linear& flat);
  std::string Swizzled(const Place& place, const std::string& flat);

  // Statements (kernel_stmts.cc).
  void Statement(const Stmt& stmt);
  void EmitFor(const For& loop);
  void EmitLet(const Let& let);
  void EmitThreadLoop(const For& loop);
  void EmitIf(const If& branch);
  void EmitAlloc(const Alloc& alloc);
  void EmitStore(const Store& store);
  Code StoredValue(const Store& store);
  Code Unrounded(const Expr& value);
  void EmitVectors(const Vectors& vectors);  // kernel_vector.cc
  void DeclareLanes(const VectorMove& move);
  void ForVectors(const VectorMove& move,
                  const std::function<void(const std::string&, const std::string&)>& line);
  // Opens a condition that is true in one of the threads that execute this code redundantly; false when there
  // is no redundancy.
  bool OpenOneOfAlike();

  // Reductions across threads (kernel_combine.cc). Values have a text for each part of a tuple; a reduction
  // of single values has one part.
  using Parts = std::vector<std::string>;
  void EmitCombine(const Combine& combine);
  Parts DeclareArrays(const Combine& combine, const std::string& name, int64_t offset, int64_t count,
                      const std::string& first);
  Parts DeclareScratch(const Combine& combine);
  void EmitCombinesTogether(const For& loop, const Combine& combine);
  void Exchanged(const Combine& combine, const Parts& values, const Exchange& exchange);
  void CombineLanes(const Combine& combine, const Parts& values, const Exchange& exchange);
  void CombineWarps(const Combine& combine, const Parts& values, int64_t warps);
  void CombineInWarp(const Combine& combine, const Parts& values, const Exchange& exchange);
  void CombineInBlock(const Combine& combine, const Parts& values, const Exchange& exchange);
  void Merge(const Combine& combine, const Parts& values, const Parts& a, const Parts& b);
  void MergeAll(const Combine& combine, const Parts& values, const Parts& first, const std::string& member,
                int64_t count, const Parts& others, const char* pragma = "#pragma unroll");
  template <typename TextFn>
  static Parts EachPart(const Parts& parts, const TextFn& text) {
    Parts texts;
    for (const std::string& part : parts) texts.push_back(text(part));
    return texts;
  }
  static Parts ElementsOf(const Parts& arrays, const std::string& place);
  void SetEach(const Parts& parts, const Parts& values);
  // The running thread's number within its group.
  template <typename Group>
  std::string MemberOf(const Group& group) const {
    return Digit(thread_, group.stride, group.extent);
  }
  // The running thread's number within its block.
  std::string ThreadOfBlock() const { return launch_.cluster_reduce > 1 ? "threadIdx.x" : thread_; }
  Code Combined(const Combine& combine, const std::string& a, const std::string& b) const;
  std::vector<std::string> TypesOf(const Combine& combine) const;
  // Emits a barrier of the threads of the enclosing nest of thread loops, or of the team, within a block.
  void EmitBarrier();

  // Blocks that reduce together.
  void BeginClusterReduce();
  void EndClusterReduce();
  void CombineBlocks(const Combine& combine, const Parts& values, int64_t blocks);

  // Tensor cores (kernel_mma.cc, kernel_wgmma.cc).
  const FragmentLayout& LayoutOfAccumulator(const Mma& mma) { return *PlaceOf(mma.acc.buffer).fragment; }
  void EmitMma(const Mma& mma);
  void EmitWgmma(const Mma& mma, const Instruction& row);
  void EmitWaitProducts(const WaitProducts& wait);
  void EmitWarpMma(const Mma& mma, const Instruction& row);
  void LoadFragments(const Instruction& row, const std::string& fragment, int64_t count, int64_t registers,
                     bool depth_contiguous, const std::string& matrices, const std::string& element);
  // Addresses in shared memory, as unsigned integers.
  std::string SharedAddress(const Buffer& buffer, const std::vector<Expr>& indices);
  std::string ElementOf(const TileView& view, const std::string& row, const std::string& column);

  // Left operands in registers (kernel_operands.cc).
  void StorePair(const VectorMove& move);
  std::string Packed(const Buffer& operand, const std::string& even, const std::string& odd);
  void PackOperand(const Mma& mma, const std::string& fragment, const std::string& step);
  void PackOperands(const Mma& mma, const Instruction& row);

  // Copies (kernel_copies.cc).
  void EmitCopy(const Copy& copy);
  void EmitBulkCopy(const Copy& copy);
  void TakePart(const Expr& rank, int64_t blocks, BulkBox* box);
  std::string TensorMapOf(const BulkBox& box, int64_t panel);

  // Copies by threads.
  // The chunks of one thread, at most.
  int64_t StepsOf(int64_t chunks) const { return CeilDiv(chunks, team_); }
  // A loop's value in a chunk, in code: of_thread + of_step * values. One of the two parts may be empty.
  struct PartOfChunk {
    std::string of_thread, of_step;
    int64_t values = 1;  // that of_thread has
  };
  PartOfChunk PartOf(const std::string& step, const std::string& number, int64_t stride, int64_t extent,
                     bool is_outermost) const;
  ChunkPlace DefinePlace(const ThreadCopyNest& copy, const std::string& step, const std::string& number);
  std::string Inside(const ThreadCopyNest& copy, const ChunkPlace& place) {
    return copy.condition ? Value(place.Condition(copy.condition)).text : "true";
  }
  void EachChunk(const ThreadCopyNest& copy, int64_t count, const std::string& first,
                 const std::function<void(const std::string&, const ChunkPlace&)>& emit);
  std::string ChunkType(DType dtype, int64_t chunk);
  void LoadRegisters(const ThreadCopyNest& copy, const std::string& moved, int64_t count,
                     const std::string& first);
  void StoreRegisters(const ThreadCopyNest& copy, const std::string& moved, int64_t count,
                      const std::string& first);

  // Roles and their synchronization (kernel_roles.cc).
  struct RoleState {
    int number = 0;
    int count = 0;  // of all roles
    bool one_thread = false;
    bool bulk_stores = false;
    // Numbers from memory say how many turns there are. All threads have the same, which ptxas does not know:
    // what a shuffle gives needs no register of a thread, nor does what is computed from it.
    bool lengths_in_memory = false;
  };
  void EmitRoles(const Roles& roles);
  std::string Warpgroup() const;
  void SetUpBarriers(const std::vector<int>& counts);
  void EmitArrive(const Arrive& arrive);
  void EmitTurn(const Turn& turn);
  void EmitWait(const Wait& wait);
  void EmitCommitGroup();
  void EmitWaitGroup(const WaitGroup& wait);
  void EmitSignal(const Signal& signal);
  void EmitAwait(const Await& await);
  std::string FlagAddress(const Buffer& flags, const Expr& index);
  std::string BarrierAddress(const Expr& index);
  void Sync();
  void SyncParts(int parts);

  // Expressions (kernel_exprs.cc).
  Code Operation(const Expr& expr);
  bool IsAtHand(const ExprNode& load);
  Code Choice(const Expr& select, const Code& then, const Code& otherwise);
  Code LoadValue(const Expr& load);
  Code IndexQuotient(const Expr& expr);
  bool IsNarrow(const Expr& expr);

  // Kernels (kernel_emitter.cc).
  void WaitForNeighbours();
  void DeclareBlocks();
  void DeclareShared();

  // Emits `body` with `var` written as `text`.
  template <typename BodyFn>
  void With(const VarNode* var, const std::string& text, const BodyFn& body) {
    vars_[var] = text;
    body();
    vars_.erase(var);
  }

  const CudaLaunch& launch_;
  const Target& target_;
  Prelude& prelude_;
  const Arithmetic arithmetic_;
  absl::Status status_;
  std::string text_;
  int depth_ = 1;
  std::string thread_ = "thread";  // the running thread's number among those that execute this code
  int64_t replication_;            // consecutive threads that execute this code redundantly
  int64_t team_;         // threads that execute this code together: the block's, cluster's or role's
  std::string group_;    // the running warpgroup's number in its role, in a uniform register; empty: none
  int64_t in_nest_ = 0;  // threads of the enclosing nest of thread loops; 0: none
  std::string lanes_here_ = "0xffffffffu";  // mask of the warp's lanes that execute this
  ThreadLoops threads_;                     // enclosing thread loops
  std::optional<RoleState> roles_;
  bool sends_ = false;  // blocks of a cluster combine, through barriers
  std::vector<CudaTensorMap> maps_;
  std::unordered_map<const VarNode*, std::string> vars_;
  std::unordered_map<const BufferNode*, Place> places_;
  std::unordered_map<const BufferNode*, std::string> parts_;  // values of tuples that are merged here
  std::unordered_set<std::string> names_;
};

}  // namespace mycc
