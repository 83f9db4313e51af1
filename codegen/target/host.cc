// Detects the host's target. It is alone in its file, so that a test can link another function in its place.
#include "codegen/target/this_machine.h"

namespace mycc {

Target DetectHostTarget() { return DetectTarget(ThisProcessor(), UsableThreads()); }

}  // namespace mycc
