#include "proto/server_facts.h"

namespace mycc {

std::string ProgramVersion() { return MYCC_VERSION; }

}  // namespace mycc
