// merge(l, m): joins two adjacent loops, so that the second reads what the first has just written.
//
//   for l in 8: for j in 4: P: t1[l*4 + j] = ..           for l in 8:
//   for m in 8: for j in 4: C: t2 += t1[m*4 + j]     ->     for j in 4: P: t1[l*4 + j] = ..
//                                                           for j in 4: C: t2 += t1[l*4 + j]
//
// Elements of tensors that l writes must be written in the same iteration in which m reads them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/expr/affine.h"
#include "codegen/ir/accumulators.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/schedule/moves.h"
#include "codegen/schedule/primitives/primitives.h"

namespace mycc {
namespace {

absl::Status CheckNeighbours(const Path& first, const Path& second) {
  const std::string names = absl::StrCat("loops ", first.loop().var->name, " and ", second.loop().var->name);
  const auto fail = [&](const char* why) { return Refusal(names, " ", why); };
  if (first.nodes.size() != second.nodes.size() || first.nodes.size() < 2 ||
      first.nodes[first.nodes.size() - 2] != second.nodes[second.nodes.size() - 2]) {
    return fail("are not adjacent in one body");
  }
  const std::vector<Stmt> parts = Children(first.nodes[first.nodes.size() - 2]);
  const auto at = std::ranges::find(parts, first.target());
  if (at == parts.end() || at + 1 == parts.end() || *(at + 1) != second.target())
    return fail("do not follow each other directly, in this order");
  for (const Path* path : {&first, &second}) {
    if (path->loop().loop_kind != LoopKind::kSerial || !path->loop().marks.instruction.empty())
      return fail("are not both plain serial loops");
  }
  if (first.loop().var->extent != second.loop().var->extent) return fail("have different extents");
  return absl::OkStatus();
}

bool Contains(const DimRegion& written, const DimRegion& read) {
  if (written.whole) return true;
  const Linear ahead = ToLinear(read.base - written.base);
  return !read.whole && ahead.terms.empty() && ahead.constant >= 0 &&
         ahead.constant + read.extent <= written.extent;
}

// OK when all reads of the writer's tensor under `readers` (a body over the first loop's variable) lie in the
// box that one iteration fills.
absl::Status CheckReads(const Function& function, const Block& writer, const For& first,
                        const Stmt& readers) {
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, writer));
  if (CarriesReduction(writer, first)) {
    return Refusal("loop ", first.var->name, " carries the reduction of ", writer.name,
                   ", which is not finished before its end");
  }
  for (const IterVar& iter : writer.iters) {
    if (IsGuard(writer, iter) && UsesVar(iter.binding, first.var.get())) {
      return Refusal(writer.name, " does not run in every iteration of loop ", first.var->name);
    }
  }
  const auto inner = LoopVarsUnder(first.body), inner_readers = LoopVarsUnder(readers);
  MYCC_ASSIGN_OR_RETURN(const std::vector<DimRegion> written, FilledBox(writer, inner));
  const std::vector<int64_t>& shape = writer.out->shape;
  for (const Access& access : ReadsUnder(readers, writer.out)) {
    const std::vector<DimRegion> read = CoveringBox({access}, inner_readers, shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (Contains(written[d], read[d])) continue;
      return Refusal("dimension ", d, " of ", writer.out->name,
                     " is read in an iteration that has not written it");
    }
  }
  return absl::OkStatus();
}

bool Touches(const Block& block, const Buffer& buffer) {
  return block.Writes(buffer) || Reads(block, buffer);
}

absl::Status CheckDependences(const Function& function, const For& first, const Stmt& second_body) {
  for (const Block* before : BlocksUnder(first.body)) {
    bool read = false;
    for (const Block* after : BlocksUnder(second_body)) {
      const std::vector<Buffer> written = ReducedBy(*after).buffers;
      const auto touched = [&](const Buffer& buffer) { return Touches(*before, buffer); };
      const auto written_by_both = [&](const Accumulator& part) { return Touches(*after, part.buffer); };
      if (std::ranges::any_of(written, touched) || std::ranges::any_of(before->more, written_by_both)) {
        return Refusal(after->name, " and ", before->name,
                       " share a buffer other than the result of the latter "
                       "that the former reads");
      }
      read |= Reads(*after, before->out);
    }
    if (read) MYCC_RETURN_IF_ERROR(CheckReads(function, *before, first, second_body));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Merge(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Path first_path, FindLoop(function, args.Name(0)));
  MYCC_ASSIGN_OR_RETURN(const Path second_path, FindLoop(function, args.Name(1)));
  MYCC_RETURN_IF_ERROR(CheckNeighbours(first_path, second_path));
  const For &first = first_path.loop(), &second = second_path.loop();
  const Stmt renamed = SubstituteVars(second.body, {{second.var.get(), VarRef(first.var)}});
  MYCC_RETURN_IF_ERROR(CheckDependences(function, first, renamed));

  const Function result = WithBody(function, ReplaceAt(second_path, nullptr));
  MYCC_ASSIGN_OR_RETURN(const Path merged, FindLoop(result, args.Name(0)));
  return WithLoopBody(result, merged, MakeSeq({first.body, renamed}));
}

}  // namespace mycc
