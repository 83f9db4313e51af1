#!/usr/bin/env bash
# Whole models against ONNX Runtime, on two cores: builds, compiles each model by default schedules, checks and times it in turn with ONNX
# Runtime, tunes it into a log, compiles it with the log and times it again, and ends with the figures.
#
#   tests/perf/models_cpu.sh [MODEL.onnx]... [--shape NAME=1x3x48x192]... [--no-tune] [--budget 10m] [--log FILE] [OPTION]...
#
# All options: models_cpu.py --help. Without a model, these are the two of deploy/models.sh, and resnet50, mobilenet_v2, vit_b_16 and bert_base,
# which are exported into build/models with PyTorch: the one that `python3` of .venv imports, or one that is installed into build/models_venv.
#
# Builds the programs first, unless `--bin FOLDER` says where they are, or this is in an archive made with `deploy/archive.sh --benchmarks`. The
# Python is that of .venv, with the packages of tests/requirements.txt; where there is no .venv, it is `python3`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=$root/.venv/bin/python3
[[ -x $python ]] || python=python3
if ! "$python" -c 'import ml_dtypes, numpy, onnxruntime' 2>/dev/null; then
  echo "models_cpu.sh: $python cannot import ml_dtypes, numpy and onnxruntime; install tests/requirements.txt: tests/run.sh does, or" \
    "\`python3 -m venv .venv && .venv/bin/python3 -m pip install -r tests/requirements.txt\`" >&2
  exit 2
fi
if [[ -e $root/CMakePresets.json && " $* " != *" --bin"* && " $* " != *" --help "* ]]; then
  (cd "$root" && cmake --preset release >/dev/null && cmake --build --preset release --target mycc mycc-tune)
fi
exec "$python" -B "$root/tests/perf/models_cpu.py" "$@"
