#!/usr/bin/env bash
# Ours against oneDNN, OpenBLAS and plain loops on the f32 suite: builds, tunes each workload with at most 128 trials into a fresh log,
# times everything in turn on two cores, and ends with three figures. Options: see cpu_vs_libraries.py --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset release >/dev/null
cmake --build --preset release --target mycc mycc-tune peers_cpu time_artifact
exec python3 -B tests/perf/cpu_vs_libraries.py "$@"
