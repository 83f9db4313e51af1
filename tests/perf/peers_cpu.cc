// Times what a user would otherwise call: oneDNN, OpenBLAS, plain loops. One library and one workload a
// process, since the libraries keep their own spinning threads; tests/perf/harness.py calls it in turn with
// our artifacts.
//
//   peers_cpu --list                        names of all workloads
//   peers_cpu LIBRARY WORKLOAD [SECONDS]    prints `WORKLOAD LIBRARY[.WAY] MILLISECONDS` lines, none when the
//                                           library has no such computation; LIBRARY: onednn, openblas or
//                                           loops; SECONDS of measuring, 1.2 when not given
//
// Set OMP_NUM_THREADS and the process's cores from outside.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "tests/perf/peer_workloads.h"

namespace {

int Usage() {
  std::fprintf(stderr, "usage: peers_cpu --list | peers_cpu {onednn|openblas|loops} WORKLOAD [SECONDS]\n");
  return 2;
}

int ListWorkloads() {
  for (const mycc::PeerWorkload& workload : mycc::AllPeerWorkloads())
    std::puts(std::string(workload.name).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") return ListWorkloads();
  if (argc != 3 && argc != 4) return Usage();
  const std::string_view library = argv[1];
  const double seconds = argc == 4 ? std::atof(argv[3]) : 1.2;
  if (seconds <= 0) return Usage();
  const mycc::PeerWorkload* workload = mycc::FindPeerWorkload(argv[2]);
  if (workload == nullptr) {
    std::fprintf(stderr, "peers_cpu: no workload is called `%s`; expected one of those that --list prints\n",
                 argv[2]);
    return 2;
  }
  try {
    if (library == "onednn") {
      mycc::TimeOneDnn(*workload, seconds);
    } else if (library == "openblas") {
      mycc::TimeOpenBlas(*workload, seconds);
    } else if (library == "loops") {
      mycc::TimeLoops(*workload, seconds);
    } else {
      return Usage();
    }
  } catch (const std::exception& error) {  // oneDNN's errors
    std::fprintf(stderr, "peers_cpu: %s %s: %s\n", argv[1], argv[2], error.what());
    return 1;
  }
  return 0;
}
