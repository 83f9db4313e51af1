#!/usr/bin/env bash
# From a fresh Debian 12 to a tuned model: installs packages, builds, fetches a trained classifier of text lines (ONNX), tunes it on this machine,
# compiles it with the tuning log into one library, runs it, and compares results and speed with ONNX Runtime. A second call finds the log and
# tunes nothing.
#
#   deploy/quickstart.sh [--budget 5m]     how long to tune, at most
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly model=build/models/ch_ppocr_mobile_v2.0_cls_infer.onnx
readonly shape=x=1x3x48x192
readonly state=${XDG_STATE_HOME:-$HOME/.local/state}/mycc
readonly log=$state/classifier.db
readonly bin=build/release/bin
budget=5m

usage() {
  echo "usage: deploy/quickstart.sh [--budget 5m]" >&2
  exit 2
}

say() { printf '\n== %s\n' "$*"; }

# Whether the log has, for every kernel, a schedule from which this build makes the code that was measured.
log_is_complete() {
  [[ -f $log ]] &&
    "$bin/mycc" compile "$model" --shape "$shape" --target host --tuning-log "$log" --strict -o "$state/classifier" >/dev/null 2>&1
}

case $# in
  0) ;;
  2) [[ $1 == --budget ]] || usage; budget=$2 ;;
  *) usage ;;
esac

say "Packages, and a Python environment with NumPy and ONNX Runtime"
bash deploy/packages.sh
bash deploy/python.sh

say "Build"
cmake --preset release
cmake --build --preset release --target mycc mycc-tune

say "Model: a classifier that tells lines of text from those upside down"
bash deploy/models.sh

mkdir -p "$state"
if log_is_complete; then
  say "Tune: reusing $log, which has a schedule for every kernel (delete it to tune again)"
else
  say "Tune: $model, at most $budget, results kept in $log"
  "$bin/mycc-tune" tune "$model" --shape "$shape" --log "$log" --target host --budget "$budget"
fi

say "Compile: one library, with the log"
"$bin/mycc" compile "$model" --shape "$shape" --target host --tuning-log "$log" --name classifier -o "$state/classifier"

say "Run: the library on random numbers; \`mycc run --help\` tells how to pass images"
"$bin/mycc" run "$state/classifier/classifier.so"

say "Compare: by default schedules, tuned, and ONNX Runtime, in turn"
.venv/bin/python3 -B tests/perf/models_cpu.py "$model" --shape "$shape" --bin "$bin" --work "$state/comparison" --log "$log" --no-tune
