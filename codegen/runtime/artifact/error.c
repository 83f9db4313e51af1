// Keeps the error text of each thread. It is allocated by a thread's first error.
#include <stdarg.h>
#include <stdio.h>

#include "codegen/runtime/artifact/artifact.h"

static _Thread_local char last_error[1024];

int32_t MyccFail(const char* format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(last_error, sizeof last_error, format, values);
  va_end(values);
  return 1;
}

const char* MyccLastError(void) { return last_error; }
