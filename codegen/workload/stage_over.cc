#include "codegen/workload/stage_over.h"

#include "absl/strings/str_cat.h"

namespace mycc {

Stage StageOver(const std::string& tensor, DType dtype, const std::vector<int64_t>& shape) {
  Stage stage;
  stage.output = MakeBuffer(tensor, dtype, shape);
  for (size_t d = 0; d < shape.size(); ++d) stage.axes.push_back(MakeVar(absl::StrCat("a", d), shape[d]));
  return stage;
}

std::vector<int64_t> ExtentsOf(const std::vector<Var>& axes) {
  std::vector<int64_t> extents;
  extents.reserve(axes.size());
  for (const Var& axis : axes) extents.push_back(axis->extent);
  return extents;
}

std::vector<Expr> IndexOf(const std::vector<Var>& axes) {
  std::vector<Expr> index;
  index.reserve(axes.size());
  for (const Var& axis : axes) index.push_back(VarRef(axis));
  return index;
}

}  // namespace mycc
