#!/usr/bin/env bash
# How good the search is: builds the benchmark (search_quality.cc) with the preset `release` and runs it. It ends in the figures, `name: value`.
# Every schedule that a search asks for is measured once on this host, and its time kept in a file outside the repository: about an hour and a
# half the first time, some minutes afterwards. Nothing else should run meanwhile.
#
# Usage: bash tests/perf/search_quality.sh [--quick] [--cache FILE]
#   --cache FILE  where the times are kept (~/.cache/mycc/search_quality.tsv, or under XDG_CACHE_HOME)
#   --quick       two workloads and few trials: whether it works, not how well the search does
set -euo pipefail
cd "$(dirname "$0")/../.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/mycc/search_quality.tsv
quick=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --quick) quick=(--quick); shift ;;
    --cache) cache=${2:?--cache: expected a file}; shift 2 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "tests/perf/search_quality.sh" >&2; exit 2 ;;
  esac
done
mkdir -p "$(dirname "$cache")"
if [[ ! -f build/release/build.ninja ]]; then
  cmake --preset release >/dev/null
fi
ninja -C build/release search_quality >/dev/null || ninja -C build/release search_quality
build/release/bin/search_quality "${quick[@]}" tests/perf/search_quality.te "$cache"
