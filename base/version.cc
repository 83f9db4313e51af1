#include "base/version.h"

namespace mycc {

std::string ProgramVersion() { return MYCC_VERSION; }

}  // namespace mycc
