#!/usr/bin/env bash
# How much the service bears: builds the benchmark (throughput.cc) with the preset `release` and runs it. Takes some minutes and 3 GB of
# disk, prints its progress, and ends in the figures, `name: value`.
#
# Usage: bash tests/perf/throughput.sh [--quick] [--equal-trials] [--records N] [--folder FOLDER]
#   --records N      trials before the figures of a large log are taken (1,000,000)
#   --folder FOLDER  where the log lies, on the disk that is to be judged ($TMPDIR or /tmp)
#   --equal-trials   the 1,000 workers' trials take exactly 1 s, where they take 0.5 to 1.5 s: the workers then go in step
#   --quick          small numbers, in some seconds: whether it works, not how fast
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ ! -f build/release/build.ninja ]]; then
  cmake --preset release >/dev/null
fi
ninja -C build/release throughput >/dev/null || ninja -C build/release throughput
output=$(mktemp)
trap 'rm -f "$output"' EXIT
build/release/bin/throughput "$@" | tee "$output"
echo
grep -E '^[a-z0-9_]+: ' "$output"
