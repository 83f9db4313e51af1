#!/usr/bin/env bash
# How near 16 trials come to 512 on an NVIDIA GPU: tunes the 24 workloads of the suite and 12 of drawn shapes with both budgets, times both
# kernels of each in turn, and ends with three figures. Takes about an hour on one GPU; `--devices 8` uses eight. Options: see gpu_budgets.py --help.
#
# Builds the programs first, unless `--bin FOLDER` says where they are: on a host with no compiler, the bin/ of an unpacked archive.
# Python is `python3` with PyTorch.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ " $* " != *" --bin"* ]]; then
  (cd "$root" && cmake --preset release >/dev/null && cmake --build --preset release --target mycc mycc-tune)
fi
exec python3 -B "$root/tests/perf/gpu_budgets.py" "$@"
