#!/usr/bin/env bash
# Ours against PyTorch's libraries and its autotuner on an NVIDIA GPU: tunes each workload of the suite, or of another set (`--set types`: other types
# and layouts; `--set attention`), with at most 64 trials (fewer by `--min-gain`) into a fresh log, times everything in turn in one process, and ends with its figures.
# Options: see gpu_vs_libraries.py --help.
#
# Builds the programs first, unless `--bin FOLDER` says where they are: on a host with no compiler, the bin/ of an unpacked archive.
# Python is `python3` with PyTorch.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ " $* " != *" --bin"* ]]; then
  (cd "$root" && cmake --preset release >/dev/null && cmake --build --preset release --target mycc mycc-tune)
fi
exec python3 -B "$root/tests/perf/gpu_vs_libraries.py" "$@"
