// layout(t0.r, 8, 0): sets the layout of a buffer in a GPU's shared memory: the number of elements added to
// each row, and the swizzle of its 16-byte chunks (0, 32, 64 or 128 bytes). It changes only addresses, to
// avoid bank conflicts.
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

constexpr int64_t kMaxRowPad = 128;

absl::Status CheckLayout(const BufferNode& buffer, int64_t row_pad, int64_t swizzle) {
  if (buffer.scope != Scope::kShared) {
    return Refusal(buffer.name, " is in scope ", ScopeName(buffer.scope), "; a layout is for scope shared");
  }
  if (row_pad < 0 || row_pad > kMaxRowPad) {
    return Refusal("a row pad of ", row_pad, " elements; expected 0 to ", kMaxRowPad);
  }
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128) {
    return Refusal("swizzle ", swizzle, "; expected 0, 32, 64 or 128");
  }
  if (row_pad != 0 && swizzle != 0)
    return Refusal("a row pad of ", row_pad, " and swizzle ", swizzle, "; expected one of them");
  if (buffer.rank() < 1) return Refusal(buffer.name, " has no rows");
  // Without padding, the last dimensions together are one row.
  int64_t row_bytes = (buffer.shape.back() + row_pad) * DTypeBytes(buffer.dtype);
  for (int d = buffer.rank() - 2; d >= 0 && row_pad == 0 && swizzle != 0 && row_bytes < swizzle; --d)
    row_bytes *= buffer.shape[d];
  if (swizzle != 0 && row_bytes % swizzle != 0) {
    return Refusal("rows of ", row_bytes, " bytes; swizzle ", swizzle, " is for rows of whole ", swizzle,
                   " bytes");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Function> SetLayout(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckLayout(*buffer, args.Int(1), args.Int(2)));
  BufferNode laid_out = *buffer;
  laid_out.layout = SharedMemoryLayout(buffer->shape, DTypeBytes(buffer->dtype), args.Int(1), args.Int(2));
  return WithBody(function,
                  ReplaceBuffer(function.body, buffer, std::make_shared<BufferNode>(std::move(laid_out))));
}

}  // namespace mycc
