#!/usr/bin/env bash
# The Python environment of tests and benchmarks, .venv, with the packages of tests/requirements.txt. Nothing is fetched when nothing is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Whether the environment has all packages.
complete() {
  .venv/bin/python3 -B - tests/requirements.txt 2>/dev/null <<'PYTHON'
import importlib.metadata
import re
import sys

for line in open(sys.argv[1]):
    if name := re.match(r"[A-Za-z0-9_-]+", line):
        importlib.metadata.version(name[0])
PYTHON
}

if [[ ! -x .venv/bin/python3 ]]; then
  python3 -m venv .venv
fi
complete || .venv/bin/python3 -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
