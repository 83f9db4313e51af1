// pack(t1.r, [1/16, 0, 1%16]): changes the layout of an allocated buffer. Each component is a dimension d of
// the old buffer, or its quotient, remainder or both: d, d/a, d%b, d/a%b.
//
//   t1.r[k, n]  ->  t1.r[n // 16, k, n % 16]
#include <algorithm>
#include <cctype>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "codegen/ir/stmt_exprs.h"
#include "codegen/schedule/primitives/primitives.h"
#include "codegen/schedule/tree.h"

namespace mycc {
namespace {

// (index[dim] / divisor) % modulus; modulus 0: none.
struct Component {
  int dim;
  int64_t divisor = 1;
  int64_t modulus = 0;
};

absl::StatusOr<Component> ParseComponent(const std::string& text) {
  Component component;
  size_t at = 0;
  const auto number = [&](int64_t* value) {
    size_t end = at;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    const bool ok = end > at && absl::SimpleAtoi(absl::string_view(text).substr(at, end - at), value);
    at = end;
    return ok;
  };
  int64_t dim = 0;
  bool ok = number(&dim) && dim < 64;
  component.dim = static_cast<int>(dim);
  if (ok && at < text.size() && text[at] == '/')
    ok = (++at, number(&component.divisor)) && component.divisor > 0;
  if (ok && at < text.size() && text[at] == '%')
    ok = (++at, number(&component.modulus)) && component.modulus > 0;
  if (!ok || at != text.size()) {
    return Refusal("component ", text, " is malformed; expected d, d/a, d%b or d/a%b");
  }
  return component;
}

// The components of each dimension, from the finest, must cover it without gap or overlap, so that the layout
// is one to one.
absl::Status CheckOneToOne(std::vector<Component> components, int rank) {
  std::stable_sort(components.begin(), components.end(),
                   [](const Component& a, const Component& b) { return a.divisor < b.divisor; });
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

}  // namespace

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
