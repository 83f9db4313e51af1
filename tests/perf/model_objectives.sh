#!/usr/bin/env bash
# Finds the training objective that serves the cost model best: builds the program (model_objectives.cc) with the preset `release` and runs it on
# tuning logs that random searches filled. Takes some minutes, and ends in the figures, `name: value`. Without LOG, a log is filled first: 8 small
# workloads, 256 random candidates each; with --many 45 more (small_workloads.py), which takes about an hour.
#
# Usage: bash tests/perf/model_objectives.sh [--many] [LOG...]
set -euo pipefail
cd "$(dirname "$0")/../.."

many=
if [[ ${1:-} == --many ]]; then
  many=yes
  shift
fi
if [[ ! -f build/release/build.ninja ]]; then
  cmake --preset release >/dev/null
fi
ninja -C build/release model_objectives mycc-tune >/dev/null || ninja -C build/release model_objectives mycc-tune
if [[ $# -eq 0 ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cp tests/perf/model_samples.te "$folder/samples.te"
  if [[ -n $many ]]; then
    python3 -B tests/perf/small_workloads.py >>"$folder/samples.te"
  fi
  build/release/bin/mycc-tune tune "$folder/samples.te" --log "$folder/samples.db" --target "host threads=1" --strategy random \
    --trials 256 --seed 1 --quiet
  set -- "$folder/samples.db"
fi
build/release/bin/model_objectives "$@"
