// Times what a user would otherwise call: oneDNN, OpenBLAS, plain loops. One library and one workload a
// process, since the libraries keep their own spinning threads; tests/perf/harness.py calls it in turn with
// our artifacts.
//
//   peers_cpu LIBRARY SPEC FOLDER [SECONDS]  prints `SPEC LIBRARY[.WAY] MILLISECONDS` and `SPEC
//                                            LIBRARY[.WAY].difference VALUE` lines (peer_data.h), none when
//                                            the library has no such computation; LIBRARY: onednn, openblas
//                                            or loops; SPEC: see peer_workloads.h; FOLDER: of time_artifact
//                                            --save; SECONDS of measuring, 1.2 when not given
//
// Set OMP_NUM_THREADS and the process's cores from outside.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <string_view>

#include "tests/perf/peer_workloads.h"

namespace {

using Time = void (*)(const mycc::PeerWorkload&, const mycc::PeerData&, double);
const std::map<std::string_view, Time> kLibraries = {
    {"onednn", mycc::TimeOneDnn}, {"openblas", mycc::TimeOpenBlas}, {"loops", mycc::TimeLoops}};

int Refuse(const std::string& why) {
  std::fprintf(stderr, "peers_cpu: %s\n", why.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 5 ? std::atof(argv[4]) : 1.2;
  const auto library = argc >= 4 && argc <= 5 ? kLibraries.find(argv[1]) : kLibraries.end();
  if (library == kLibraries.end() || seconds <= 0)
    return Refuse("usage: peers_cpu {onednn|openblas|loops} SPEC FOLDER [SECONDS]");
  mycc::PeerWorkload workload;
  if (std::string error; !mycc::ParsePeerWorkload(argv[2], &workload, &error)) return Refuse(error);
  try {
    library->second(workload, mycc::PeerData(argv[3]), seconds);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peers_cpu: %s %s: %s\n", argv[1], argv[2], error.what());
    return 1;
  }
  return 0;
}
