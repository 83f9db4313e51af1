// Where the server's slow work is done: beside the thread that decides, which is told when it is done. In a
// test that is at once, or when the test says so. Thread rule: called on the thread that decides, and what is
// called back is called there too.
#pragma once

#include <functional>

#include "db/log_readers.h"
#include "db/log_writer.h"
#include "server/job_search.h"

namespace mycc {

// Runs `work` of a job's search, elsewhere or at once, and then `done`. A job has one work at a time; those
// of different jobs may run side by side.
using SearchExecutor = std::function<void(std::function<void()> work, std::function<void()> done)>;

struct Executors {
  WriteExecutor write;
  ReadExecutor read;
  SearchExecutor search;
  StartSearch start_search;  // within search work
};

}  // namespace mycc
