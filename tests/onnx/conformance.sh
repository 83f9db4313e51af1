#!/usr/bin/env bash
# The cases that the Python package onnx stores for back ends: compiles each model, calls it through the C ABI, compares what it returns with the
# stored outputs, and prints the counts of each operator, the cases that do not pass with their reasons, and the figures.
#
#   tests/onnx/conformance.sh [--only REGEX] [--sample N/M] [--brief] [--require FILE] [--mycc PROGRAM] [OPTION]...
#
# All options: conformance.py --help. `--only '^test_add' --brief` and `--sample 1/10` are parts of it. Builds mycc in build/dev when it is not
# there and `--mycc` names no other. The Python is that of .venv, with the packages of tests/requirements.txt.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=$root/.venv/bin/python3
if ! "$python" -c 'import ml_dtypes, numpy, onnx' 2>/dev/null; then
  echo "conformance.sh: $python cannot import onnx; install tests/requirements.txt: tests/run.sh does, or" \
    "\`python3 -m venv .venv && .venv/bin/python3 -m pip install -r tests/requirements.txt\`" >&2
  exit 2
fi
if [[ ! -x $root/build/dev/bin/mycc && " $* " != *" --mycc"* && " $* " != *" --help "* ]]; then
  (cd "$root" && cmake --preset dev >/dev/null && cmake --build --preset dev --target mycc)
fi
exec "$python" -B "$root/tests/onnx/conformance.py" "$@"
