#include "codegen/schedule/stages.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/schedule/moves.h"

namespace mycc {

Stage StageOf(const Block& block) {
  Stage stage{block.out, {}, block.reduce, {}, block.value};
  for (const IterVar& iter : block.iters) (iter.reduce ? stage.reduce_axes : stage.axes).push_back(iter.var);
  return stage;
}

absl::StatusOr<Function> ReplaceByStages(const Function& function, const Path& path,
                                         const std::vector<Stage>& stages) {
  MYCC_RETURN_IF_ERROR(CheckNaive(path));
  MYCC_RETURN_IF_ERROR(CheckOnlyWriter(function, path.block()));
  for (size_t s = 0; s + 1 < stages.size(); ++s) {
    const std::string& name = stages[s].output->name;
    if (FreshName(function, name) != name)
      return absl::FailedPreconditionError(absl::StrCat("the name ", name, " is taken"));
  }
  Path nest = path;
  nest.nodes.resize(path.nodes.size() - NestOf(path).size());
  std::vector<Stmt> nests;
  nests.reserve(stages.size());
  for (const Stage& stage : stages) nests.push_back(BuildStage(stage, nullptr));
  Function result = WithBody(function, ReplaceAt(nest, MakeSeq(std::move(nests))));
  for (auto stage = stages.rbegin() + 1; stage != stages.rend(); ++stage)
    result.body = std::make_shared<Alloc>(stage->output, std::move(result.body));
  return result;
}

}  // namespace mycc
