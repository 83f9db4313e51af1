#!/usr/bin/env bash
# Hand-written traces against the machine's measured FMA peak, on one thread: what the back end reaches without any search. Ends with
# `gemm_1024_share_of_peak:` and `conv_3x3_share_of_peak:`. Options: see hand_written.py --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset release >/dev/null
cmake --build --preset release --target mycc cpu_peaks time_artifact
exec python3 -B tests/perf/hand_written.py "$@"
