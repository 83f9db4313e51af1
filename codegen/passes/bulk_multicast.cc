#include "codegen/passes/bulk_multicast.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/ir/visit.h"
#include "codegen/passes/bulk_box.h"

namespace mycc {
namespace {

bool HaveSameSteps(const Stmt& body, const Var& ring, const Var& cluster) {
  const std::vector<Stmt> path = PathTo(body, [&](const Stmt& stmt) { return IsLoopOver(stmt, ring); });
  // Neither the loop nor what is around it depends on the block.
  return std::none_of(path.begin(), path.end(),
                      [&](const Stmt& stmt) { return UsesVar(stmt, cluster.get()); });
}

// The blocks divide the outermost dimension with several elements into equal parts of whole swizzles.
absl::Status CheckDivision(const BulkBox& box, const Var& cluster) {
  constexpr int64_t kSwizzleRows = 8;  // a swizzle repeats after them
  int64_t rows = 1, outermost = 0;
  for (size_t d = 0; d + 1 < box.dims.size(); ++d) {
    if (outermost <= 1) outermost = box.dims[d].extent;
    rows *= box.dims[d].extent;
  }
  if (outermost % cluster->extent == 0 && rows / cluster->extent % kSwizzleRows == 0) return absl::OkStatus();
  return Refusal("the blocks of cluster ", cluster->name, " cannot divide the ", rows, " rows of ",
                 box.shared->name, " into equal parts of whole 8 rows");
}

}  // namespace

bool IsMulticast(const Stmt& copy, const Var& cluster) {
  return cluster != nullptr && !AnyStmt(copy, [&](const Stmt& stmt) { return UsesVar(stmt, cluster.get()); });
}

absl::Status CheckCluster(const Stmt& body, const LoopParts& parts, const Var& ring, const Var& cluster) {
  const std::string who = absl::StrCat("the blocks of cluster ", cluster->name);
  if (!HaveSameSteps(body, ring, cluster)) return Refusal(who, " do not execute the same steps");
  bool shares = false;
  for (const Stmt& copy : parts.copies) {
    if (!IsMulticast(copy, cluster)) continue;
    shares = true;
    MYCC_RETURN_IF_ERROR(CheckDivision(*BulkBoxOf(copy), cluster));
  }
  if (shares) return absl::OkStatus();
  return Refusal(who, " have no tile in common");
}

}  // namespace mycc
