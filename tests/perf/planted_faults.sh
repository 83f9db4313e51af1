#!/usr/bin/env bash
# Plants faults in lowered CPU and GPU kernels, one at a time, and counts those that the verifier, the interpreter or
# the comparison with the reference notices. Builds what it needs; needs no GPU. The last two lines are `planted: N`
# and `caught: N`; the exit status is 0 when every fault was caught.
#
#   bash tests/perf/planted_faults.sh [--every N] [--only NAME] [--verbose] [--show]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cmake --preset dev > /dev/null
cmake --build build/dev --target planted_faults > /dev/null
build/dev/bin/planted_faults "$@"
