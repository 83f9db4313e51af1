#!/usr/bin/env bash
# How good the search is: builds the benchmark (search_quality.cc) with the preset `release` and runs it. It ends in the figures, `name: value`.
# Every schedule that a search asks for is measured once on this host, and its time kept in a file outside the repository: about an hour and a
# half the first time, some minutes afterwards. Nothing else should run meanwhile.
#
# Usage: bash tests/perf/search_quality.sh [--quick] [--cache FILE] [--jobs N] [--bin FOLDER]
#   --cache FILE  where the times are kept (~/.cache/mycc/search_quality.tsv, or under XDG_CACHE_HOME)
#   --quick       two workloads and few trials: whether it works, not how well the search does
#   --jobs N      N processes measure at the same time, each on two cores of its own: for hosts of many cores
#   --bin FOLDER  where search_quality is, built elsewhere
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/mycc/search_quality.tsv
quick=()
jobs=1
bin=
while [[ $# -gt 0 ]]; do
  case $1 in
    --quick) quick=(--quick); shift ;;
    --cache) cache=${2:?--cache: expected a file}; shift 2 ;;
    --jobs) jobs=${2:?--jobs: expected a number}; shift 2 ;;
    --bin) bin=${2:?--bin: expected a folder}; shift 2 ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "tests/perf/search_quality.sh" >&2; exit 2 ;;
  esac
done
mkdir -p "$(dirname "$cache")"
if [[ -z $bin ]]; then
  bin=build/release/bin
  if [[ ! -f build/release/build.ninja ]]; then
    cmake --preset release >/dev/null
  fi
  ninja -C build/release search_quality >/dev/null || ninja -C build/release search_quality
fi
# Each of several processes has a folder of its own for the lock under which kernels are timed alone.
folders=$(mktemp -d)
trap 'rm -rf "$folders"' EXIT
python3 -B tests/perf/small_workloads.py >"$folders/corpus.te"
run=("$bin/search_quality" "${quick[@]}")
files=(tests/perf/search_quality.te "$folders/corpus.te" "$cache")
if [[ $jobs -eq 1 ]]; then
  "${run[@]}" "${files[@]}"
  exit
fi

# on_own_cores I WORD...: the program on the I-th pair of cores.
on_own_cores() {
  local first=$((2 * ($1 - 1)))
  mkdir -p "$folders/$1"
  XDG_RUNTIME_DIR=$folders/$1 taskset -c "$first,$((first + 1))" "${run[@]}" "${@:2}" "${files[@]}"
}
# in_parts WHAT PARTS: `--WHAT 1/PARTS` to `--WHAT PARTS/PARTS` side by side, without what they print.
in_parts() {
  local parts=() part
  for ((part = 1; part <= $2; ++part)); do
    on_own_cores "$part" "--$1" "$part/$2" >/dev/null &
    parts+=($!)
  done
  for part in "${parts[@]}"; do wait "$part"; done
}
in_parts searches "$jobs"
in_parts figures "$((jobs < 8 ? jobs : 8))"
on_own_cores 1
