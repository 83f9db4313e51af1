#!/usr/bin/env bash
# Do two cold tunes agree? Tunes at least 40 small CPU workloads twice, with logs and caches of their own, compiles both choices of each workload,
# times them side by side in one process, in turn, and ends with
#
#   disagreement_outside_ties: N   share of workloads whose two choices differ by more than a final round's tie
#   runtime_difference: N          mean difference between the two choices' times, 0 where they are the same code
#
#   bash tests/perf/agreement.sh [--trials N] [--budget 10m] [--seeds A B] [--only REGEX] [--quick] [--bin FOLDER] [--work FOLDER]
#
# It needs a quiet machine with two cores: an hour with 64 trials for each workload. Builds the programs first unless --bin says where they are. --quick tunes four
# workloads with few trials: whether it works, and no figure of how well.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ -e $root/CMakePresets.json && " $* " != *" --bin"* ]]; then
  (cd "$root" && cmake --preset release >/dev/null && cmake --build --preset release --target mycc mycc-tune >/dev/null)
fi
exec python3 -B "$root/tests/perf/agreement.py" "$@"
