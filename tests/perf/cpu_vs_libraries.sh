#!/usr/bin/env bash
# Ours against oneDNN, OpenBLAS, plain loops and PyTorch's newer libraries: builds, tunes the suites (f32, bf16, i8, f32 over blocked activations,
# attention) and workloads drawn at random with at most 128 trials each into a fresh log, checks and times everything in turn on two cores, and
# ends with the figures. Options: see cpu_vs_libraries.py --help; `--set f32`, `--set random --random 50 --seed 3`, `--only REGEX` are parts of it.
#
# Builds the programs first, unless `--bin FOLDER` or `--build FOLDER` says where they are, or this is in an archive made with `deploy/archive.sh
# --benchmarks`. PyTorch is the one that `python3` imports, or is installed into build/newest_venv; without it there is no column of it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ -e $root/CMakePresets.json && " $* " != *" --bin"* && " $* " != *" --build"* ]]; then
  (cd "$root" && cmake --preset release >/dev/null &&
    cmake --build --preset release --target mycc mycc-tune peers_cpu time_artifact cpu_peaks)
fi
exec python3 -B "$root/tests/perf/cpu_vs_libraries.py" "$@"
