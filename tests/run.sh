#!/usr/bin/env bash
# Sets up, builds and tests: one command on a fresh Debian 12.
#
#   tests/run.sh [PASS]...     PASS is one of the functions pass_* below; `dev` when none is named
#     dev      everything but benchmarks
#     asan     the fast tests under AddressSanitizer and UndefinedBehaviorSanitizer
#     tsan     the fast tests of the concurrent folders under ThreadSanitizer
#     fuzz     the fuzzers, for a short while each
#     perf     the benchmarks, one at a time, in a release build
#     lint     formatting, and Clang's thread-safety analysis of the concurrent folders
#
# The last line is `N passed, N failed` over all passes; the exit status is 0 when nothing failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Folders whose code runs in several threads.
readonly concurrent='base|db|proto|server|worker'

passed=0
failed=0

# Installs the Debian packages, and NumPy into .venv, which is first in PATH from here on.
set_up() {
  bash deploy/packages.sh
  if [[ ! -x .venv/bin/python3 ]]; then
    python3 -m venv .venv
  fi
  export VIRTUAL_ENV="$PWD/.venv" PATH="$PWD/.venv/bin:$PATH"
  if ! python3 -c 'import numpy' 2>/dev/null; then
    python3 -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
  fi
}

# record_build_failure PASS
record_build_failure() {
  echo "tests/run.sh: the build of $1 failed" >&2
  failed=$((failed + 1))
}

# run_ctest PRESET [OPTION]...: runs tests and adds to the counts. A test whose program is missing counts as failed, a
# skipped one not at all.
run_ctest() {
  local preset=$1 report=$PWD/build/$1/ctest.xml status=0 bad
  shift
  rm -f "$report"
  ctest --preset "$preset" --output-junit "$report" "$@" || status=$?
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

# build_tests PRESET FOLDERS: configures, and builds the programs of the tests under tests/FOLDERS (a regular
# expression) that the preset would run, not the whole tree. Leaves their names, which are the tests', in `programs`.
programs=()
build_tests() {
  local preset=$1 folders=$2
  cmake --preset "$preset" || return
  mapfile -t programs < <(comm -12 <(ctest --preset "$preset" -N | sed -n 's/^ *Test *#[0-9]*: //p' | sort) \
    <(ninja -C "build/$preset" -t targets all |
      sed -En "s,^tests/($folders)/[^/]*: CXX_EXECUTABLE_LINKER__(.*)_Debug$,\\2,p" | sort))
  if [[ ${#programs[@]} -eq 0 ]]; then
    echo "tests/run.sh: preset $preset has no test in tests/($folders)" >&2
    return 1
  fi
  cmake --build --preset "$preset" --target "${programs[@]}"
}

pass_dev() {
  if ! { cmake --preset dev && cmake --build --preset dev; }; then
    record_build_failure dev
    return
  fi
  run_ctest dev
}

pass_asan() { build_and_run asan '.*'; }
pass_tsan() { build_and_run tsan "$concurrent"; }
pass_fuzz() { build_and_run fuzz '.*'; }

# build_and_run PRESET FOLDERS
build_and_run() {
  if ! build_tests "$1" "$2"; then
    record_build_failure "$1"
    return
  fi
  run_ctest "$1" -R "^($(IFS='|' && echo "${programs[*]}"))\$"
}

pass_perf() {
  if ! { cmake --preset release && cmake --build --preset release; }; then
    record_build_failure perf
    return
  fi
  run_ctest perf --verbose
}

pass_lint() {
  local file bad=0
  if ! git ls-files '*.h' '*.cc' | xargs clang-format-14 --dry-run -Werror; then
    bad=$((bad + 1))
  fi
  # The build generates the headers of proto/.
  if ! { cmake --preset dev && cmake --build --preset dev; }; then
    record_build_failure lint
    return
  fi
  for file in $(git ls-files 'server/*.cc' 'worker/*.cc'); do
    if ! clang++-14 -std=c++20 -I. -Ibuild/dev/generated -fsyntax-only -Wthread-safety -Werror=thread-safety "$file"; then
      bad=$((bad + 1))
    fi
  done
  if [[ $bad -eq 0 ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + bad))
  fi
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
  set_up
  for pass in "${passes[@]}"; do
    echo "== $pass"
    "pass_$pass"
  done
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}

main "$@"
