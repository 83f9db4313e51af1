#!/usr/bin/env bash
# Builds the relocatable archive: bin/mycc and bin/mycc-tune with the libraries that they need, to be unpacked and run on any x86-64 Linux
# with glibc 2.36 or newer. Prints its path and size; refuses one of 100 MB or more.
#
#   deploy/archive.sh [--preset release] [--tests] [--benchmarks] [--nvrtc FOLDER] [--output FOLDER]
#     --preset P       which build is packed; release if not given
#     --tests          with the tests that carry the label gpu: `ctest --test-dir mycc-*/tests` runs them where a device is
#     --benchmarks     with the comparisons of tests/perf, oneDNN and OpenBLAS: `bash mycc-*/tests/perf/cpu_vs_libraries.sh`
#     --nvrtc FOLDER   with CUDA's run-time compiler, for hosts without its toolkit; FOLDER has libnvrtc.so.13
#     --output FOLDER  where the archive goes; build/PRESET/archive if not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly limit=100000000
preset=release
components=programs
targets=(mycc mycc-tune)
nvrtc=
output=

usage() {
  sed -n '2,10s/^# \{0,1\}//p' "deploy/archive.sh" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  case $1 in
    --tests) components+=';tests' targets+=(gpu_tests); shift; continue ;;
    --benchmarks) components+=';benchmarks' targets+=(peers_cpu time_artifact cpu_peaks); shift; continue ;;
    --preset | --nvrtc | --output) [[ $# -ge 2 ]] || usage ;;
    *) usage ;;
  esac
  case $1 in
    --preset) preset=$2 ;;
    --nvrtc) nvrtc=$(realpath "$2") ;;
    --output) output=$2 ;;
  esac
  shift 2
done
output=${output:-build/$preset/archive}

cmake --preset "$preset" -DMYCC_NVRTC_FOLDER="$nvrtc" >/dev/null
cmake --build --preset "$preset" --target "${targets[@]}"
cpack --config "build/$preset/CPackConfig.cmake" -G TGZ -B "$output" -D CPACK_COMPONENTS_ALL="$components" >/dev/null

# The programs have LLVM in common: a dictionary that spans them halves the archive.
packed=$(ls -t "$output"/mycc-*.tar.gz | head -n 1)
archive=${packed%.gz}.xz
gunzip --stdout "$packed" | xz --lzma2=preset=2,dict=256MiB --stdout >"$archive"
rm -r "$packed" "$output/_CPack_Packages"
size=$(stat -c %s "$archive")
echo "$archive: $size bytes"
if [[ $size -ge $limit ]]; then
  echo "archive.sh: expected less than $limit bytes" >&2
  exit 1
fi
