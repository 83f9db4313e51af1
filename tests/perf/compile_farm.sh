#!/usr/bin/env bash
# How fast a compile farm tunes (compile_farm.cc): the server's own code in simulated time, with the recorded times of a tune on an H200. Needs
# no GPU. Ends in the figure, `name: value`: the seconds until 574 candidates on 10 build workers have their results.
#
# Usage: bash tests/perf/compile_farm.sh [--preset release] [--quick]
set -euo pipefail
cd "$(dirname "$0")/../.."

preset=release
quick=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset) preset=$2; shift 2 ;;
    --quick) quick=(--quick); shift ;;
    *) sed -n '5s/^# //p' "$0" >&2; exit 2 ;;
  esac
done
if [[ ! -f build/$preset/build.ninja ]]; then
  cmake --preset "$preset" >/dev/null
fi
ninja -C "build/$preset" compile_farm >/dev/null || ninja -C "build/$preset" compile_farm
"build/$preset/bin/compile_farm" "${quick[@]}" tests/perf/suite_gpu.te tests/perf/compile_farm_h200.txt
