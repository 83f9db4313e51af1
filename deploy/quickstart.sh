#!/usr/bin/env bash
# From a fresh Debian 12 to a tuned ResNet-50: installs packages, builds, tunes the network's distinct layers on this machine, compiles
# them with the tuning log, runs them, and prints how much faster they became. A second call finds the log and tunes nothing.
#
#   deploy/quickstart.sh [--budget 8m]     how long to tune, at most
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly layers=examples/resnet50_b1_f32.te
readonly state=${XDG_STATE_HOME:-$HOME/.local/state}/mycc
readonly log=$state/resnet50.db
readonly bin=build/release/bin
budget=8m

usage() {
  echo "usage: deploy/quickstart.sh [--budget 8m]" >&2
  exit 2
}

say() { printf '\n== %s\n' "$*"; }

# Whether the log has, for every layer, a schedule from which this build makes the code that was measured.
log_is_complete() {
  [[ -f $log ]] &&
    "$bin/mycc" compile "$layers" --target host --tuning-log "$log" --strict -o "$state/tuned" >/dev/null 2>&1
}

case $# in
  0) ;;
  2) [[ $1 == --budget ]] || usage; budget=$2 ;;
  *) usage ;;
esac

say "Packages"
bash deploy/packages.sh

say "Build"
cmake --preset release
cmake --build --preset release --target mycc mycc-tune time_artifact peers_cpu

mkdir -p "$state"
if log_is_complete; then
  say "Tune: reusing $log, which has a schedule for every layer (delete it to tune again)"
else
  say "Tune: $layers, at most $budget, results kept in $log"
  "$bin/mycc-tune" tune "$layers" --log "$log" --target host --budget "$budget"
fi

say "Compile: with the default schedules, and with the log"
"$bin/mycc" compile "$layers" --target host -o "$state/default" >/dev/null
"$bin/mycc" compile "$layers" --target host --tuning-log "$log" -o "$state/tuned"

say "Run"
name=$(basename "$layers" .te)
python3 -B tests/perf/layer_table.py "$layers" --programs "$bin" \
  --default "$state/default/$name.so" --tuned "$state/tuned/$name.so"
