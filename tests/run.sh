#!/usr/bin/env bash
# Sets up, builds and tests: one command on a fresh Debian 12.
#
#   tests/run.sh [PASS]...     PASS is one of the functions pass_* below; `dev` when none is named
#     dev      what every change is tested by: everything but points of schedule spaces, other processors and benchmarks
#     points   compiled code at many points of schedule spaces: after a change of rules, passes or code generators
#     asan     the fast and the slow tests under AddressSanitizer and UndefinedBehaviorSanitizer
#     tsan     the tests that start threads, under ThreadSanitizer
#     fuzz     the fuzzers, for a few seconds each, in the build of asan
#     rest     what asan leaves out: compiled code at many points of schedule spaces, the programs from end to end, GPUs, and what reads
#              the sources alone
#     lint     formatting, layering, and clang-tidy on what differs from main
#     perf     the benchmarks, one at a time, in a release build
#
# A tree without a build is built in the way that is fastest then (MYCC_FROM_EMPTY, cmake/mycc.cmake), and stays so.
# At the end it prints the seconds that each part took. The last line is `N passed, N failed` over all passes; the exit status is 0 when
# nothing failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

passed=0
failed=0
times=""  # a line for each part: seconds, name

# timed NAME COMMAND...: runs the command, and notes how long it took.
timed() {
  local name=$1 begin=$SECONDS status=0
  shift
  "$@" || status=$?
  times+="$(printf '%6d s  %s' $((SECONDS - begin)) "$name")"$'\n'
  return "$status"
}

# Installs the Debian packages and those of tests/requirements.txt into .venv, which is first in PATH from here on, and fetches the trained models.
set_up() {
  bash deploy/packages.sh && bash deploy/python.sh || return
  # The tests of trained models and of the chart say that they are skipped without these.
  bash deploy/models.sh || true
  bash deploy/helm.sh || true
  export VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH"
}

# build PRESET: configures, and builds what the preset names. A build that fails counts as one failed test.
build() {
  if ! timed "build of $1" configure_and_build "$1"; then
    echo "tests/run.sh: the build of $1 failed" >&2
    failed=$((failed + 1))
    return 1
  fi
}

configure_and_build() {
  local from_empty=()
  if [[ ! -e build/$(folder_of "$1")/CMakeCache.txt ]]; then
    from_empty=(-DMYCC_FROM_EMPTY=ON)
  fi
  cmake --preset "$(folder_of "$1")" "${from_empty[@]}" && cmake --build --preset "$1"
}

# The configure preset, and folder of build/, of a build preset.
folder_of() {
  case $1 in
    fuzz) echo asan ;;
    points | rest) echo dev ;;
    *) echo "$1" ;;
  esac
}

# run_ctest PRESET BUILD [OPTION]...: runs the tests of a preset, in build/BUILD, and adds to the counts. A test whose
# program is missing counts as failed, a skipped one not at all.
run_ctest() {
  local preset=$1 report=$PWD/build/$2/ctest.xml status=0 bad
  shift 2
  rm -f "$report"
  timed "tests of $preset" ctest --preset "$preset" --output-junit "$report" "$@" || status=$?
  passed=$((passed + $(count_lines '<testcase .* status="run"' "$report")))
  bad=$(count_lines '<testcase .* status="fail"\|<skipped message="Unable' "$report")
  if [[ $status -ne 0 && $bad -eq 0 ]]; then
    bad=1  # no test was found, or CTest itself failed
  fi
  failed=$((failed + bad))
}

# count_lines PATTERN FILE: 0 when there is no such file.
count_lines() {
  local count
  count=$(grep -c "$1" "$2" 2>/dev/null) || true
  echo "${count:-0}"
}

# check COMMAND...: a test that is no CTest test.
check() {
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "tests/run.sh: failed: $*" >&2
    failed=$((failed + 1))
  fi
}

pass_dev() { build dev && run_ctest dev dev || true; }
pass_asan() { build asan && run_ctest asan asan || true; }
pass_tsan() { build tsan && run_ctest tsan tsan || true; }
pass_points() { build points && run_ctest points dev || true; }
pass_rest() { build rest && run_ctest rest dev || true; }
pass_fuzz() { build fuzz && run_ctest fuzz asan || true; }
pass_perf() { build release && run_ctest perf release --verbose || true; }

pass_lint() {
  check check_format
  # The build generates the headers of proto/ and the command lines that clang-tidy needs.
  build dev || return 0
  run_ctest lint dev
  check check_tidy
}

check_format() { git ls-files '*.h' '*.cc' '*.c' | xargs clang-format-14 --dry-run -Werror; }

# The built sources that differ from the main branch: clang-tidy takes longer than a whole build on all of them. clang-tidy-14 cannot
# read Clang 19's precompiled headers, and does not know some of Clang 19's warnings.
check_tidy() {
  local base
  mkdir -p build/dev/tidy
  sed -E 's/ -Xclang -include-pch -Xclang [^ ]+ -Xclang -include -Xclang [^ ]+//' build/dev/compile_commands.json \
    >build/dev/tidy/compile_commands.json
  base=$(git merge-base main HEAD 2>/dev/null) || base=HEAD
  git diff --name-only --diff-filter=d "$base" -- '*.cc' | while read -r file; do
    if grep -q "\"$PWD/$file\"" build/dev/compile_commands.json; then echo "$file"; fi
  done | xargs --no-run-if-empty -P 2 -n 1 clang-tidy-14 -p build/dev/tidy --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option
}

main() {
  local passes=("$@") pass
  if [[ ${#passes[@]} -eq 0 ]]; then
    passes=(dev)
  fi
  for pass in "${passes[@]}"; do
    if ! declare -F "pass_$pass" >/dev/null; then
      echo "tests/run.sh: no pass is called \`$pass\`; expected some of:" \
        "$(declare -F | sed -n 's/^declare -f pass_//p' | xargs)" >&2
      exit 2
    fi
  done
  timed "packages" set_up
  for pass in "${passes[@]}"; do
    echo "== $pass"
    "pass_$pass"
  done
  printf '%s%6d s  in all\n' "$times" "$SECONDS"
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}

main "$@"
