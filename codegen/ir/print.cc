// Prints IR as pseudocode. Two defaults are omitted: a block's iteration variable that is bound to the loop
// of its name (t3.a0 for a0 of block t3), and a loop's extent that is its variable's. Everything else that a
// back end reads is printed, so equal texts mean equal code.
#include "codegen/expr/print.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"

namespace mycc {
namespace {

std::string TypeText(const BufferNode& buffer) {
  return absl::StrCat(DTypeName(buffer.dtype), "[", absl::StrJoin(buffer.shape, ","), "]");
}

// Accepts any number of indices: the verifier prints statements with wrong ranks.
std::string Element(const Buffer& buffer, const std::vector<Expr>& indices) {
  return PrintExpr(
      Load(MakeBuffer(buffer->name, buffer->dtype, std::vector<int64_t>(indices.size())), indices));
}

std::string ViewText(const TileView& view) {
  const std::string blocks =
      view.block_rows ? absl::StrCat(view.block_stride, " after ", view.block_rows, ",") : "";
  return absl::StrCat(Element(view.buffer, view.indices), "<", blocks, view.row_stride, ",", view.col_stride,
                      ">");
}

std::string WarpsText(const WarpGrid& warps) {
  return warps == WarpGrid{} ? "" : absl::StrCat(" on ", warps.rows, "x", warps.columns, " warps");
}

std::string MarksText(const LoopMarks& marks) {
  std::string text;
  if (!marks.instruction.empty()) absl::StrAppend(&text, " by ", marks.instruction, WarpsText(marks.warps));
  if (marks.rows_ahead != 0 || marks.lanes_ahead != 0)
    absl::StrAppend(&text, " fetching ", marks.rows_ahead, " and ", marks.lanes_ahead, " ahead");
  if (marks.fetches_sums) absl::StrAppend(&text, " fetching sums");
  if (marks.fetches_next) absl::StrAppend(&text, " fetching for the next iteration around");
  if (marks.nontemporal) absl::StrAppend(&text, " past the caches");
  const LoopPipeline& pipeline = marks.pipeline;
  if (pipeline.kind == PipelineKind::kThreads) absl::StrAppend(&text, " pipelined in ", pipeline.stages);
  if (pipeline.kind == PipelineKind::kBulk) absl::StrAppend(&text, " pipelined in bulk in ", pipeline.stages);
  if (marks.persistent_blocks != 0) absl::StrAppend(&text, " over ", marks.persistent_blocks, " blocks");
  if (marks.stream_k.groups != 0) {
    absl::StrAppend(&text, ", the rest by steps in ", marks.stream_k.groups, " groups of ",
                    marks.stream_k.members);
  }
  if (marks.cluster_reduce_blocks != 0)
    absl::StrAppend(&text, " by ", marks.cluster_reduce_blocks, " blocks each");
  if (marks.multicast_cluster) absl::StrAppend(&text, " of one cluster");
  if (marks.min_blocks_per_sm != 0) absl::StrAppend(&text, " with ", marks.min_blocks_per_sm, " on an SM");
  if (marks.pingpong > 1) absl::StrAppend(&text, " in ", marks.pingpong, " turns");
  if (marks.unroll_by != 0) absl::StrAppend(&text, " unrolled by ", marks.unroll_by);
  return text;
}

const char* LoopWord(LoopKind kind) {
  switch (kind) {
    case LoopKind::kSerial: return "for";
    case LoopKind::kParallel: return "parallel";
    case LoopKind::kVector: return "vector";
    case LoopKind::kUnroll: return "unroll";
    case LoopKind::kGrid: return "block";
    case LoopKind::kThread: return "thread";
  }
  return "";
}

const char* Assignment(ReduceOp op) {
  switch (op) {
    case ReduceOp::kNone: return "=";
    case ReduceOp::kSum: return "+=";
    case ReduceOp::kProd: return "*=";
    case ReduceOp::kMax: return "max=";
    case ReduceOp::kMin: return "min=";
    case ReduceOp::kArgMax: return "argmax=";
    case ReduceOp::kArgMin: return "argmin=";
  }
  return "";
}

// Whether the variable is bound to the loop named after the block and the variable, over the whole domain,
// and is a reduction exactly when its name says so.
bool IsUsual(const Block& block, const IterVar& iter) {
  if (iter.binding->op != Op::kVar || iter.binding->var->extent != iter.var->extent) return false;
  const bool named_reduce = !iter.var->name.empty() && iter.var->name[0] == 'r';
  return named_reduce == iter.reduce &&
         iter.binding->var->name == absl::StrCat(block.name, ".", iter.var->name);
}

class Printer {
 public:
  void Print(const Stmt& stmt, int depth) {
    switch (stmt->kind) {
      case StmtKind::kSeq: return PrintSeq(As<Seq>(stmt), depth);
      case StmtKind::kFor: return PrintFor(As<For>(stmt), depth);
      case StmtKind::kIf: return PrintIf(As<If>(stmt), depth);
      case StmtKind::kLet:
        Line(depth, "let ", As<Let>(stmt).var->name, " = ", PrintExpr(As<Let>(stmt).value));
        return Print(As<Let>(stmt).body, depth);
      case StmtKind::kAlloc: return PrintAlloc(As<Alloc>(stmt), depth, /*last=*/true);
      case StmtKind::kBlock: return PrintBlock(As<Block>(stmt), depth);
      case StmtKind::kStore: {
        const Store& store = As<Store>(stmt);
        return Line(depth, Element(store.buffer, store.indices), " = ", PrintExpr(store.value));
      }
      case StmtKind::kCombine: {
        const Combine& combine = As<Combine>(stmt);
        return Line(depth, "combine ", Element(combine.buffer, combine.indices), " ",
                    Assignment(combine.reduce), " ", PrintExpr(combine.value));
      }
      case StmtKind::kMma: {
        const Mma& mma = As<Mma>(stmt);
        return Line(depth, mma.is_async ? "mma async " : "mma ", mma.instruction, WarpsText(mma.warps), " ",
                    mma.m, "x", mma.n, "x", mma.k,
                    mma.group > 1 ? absl::StrCat(" in groups of ", mma.group) : "", ": ", ViewText(mma.acc),
                    mma.first ? " = " : " += ", ViewText(mma.a), " * ", ViewText(mma.b),
                    mma.a_ahead != 0 || mma.b_ahead != 0
                        ? absl::StrCat(" fetching ", mma.a_ahead, " and ", mma.b_ahead, " elements ahead")
                        : "",
                    mma.fetches_sums ? " fetching sums" : "");
      }
      case StmtKind::kCopy: return PrintCopy(As<Copy>(stmt), depth);
      case StmtKind::kRoles: return PrintRoles(As<Roles>(stmt), depth);
      case StmtKind::kArrive: {
        const Arrive& arrive = As<Arrive>(stmt);
        return Line(
            depth, "arrive barrier[", PrintExpr(arrive.barrier), "]",
            arrive.cluster ? " of the whole cluster" : "",
            arrive.arrivals > 1 ? absl::StrCat(" by ", arrive.arrivals, " warpgroups") : "",
            arrive.expected_bytes > 0 ? absl::StrCat(", expects ", arrive.expected_bytes, " bytes") : "",
            arrive.released.empty()
                ? ""
                : absl::StrCat(" releasing ", absl::StrJoin(arrive.released, ", ",
                                                            [](std::string* text, const Buffer& tile) {
                                                              text->append(tile->name);
                                                            })));
      }
      case StmtKind::kWait: {
        const Wait& wait = As<Wait>(stmt);
        return Line(depth, "wait barrier[", PrintExpr(wait.barrier), "] phase ", PrintExpr(wait.phase));
      }
      case StmtKind::kCommitProducts: return Line(depth, "commit products");
      case StmtKind::kWaitProducts:
        return Line(depth, "wait products until ", As<WaitProducts>(stmt).pending, " pending");
      case StmtKind::kCommitGroup: return Line(depth, "commit group");
      case StmtKind::kWaitGroup:
        return Line(depth, "wait group until ", As<WaitGroup>(stmt).pending, " pending");
      case StmtKind::kFence: return Line(depth, "fence");
      case StmtKind::kTurn:
        return Line(depth, As<Turn>(stmt).step == TurnStep::kTake ? "take turn" : "pass turn");
      case StmtKind::kBarrier: return Line(depth, "barrier");
      case StmtKind::kSignal:
        return Line(depth, "signal ", Element(As<Signal>(stmt).flags, {As<Signal>(stmt).index}));
      case StmtKind::kAwait:
        return Line(depth, "await ", Element(As<Await>(stmt).flags, {As<Await>(stmt).index}));
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  template <typename... Parts>
  void Line(int depth, const Parts&... parts) {
    out_.append(2 * static_cast<size_t>(depth), ' ');
    absl::StrAppend(&out_, parts..., "\n");
  }

  void PrintSeq(const Seq& seq, int depth) {
    for (const Stmt& part : seq.stmts) {
      if (const Alloc* alloc = DynAs<Alloc>(part)) {
        PrintAlloc(*alloc, depth, part == seq.stmts.back());
      } else {
        Print(part, depth);
      }
    }
  }

  // A buffer that lives until the end of the enclosing statements needs no indentation.
  void PrintAlloc(const Alloc& alloc, int depth, bool last) {
    const SharedLayout& layout = alloc.buffer->layout;
    Line(depth, "alloc ", alloc.buffer->name, ": ", TypeText(*alloc.buffer), " ",
         ScopeName(alloc.buffer->scope), layout.row_pad == 0 ? "" : absl::StrCat(" pad ", layout.row_pad),
         layout.swizzle_bytes == 0 ? "" : absl::StrCat(" swizzle ", layout.swizzle_bytes));
    Print(alloc.body, last ? depth : depth + 1);
  }

  void PrintFor(const For& loop, int depth) {
    const std::string range = IsConstInt(loop.extent, loop.var->extent)
                                  ? absl::StrCat(loop.var->extent)
                                  : absl::StrCat(PrintExpr(loop.extent), " (of ", loop.var->extent, ")");
    Line(depth, LoopWord(loop.loop_kind), " ", loop.var->name, " in ", range, MarksText(loop.marks));
    Print(loop.body, depth + 1);
  }

  void PrintIf(const If& branch, int depth) {
    Line(depth, "if ", PrintExpr(branch.condition));
    Print(branch.then, depth + 1);
    if (!branch.otherwise) return;
    Line(depth, "else");
    Print(branch.otherwise, depth + 1);
  }

  void PrintBlock(const Block& block, int depth) {
    Line(depth, "block ", block.name, ": ", Element(block.out, block.indices), " ", Assignment(block.reduce),
         " ", PrintExpr(block.value), block.init ? ", init" : "",
         block.arg_value ? absl::StrCat(", best in ", block.arg_value->name) : "");
    for (const IterVar& iter : block.iters) {
      if (IsUsual(block, iter)) continue;
      Line(depth + 1, iter.reduce ? "reduce " : "", iter.var->name, " in ", iter.var->extent, " at ",
           PrintExpr(iter.binding));
    }
  }

  void PrintCopy(const Copy& copy, int depth) {
    Line(depth, copy.engine == CopyEngine::kBulk ? "copy in bulk" : "copy by threads",
         copy.cluster ? absl::StrCat(", part ", PrintExpr(copy.cluster), " to the whole cluster") : "",
         copy.barrier ? absl::StrCat(", signals barrier[", PrintExpr(copy.barrier), "]") : "");
    Print(copy.body, depth + 1);
  }

  void PrintRoles(const Roles& roles, int depth) {
    Line(depth, "roles, barriers of [", absl::StrJoin(roles.barrier_counts, ","), "] arrivals");
    for (const Roles::Role& role : roles.roles) {
      Line(depth + 1, "role ", role.name);
      Print(role.body, depth + 2);
    }
  }

  std::string out_;
};

std::string ParamText(const Param& param) {
  return absl::StrCat(param.buffer->name, ": ", param.kind == ParamKind::kConst ? "const " : "",
                      TypeText(*param.buffer));
}

}  // namespace

std::string PrintFunction(const Function& function) {
  std::vector<std::string> inputs, outputs;
  for (const Param& param : function.params) {
    (param.kind == ParamKind::kOutput ? outputs : inputs).push_back(ParamText(param));
  }
  Printer printer;
  printer.Print(function.body, 1);
  return absl::StrCat("function ", function.name, "(", absl::StrJoin(inputs, ", "), ") -> (",
                      absl::StrJoin(outputs, ", "), ")\n", printer.Take());
}

std::string PrintStmt(const Stmt& stmt) {
  Printer printer;
  printer.Print(stmt, 0);
  return printer.Take();
}

std::string StmtName(const Stmt& stmt) {
  if (const Block* block = DynAs<Block>(stmt)) return absl::StrCat("block ", block->name);
  const std::string text = PrintStmt(stmt);
  return absl::StrCat("\"", text.substr(0, text.find('\n')), "\"");
}

}  // namespace mycc
