// Finds loops and blocks by name in a function's body, and replaces them. Every primitive is built on it.
// Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "codegen/ir/function.h"

namespace mycc {

// The statements from the body's root (first) to the one that was found (last).
struct Path {
  std::vector<Stmt> nodes;

  const Stmt& target() const { return nodes.back(); }
  const For& loop() const { return As<For>(target()); }
  const Block& block() const { return As<Block>(target()); }
};

// FailedPrecondition names the missing loop or block, and those that exist.
absl::StatusOr<Path> FindLoop(const Function& function, const std::string& name);
absl::StatusOr<Path> FindBlock(const Function& function, const std::string& name);
// The loop, which has to be around the block.
absl::StatusOr<Path> FindLoopAround(const Function& function, const std::string& name,
                                    const std::string& block);
absl::StatusOr<Path> FindAlloc(const Function& function, const Buffer& buffer);
// The function without the Alloc of a buffer that nothing uses any more, or that another Alloc has.
absl::StatusOr<Function> WithoutAlloc(const Function& function, const Buffer& buffer);
// Whether the buffer is a parameter, of this kind where one is given.
bool IsParam(const Function& function, const Buffer& buffer, std::optional<ParamKind> kind = std::nullopt);

// The body with the path's target replaced; a null replacement removes it, and with it the loops, ifs and
// sequences left empty.
Stmt ReplaceAt(const Path& path, Stmt replacement);
Function WithBody(const Function& function, Stmt body);
// The function in which the path's loop has another body.
Function WithLoopBody(const Function& function, const Path& loop, Stmt body);

// The blocks under a statement, in execution order.
std::vector<const Block*> BlocksUnder(const Stmt& stmt);
// The last block that writes the buffer; null for inputs.
const Block* WriterOf(const Function& function, const Buffer& buffer);
// FailedPrecondition unless `block` alone writes its tensor.
absl::Status CheckOnlyWriter(const Function& function, const Block& block);
bool Reads(const Block& block, const Buffer& buffer);
// Every load in the block's values and indices.
std::vector<const ExprNode*> LoadsOf(const Block& block);
// Whether a block under the statement does.
bool ReadsAnywhere(const Stmt& stmt, const Buffer& buffer);
bool ContainsBlock(const Stmt& stmt, const std::string& name);

// The variables of the loops under a statement (itself included), and of the loops on a path (its target
// included).
VarSet LoopVarsUnder(const Stmt& stmt);
VarSet LoopVarsOn(const Path& path);
std::vector<const For*> LoopsOn(const Path& path);
// The loops on the path inside `loop`, outermost first.
std::vector<const For*> LoopsInside(const Path& path, const For& loop);

// The bindings of all iteration variables of a block, for Substitute; and the variables that it reduces over.
VarMap BindingsOf(const Block& block);
std::vector<Var> ReduceAxesOf(const Block& block);

// The block out[indices] = value.
std::shared_ptr<Block> MakeBlock(std::string name, std::vector<IterVar> iters, Buffer out,
                                 std::vector<Expr> indices, Expr value);
// Lets the block run only where 0 <= `index` < `extent`, by an iteration variable with this value.
Var AddGuard(Block* block, int64_t extent, Expr index);

// The values of the variables of nested loops, outermost first, in iteration `number` of all of them; and the
// same where `number` is inside their extents.
VarMap ValuesAt(const std::vector<const For*>& loops, Expr number);
VarMap DigitsOf(const std::vector<const For*>& loops, const Expr& number);

// An allocated buffer of the function (not a parameter) by name.
absl::StatusOr<Buffer> FindAllocated(const Function& function, const std::string& name);
// A parameter or allocated buffer by name.
absl::StatusOr<Buffer> FindBuffer(const Function& function, const std::string& name);
// `base` if it is not taken, else base2, base3, ...
template <typename IsTakenFn>
std::string FirstFree(const std::string& base, const IsTakenFn& is_taken) {
  std::string name = base;
  for (int number = 2; is_taken(name); ++number) name = absl::StrCat(base, number);
  return name;
}
// The first of these names that no block, buffer or loop prefix has.
std::string FreshName(const Function& function, const std::string& base);

// The statements of a body in order, inside its Allocs; and the body with others in their place.
std::vector<Stmt> PartsOf(const Stmt& body);
Stmt WithParts(const Stmt& body, std::vector<Stmt> parts);
// The body with one more part: before the first that reads one of `buffers`, or at the end. REQUIRES, of the
// first: there is such a reader.
Stmt InsertBeforeReader(const Stmt& body, const std::vector<Buffer>& buffers, const Stmt& stmt);
Stmt Append(const Stmt& body, const Stmt& stmt);

}  // namespace mycc
