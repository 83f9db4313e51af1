// layout(t0.r, 8, 0): sets the layout of a buffer in a GPU's shared memory: the number of elements added to
// each row, and the swizzle of its 16-byte chunks (0, 32, 64 or 128 bytes). It changes only addresses, to
// avoid bank conflicts.
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

constexpr int64_t kMaxRowPad = 128;

absl::Status CheckLayout(const BufferNode& buffer, int64_t row_pad, int64_t swizzle) {
  if (buffer.scope != Scope::kShared) {
    return absl::FailedPreconditionError(absl::StrCat(buffer.name, " is in scope ", ScopeName(buffer.scope),
                                                      "; a layout is for scope shared"));
  }
  if (row_pad < 0 || row_pad > kMaxRowPad) {
    return absl::FailedPreconditionError(
        absl::StrCat("a row pad of ", row_pad, " elements; expected 0 to ", kMaxRowPad));
  }
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128) {
    return absl::FailedPreconditionError(absl::StrCat("swizzle ", swizzle, "; expected 0, 32, 64 or 128"));
  }
  if (buffer.rank() < 1) return absl::FailedPreconditionError(absl::StrCat(buffer.name, " has no rows"));
  // Without padding, the last dimensions together are one row.
  int64_t row_bytes = (buffer.shape.back() + row_pad) * DTypeBytes(buffer.dtype);
  for (int d = buffer.rank() - 2; d >= 0 && row_pad == 0 && swizzle != 0 && row_bytes < swizzle; --d)
    row_bytes *= buffer.shape[d];
  if (swizzle != 0 && row_bytes % swizzle != 0) {
    return absl::FailedPreconditionError(absl::StrCat("rows of ", row_bytes, " bytes; swizzle ", swizzle,
                                                      " is for rows of whole ", swizzle, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> Layout(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckLayout(*buffer, args.Int(1), args.Int(2)));
  BufferNode laid_out = *buffer;
  laid_out.layout = SharedLayout{args.Int(1), static_cast<int>(args.Int(2))};
  return WithBody(function,
                  ReplaceBuffer(function.body, buffer, std::make_shared<BufferNode>(std::move(laid_out))));
}

}  // namespace mycc
