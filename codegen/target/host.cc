// Alone in its file, so that a test may link another answer in its place.
#include "codegen/target/this_machine.h"

namespace mycc {

Target DetectHostTarget() { return DetectTarget(ThisProcessor(), UsableThreads()); }

}  // namespace mycc
