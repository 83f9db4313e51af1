// The team of mycc itself: one thread.
#include "codegen/runtime/artifact/parallel.h"

void MyccInParallel(MyccWork* work, void* data) { work(data, 0, 1); }
