// The operators and functions of Python expressions on values. InvalidArgument, with what was expected, where
// Python raises an exception or an integer needs more than 64 bits. Pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "laboratory/expression.h"

namespace mycc {

absl::StatusOr<PythonValue> ApplyPython(PythonOperator op, const PythonValue& left, const PythonValue& right);
absl::StatusOr<PythonValue> ApplyPython(PythonOperator op, const PythonValue& operand);
// One link of a chain of comparisons.
absl::StatusOr<PythonValue> ComparePython(PythonOperator op, const PythonValue& left,
                                          const PythonValue& right);
// An element of a list, or a character of a text; negative indices count from the end.
absl::StatusOr<PythonValue> PythonElement(const PythonValue& container, const PythonValue& index);
// REQUIRES: as many arguments as the function takes.
absl::StatusOr<PythonValue> CallPython(PythonFunction function, const std::vector<PythonValue>& arguments);

// Python's `//` and `%`, which round down; C++'s round towards zero. REQUIRES: b is not 0, and for integers
// not -1.
int64_t FloorQuotient(int64_t a, int64_t b);
int64_t FloorRemainder(int64_t a, int64_t b);  // has the divisor's sign
double FloatFloorQuotient(double a, double b);
double FloatRemainder(double a, double b);

// The same text as in an expression: "//".
const char* OperatorText(PythonOperator op);

}  // namespace mycc
