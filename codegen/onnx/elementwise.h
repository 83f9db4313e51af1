// The common parts of operators that work element by element: the types that they take, broadcasting, and the
// stage. Internal to this folder. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "codegen/onnx/node_import.h"

namespace mycc::onnx {

// Sets of ONNX's element types. Types that the language holds as bits or one per byte are in none but the
// last.
enum Takes : unsigned {
  kTakesFloats = 1,  // of 16 bits and more
  kTakesSigned = 2,
  kTakesUnsigned = 4,
  kTakesBools = 8,
  kTakesFloat8s = 16,
  kTakesIntegers = kTakesSigned | kTakesUnsigned,
  kTakesNumbers = kTakesIntegers | kTakesFloats,
  kTakesPlain = kTakesNumbers | kTakesBools,
};

// Refuses input `i` when it is missing or of a type outside of the set.
absl::Status ExpectTypes(const NodeImport& n, size_t i, unsigned takes);
// Refuses inputs `first` to `last` when one is missing or outside of the set, or when their types differ.
absl::Status ExpectOneType(const NodeImport& n, size_t first, size_t last, unsigned takes);
// The shape that the inputs `first` to `last` are broadcast to.
absl::StatusOr<std::vector<int64_t>> BroadcastOfInputs(const NodeImport& n, size_t first, size_t last);

using UnaryFunction = std::function<Expr(const Expr&)>;
using BinaryFunction = std::function<Expr(const Expr&, const Expr&)>;

// Output 0 is a function of the elements of input 0.
absl::Status MapUnary(NodeImport& n, unsigned takes, const UnaryFunction& function);
// The same for floats, where types of less than 32 bits are computed in f32 and rounded once: for functions
// of several steps, or whose intermediate values need more range.
absl::Status MapUnaryWide(NodeImport& n, const UnaryFunction& function);
// Output 0 is a function of the elements of inputs 0 and 1, which are of one type and broadcast.
absl::Status MapBinary(NodeImport& n, unsigned takes, const BinaryFunction& function);

// A number of the type of another expression.
Expr NumberLike(const Expr& like, double value);
// The one element of a tensor, as a constant where it is known.
Expr OnlyElement(const GraphBuilder& g, const Buffer& tensor);

// Short spellings of the language's functions.
inline Expr LessThan(const Expr& a, const Expr& b) { return MakeBinary(Op::kLt, a, b); }
inline Expr AtMost(const Expr& a, const Expr& b) { return MakeBinary(Op::kLe, a, b); }
inline Expr Quotient(const Expr& a, const Expr& b) { return MakeBinary(Op::kDiv, a, b); }
inline Expr Negative(const Expr& a) { return MakeUnary(Op::kNeg, a); }
inline Expr Magnitude(const Expr& a) { return MakeUnary(Op::kAbs, a); }
inline Expr ExpOf(const Expr& a) { return MakeUnary(Op::kExp, a); }
inline Expr ClampTo(const Expr& a, const Expr& low, const Expr& high) {
  return MakeBinary(Op::kMin, MakeBinary(Op::kMax, a, low), high);
}

}  // namespace mycc::onnx
