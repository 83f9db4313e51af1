// The recurrence for one instruction set and both types.
#include "codegen/runtime/artifact/recurrent_activations.h"

#define Real float
#define NAMED(name) FOR_SET(name##F32)
#define MATH(name) name##f
#include "codegen/runtime/artifact/recurrent_products.h"
// The cells use the products.
#include "codegen/runtime/artifact/recurrent_cells.h"
#undef Real
#undef NAMED
#undef MATH

#define Real double
#define NAMED(name) FOR_SET(name##F64)
#define MATH(name) name
#include "codegen/runtime/artifact/recurrent_products.h"
// The cells use the products.
#include "codegen/runtime/artifact/recurrent_cells.h"
#undef Real
#undef NAMED
#undef MATH
