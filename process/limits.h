// Sets the resource limits of a child process, and makes it end with its parent (DieWithParent). Reads from
// the system whether memory ran out (MemoryKills), and which of its starts this is (BootName). Thread rule:
// re-entrant.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "proto/measure.pb.h"

namespace mycc {

// The exit code of a child that could not allocate memory.
inline constexpr int kExitOutOfMemory = 77;

// In a fresh child: dies with `parent`, leads a process group of its own, dumps no core, and keeps the
// request's limits; a failed allocation ends it with kExitOutOfMemory.
void ConfineSelf(pid_t parent, const v1::ForkRequest& limits);
// The process is killed when the thread that made it ends. False when `parent` is gone already.
bool DieWithParent(pid_t parent);

// The number of processes that the system has killed so far to get memory back, in this process' control
// group or, where there is none, on this host.
int64_t MemoryKills();
// An id of the system's current run since its last start; empty where the system has none.
std::string BootName();

}  // namespace mycc
