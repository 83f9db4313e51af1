// How allocated buffers are stored: their memory, and the order of their elements in it.
//
// set_scope(t3, shared): sets the memory of a buffer under a GPU's block loops: shared memory (shared) or
// registers (local). On a CPU it moves an accumulator that is too large for registers to memory (local).
//
//   block b:                      block b:
//     alloc t3[64] local    ->      alloc t3[64] shared
//
// layout(t0.r, 8, 0): sets the layout of a buffer in a GPU's shared memory: the number of elements added to
// each row, and the swizzle of its 16-byte chunks (0, 32, 64 or 128 bytes). It changes only addresses, to
// avoid bank conflicts.
//
// pack(t1.r, [1/16, 0, 1%16]): changes the layout of an allocated buffer. Each component is a dimension d of
// the old buffer, or its quotient, remainder or both: d, d/a, d%b, d/a%b.
//
//   t1.r[k, n]  ->  t1.r[n // 16, k, n % 16]
#include <algorithm>
#include <charconv>

#include "absl/strings/strip.h"
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

// (index[dim] / divisor) % modulus; modulus 0: none.
struct Component {
  int dim;
  int64_t divisor = 1;
  int64_t modulus = 0;
};

absl::StatusOr<Component> ParseComponent(const std::string& text) {
  Component component;
  absl::string_view rest = text;
  const auto number = [&](auto* value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *value);
    const bool ok = error == std::errc() && rest.front() != '-';
    rest.remove_prefix(end - rest.data());
    return ok;
  };
  bool ok = number(&component.dim) && component.dim < 64;
  if (ok && absl::ConsumePrefix(&rest, "/")) ok = number(&component.divisor) && component.divisor > 0;
  if (ok && absl::ConsumePrefix(&rest, "%")) ok = number(&component.modulus) && component.modulus > 0;
  if (ok && rest.empty()) return component;
  return Refusal("component ", text, " is malformed; expected d, d/a, d%b or d/a%b");
}

// The components of each dimension, from the finest, must cover it without gap or overlap, so that the layout
// is one to one.
absl::Status CheckOneToOne(std::vector<Component> components, int rank) {
  std::ranges::stable_sort(components, {}, &Component::divisor);
  for (int dim = 0; dim < rank; ++dim) {
    int64_t expected = 1;  // divisor of the next component; 0 after one without a modulus
    bool any = false;
    for (const Component& c : components) {
      if (c.dim != dim) continue;
      if (c.divisor != expected) {
        return Refusal("the components of dimension ", dim, " are not one to one at divisor ", c.divisor);
      }
      expected = c.modulus == 0 ? 0 : c.divisor * c.modulus;
      any = true;
    }
    if (!any || expected != 0) {
      return Refusal("dimension ", dim, " is not covered: one of its components must have no modulus");
    }
  }
  return absl::OkStatus();
}

// The accumulators of a tuple, such as the positions and the best values of an argmax, have one layout.
absl::Status CheckNoPair(const Function& function, const Buffer& buffer) {
  for (const Block* block : BlocksUnder(function.body)) {
    if (block->more.empty() || !block->Writes(buffer)) continue;
    return Refusal(block->name, " keeps the parts of its tuples in one layout, that of ", block->out->name,
                   " and ", block->more[0].buffer->name);
  }
  return absl::OkStatus();
}

// The function in which the buffer has another memory or layout.
template <typename Change>
Function WithBuffer(const Function& function, const Buffer& buffer, const Change& change) {
  const auto changed = std::make_shared<BufferNode>(*buffer);
  change(changed.get());
  return WithBody(function, ReplaceBuffer(function.body, buffer, changed));
}

}  // namespace

absl::StatusOr<Function> SetScope(const Function& function, const Target& target, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, args.Name(0)));
  Scope scope;
  if (!ParseScope(args.Name(1), &scope) || (scope != Scope::kLocal && scope != Scope::kShared)) {
    return Refusal(args.Name(1), " is not a scope to choose; expected local or shared");
  }
  if (target.kind != TargetKind::kCuda && (buffer->scope != Scope::kAccumulator || scope != Scope::kLocal)) {
    return Refusal("on a CPU only an accumulator changes its scope, to local; ", buffer->name, " is ",
                   ScopeName(buffer->scope));
  }
  MYCC_ASSIGN_OR_RETURN(const Path alloc, FindAlloc(function, buffer));
  const std::vector<const For*> around = LoopsOn(alloc);
  const auto is_thread = [](const For* loop) { return loop->loop_kind == LoopKind::kThread; };
  if (scope == Scope::kShared && std::ranges::any_of(around, is_thread)) {
    return Refusal(buffer->name, " is allocated inside a thread loop; each thread has its own");
  }
  if (around.empty()) {
    return Refusal(buffer->name, " is allocated at the root, in the workspace");
  }
  return WithBuffer(function, buffer, [&](BufferNode* moved) { moved->scope = scope; });
}

absl::StatusOr<Function> SetLayout(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckLayout(*buffer, args.Int(1), args.Int(2)));
  return WithBuffer(function, buffer, [&](BufferNode* laid_out) {
    laid_out->layout = SharedMemoryLayout(buffer->shape, DTypeBytes(buffer->dtype), args.Int(1), args.Int(2));
  });
}

absl::StatusOr<Function> Pack(const Function& function, const Target&, const StepArgs& args) {
  MYCC_ASSIGN_OR_RETURN(const Buffer buffer, FindAllocated(function, args.Name(0)));
  MYCC_RETURN_IF_ERROR(CheckNoPair(function, buffer));
  std::vector<Component> components;
  std::vector<int64_t> shape;
  for (const std::string& text : args.Names(1)) {
    MYCC_ASSIGN_OR_RETURN(const Component c, ParseComponent(text));
    if (c.dim >= buffer->rank()) {
      return Refusal(buffer->name, " has rank ", buffer->rank(), "; there is no dimension ", c.dim);
    }
    components.push_back(c);
    shape.push_back(c.modulus ? c.modulus : (buffer->shape[c.dim] + c.divisor - 1) / c.divisor);
  }
  MYCC_RETURN_IF_ERROR(CheckOneToOne(components, buffer->rank()));
  const Buffer packed = MakeBuffer(buffer->name, buffer->dtype, shape, buffer->scope);
  const auto reindex = [&](const std::vector<Expr>& index) {
    std::vector<Expr> result;
    for (const Component& c : components) {
      Expr part = FloorDiv(index[c.dim], c.divisor);
      result.push_back(c.modulus ? Mod(part, c.modulus) : part);
    }
    return result;
  };
  return WithBody(function, ReplaceBuffer(function.body, buffer, packed, reindex));
}

}  // namespace mycc
