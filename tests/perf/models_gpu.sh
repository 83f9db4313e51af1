#!/usr/bin/env bash
# Whole models against PyTorch's compiler on an NVIDIA GPU: exports each model in f16, compiles it by default schedules, tunes it, compiles it
# with the log, and times both in turn with what `torch.compile` makes of the same model. Everything is captured in CUDA graphs.
#
#   tests/perf/models_gpu.sh [MODEL.onnx]... [--shape NAME=1x3x48x192]... [--batches 1,32] [--budget 60s] [--mode max-autotune] [OPTION]...
#
# All options: models_gpu.py --help. Without a model, these are resnet50, mobilenet_v2, vit_b_16 and bert_base of export_models.py. A model that
# is named runs in PyTorch operator by operator as its file says (onnx_torch.py), compiled in the same way.
#
# Builds the programs first, unless `--bin FOLDER` says where they are, or this is in an archive made with `deploy/archive.sh --benchmarks`. Python
# is `python3` with PyTorch, transformers, onnx and onnxscript.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ -e $root/CMakePresets.json && " $* " != *" --bin"* && " $* " != *" --help "* ]]; then
  (cd "$root" && cmake --preset release >/dev/null && cmake --build --preset release --target mycc mycc-tune)
fi
exec python3 -B "$root/tests/perf/models_gpu.py" "$@"
