// Prints IR as pseudocode. Two defaults are omitted: a block's iteration variable that is bound to the loop
// of its name (t3.a0 for a0 of block t3), and a loop's extent that is its variable's. Everything else that a
// back end reads is printed, so equal texts mean equal code.
#include "codegen/expr/print.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/cpu_stmts.h"
#include "codegen/ir/function.h"
#include "codegen/ir/pipeline_stmts.h"
#include "codegen/ir/vector_stmts.h"
#include "codegen/ir/visit.h"

namespace mycc {
namespace {

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
  constexpr const char* kForms[] = {
      "", " one by one", " reducing lanes", " interleaving lanes", " turning tiles", " turning groups"};
  absl::StrAppend(&text, kForms[static_cast<int>(marks.form)]);
  if (marks.lanes != 0) absl::StrAppend(&text, ", ", marks.lanes, " lanes");
  return text;
}

std::string NamesText(const std::vector<Buffer>& buffers) {
  return absl::StrJoin(buffers, ", ",
                       [](std::string* text, const Buffer& buffer) { text->append(buffer->name); });
}

std::string TurnedText(const std::vector<Expr>& turned) {
  return absl::StrJoin(turned, "", [](std::string* text, const Expr& load) {
    absl::StrAppend(text, ", turning ", PrintExpr(load));
  });
}

std::string FetchesText(const std::vector<ReadAhead>& fetches) {
  return absl::StrJoin(fetches, "", [](std::string* text, const ReadAhead& ahead) {
    absl::StrAppend(text, ", fetching ", PrintExpr(ahead.load), " ", ahead.elements, " elements ahead");
  });
}

std::string ExchangesText(const std::vector<CombineGroup>& groups) {
  constexpr const char* kWords[] = {"lanes", "threads of the warp", "warps", "threads", "blocks"};
  std::string text;
  for (const CombineGroup& group : groups) {
    for (const Exchange& exchange : group.exchanges) {
      absl::StrAppend(&text, text.empty() ? " over " : ", ", exchange.extent, " ",
                      kWords[static_cast<int>(exchange.kind)],
                      exchange.stride > 1 ? absl::StrCat(" ", exchange.stride, " apart") : "");
    }
  }
  return text;
}

// A launch ends where the next one begins, so its body needs no indentation.
std::string LaunchText(const LaunchShape& shape) {
  std::string text = absl::StrCat("launch grid ", shape.grid, ", ", shape.threads, " threads");
  if (shape.cluster > 1) absl::StrAppend(&text, ", clusters of ", shape.cluster);
  if (shape.cluster_reduce > 1) absl::StrAppend(&text, " that reduce together");
  if (shape.min_blocks_per_sm != 0) absl::StrAppend(&text, ", ", shape.min_blocks_per_sm, " on an SM");
  if (shape.shared_bytes != 0) absl::StrAppend(&text, ", ", shape.shared_bytes, " bytes shared");
  if (shape.after_launch) absl::StrAppend(&text, ", may begin early");
  if (shape.before_launch) absl::StrAppend(&text, ", lets the next begin early");
  return text;
}

std::string Assignment(const Reduction& reduce) {
  if (reduce == ReduceOp::kNone) return "=";
  if (reduce == ReduceOp::kSum) return "+=";
  if (reduce == ReduceOp::kProd) return "*=";
  return absl::StrCat(reduce.name(), "=");
}

// "t1[a0] += x[a0,r0]", or "(t1[a0], t2[a0]) argmax= (r0, x[a0,r0])".
std::string ReductionText(const ReducedTuple& reduced) {
  std::vector<std::string> elements, values;
  for (size_t i = 0; i < reduced.buffers.size(); ++i) {
    elements.push_back(Element(reduced.buffers[i], reduced.indices));
    values.push_back(PrintExpr(reduced.values[i]));
  }
  const auto listed = [](const std::vector<std::string>& parts) {
    return parts.size() == 1 ? parts[0] : absl::StrCat("(", absl::StrJoin(parts, ", "), ")");
  };
  return absl::StrCat(listed(elements), " ", Assignment(reduced.reduce), " ", listed(values));
}

// The functions of tuples that the code uses, each once.
std::string FunctionsOfTuples(const Stmt& body) {
  std::vector<std::string> texts;
  const auto add = [&](const auto& reduced) {
    std::string text = PrintReduction(reduced.reduce);
    if (!text.empty() && std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
  };
  VisitEach<Block>(body, add);
  VisitEach<Combine>(body, add);
  return absl::StrJoin(texts, "");
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
      case StmtKind::kLaunch:
        Line(depth, LaunchText(As<Launch>(stmt).shape));
        return Print(As<Launch>(stmt).body, depth);
      case StmtKind::kBlock: return PrintBlock(As<Block>(stmt), depth);
      case StmtKind::kStore: {
        const Store& store = As<Store>(stmt);
        return Line(
            depth, Element(store.buffer, store.indices), " = ", PrintExpr(store.value),
            store.bypass_lanes == 0 ? "" : absl::StrCat(", ", store.bypass_lanes, " lanes past the caches"),
            TurnedText(store.turned), FetchesText(store.fetches), store.flushes ? ", flushing" : "");
      }
      case StmtKind::kCombine: {
        const Combine& combine = As<Combine>(stmt);
        return Line(depth, combine.together ? "combine together " : "combine ",
                    ReductionText(ReducedBy(combine)), ExchangesText(combine.groups),
                    combine.condition ? absl::StrCat(" if ", PrintExpr(combine.condition)) : "");
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
                    mma.fetches_sums ? " fetching sums" : "", mma.is_fixed ? " of fixed tiles" : "");
      }
      case StmtKind::kCopy: return PrintCopy(As<Copy>(stmt), depth);
      case StmtKind::kVectors: return PrintVectors(As<Vectors>(stmt), depth);
      case StmtKind::kBypass:
        Line(depth, "past the caches ", NamesText(As<Bypass>(stmt).outputs));
        return Print(As<Bypass>(stmt).body, depth + 1);
      case StmtKind::kTileMove: {
        const TileMove& move = As<TileMove>(stmt);
        constexpr const char* kWords[] = {"zero tiles of ", "load tiles from ", "store tiles to "};
        Line(depth, kWords[static_cast<int>(move.move)], ViewText(move.view));
        return Print(move.nest, depth + 1);
      }
      case StmtKind::kTileRegion: {
        const TileRegion& region = As<TileRegion>(stmt);
        Line(depth, "sums in tiles, steps of ", region.depth_bytes, " bytes",
             region.configures ? ", with a configuration of their own" : "");
        for (const Stmt& part : Children(stmt)) Print(part, depth + 1);
        return;
      }
      case StmtKind::kRoles: return PrintRoles(As<Roles>(stmt), depth);
      case StmtKind::kArrive: {
        const Arrive& arrive = As<Arrive>(stmt);
        return Line(
            depth, "arrive barrier[", PrintExpr(arrive.barrier), "]",
            arrive.cluster ? " of the whole cluster" : "",
            arrive.arrivals > 1 ? absl::StrCat(" by ", arrive.arrivals, " warpgroups") : "",
            arrive.gathers ? " after all their threads" : "",
            arrive.expected_bytes > 0 ? absl::StrCat(", expects ", arrive.expected_bytes, " bytes") : "",
            arrive.released.empty() ? "" : absl::StrCat(" releasing ", NamesText(arrive.released)));
      }
      case StmtKind::kWait: {
        const Wait& wait = As<Wait>(stmt);
        return Line(depth, "wait barrier[", PrintExpr(wait.barrier), "] phase ", PrintExpr(wait.phase));
      }
      case StmtKind::kCommitProducts: return Line(depth, "commit products");
      case StmtKind::kWaitProducts: {
        const WaitProducts& wait = As<WaitProducts>(stmt);
        return Line(depth, "wait products until ", wait.pending, " pending",
                    wait.after_loop ? " after a loop" : "",
                    wait.sums.empty() ? "" : absl::StrCat(", completing ", NamesText(wait.sums)));
      }
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
    constexpr const char* kForms[] = {"", ", wide", ", in pairs"};
    const int64_t row_pad = alloc.buffer->layout.RowPad(), swizzle = alloc.buffer->swizzle_bytes();
    Line(depth, "alloc ", alloc.buffer->name, ": ", TypeText(alloc.buffer), " ",
         ScopeName(alloc.buffer->scope), row_pad == 0 ? "" : absl::StrCat(" pad ", row_pad),
         swizzle == 0 ? "" : absl::StrCat(" swizzle ", swizzle),
         alloc.offset == Alloc::kNoOffset ? "" : absl::StrCat(" at ", alloc.offset),
         kForms[static_cast<int>(alloc.registers)],
         alloc.read_columns == Alloc::kAllColumns ? ""
                                                  : absl::StrCat(", ", alloc.read_columns, " columns read"));
    Print(alloc.body, last ? depth : depth + 1);
  }

  void PrintFor(const For& loop, int depth) {
    const std::string range = IsConstInt(loop.extent, loop.var->extent)
                                  ? absl::StrCat(loop.var->extent)
                                  : absl::StrCat(PrintExpr(loop.extent), " (of ", loop.var->extent, ")");
    const std::string word(loop.loop_kind == LoopKind::kSerial ? "for" : LoopKindName(loop.loop_kind));
    Line(depth, word, " ", loop.var->name, " in ", range, MarksText(loop.marks));
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
    Line(depth, "block ", block.name, ": ", ReductionText(ReducedBy(block)), block.init ? ", init" : "");
    for (const IterVar& iter : block.iters) {
      if (IsUsual(block, iter)) continue;
      Line(depth + 1, iter.reduce ? "reduce " : "", iter.var->name, " in ", iter.var->extent, " at ",
           PrintExpr(iter.binding));
    }
  }

  void PrintCopy(const Copy& copy, int depth) {
    const char* words[] = {"copy by threads", "copy by registers", "copy in bulk"};
    Line(depth, words[static_cast<int>(copy.engine)],
         copy.chunk == 0 ? "" : absl::StrCat(", ", copy.chunk, " at a time"),
         copy.cluster ? absl::StrCat(", part ", PrintExpr(copy.cluster), " to the whole cluster") : "",
         copy.barrier ? absl::StrCat(", signals barrier[", PrintExpr(copy.barrier), "]") : "");
    Print(copy.body, depth + 1);
  }

  void PrintVectors(const Vectors& vectors, int depth) {
    Line(depth, "vectors", vectors.by_one ? " by one thread" : "");
    for (const VectorMove& load : vectors.loads) {
      Line(depth + 1, "load ", load.lanes->name, " = ", Element(load.tensor, load.indices), ", ", load.count,
           " at a time", load.once ? ", once" : "", load.conditions.empty() ? "" : " if ",
           absl::StrJoin(load.conditions, " && ", [](std::string* text, const Expr& condition) {
             text->append(PrintExpr(condition));
           }));
    }
    Print(vectors.loop, depth + 1);
    for (const VectorMove& store : vectors.stores) {
      Line(depth + 1, "store ", Element(store.tensor, store.indices), " = ", store.lanes->name, ", ",
           store.count, " at a time", store.sums ? ", of sums" : "");
    }
  }

  void PrintRoles(const Roles& roles, int depth) {
    Line(depth, "roles, barriers of [", absl::StrJoin(roles.barrier_counts, ","), "] arrivals");
    for (const Roles::Role& role : roles.roles) {
      Line(
          depth + 1, "role ", role.name,
          role.threads == 0 ? "" : absl::StrCat(", ", role.by_one ? "one of " : "", role.threads, " threads"),
          role.registers == 0 ? "" : absl::StrCat(", ", role.registers, " registers each"));
      Print(role.body, depth + 2);
    }
  }

  std::string out_;
};

std::string ParamText(const Param& param) {
  return absl::StrCat(param.buffer->name, ": ", param.kind == ParamKind::kConst ? "const " : "",
                      TypeText(param.buffer));
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
                      absl::StrJoin(outputs, ", "), ")\n", FunctionsOfTuples(function.body), printer.Take());
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
