// The recurrence of recurrent.c for each instruction set.
#include <math.h>

#include "codegen/runtime/artifact/recurrent.h"

#define BYTES 16
#define TARGET
#define FOR_SET(name) name##Base
#include "codegen/runtime/artifact/recurrent_set.h"
#undef BYTES
#undef TARGET
#undef FOR_SET

#define BYTES 32
#define TARGET __attribute__((target("avx2,fma")))
#define FOR_SET(name) name##Fma
#include "codegen/runtime/artifact/recurrent_set.h"
#undef BYTES
#undef TARGET
#undef FOR_SET

#define BYTES 64
#define TARGET __attribute__((target("avx512f,avx2,fma")))
#define FOR_SET(name) name##Avx512
#include "codegen/runtime/artifact/recurrent_set.h"
