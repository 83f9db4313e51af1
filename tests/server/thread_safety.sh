#!/usr/bin/env bash
# Clang's thread-safety analysis over the code of server/, worker/ and mycc_tune/ that takes locks: an unguarded access of a guarded member is an error.
#   thread_safety.sh SOURCE_DIR GENERATED_DIR        77: there is no clang++-14 here
set -uo pipefail
readonly source=$1 generated=$2
command -v clang++-14 >/dev/null || exit 77
cd "$source" || exit 1
# Files that include the lock, directly or through one of our headers.
headers=$(grep -lE 'base/mutex.h' server/*.h worker/*.h mycc_tune/*.h | paste -sd '|')
mapfile -t files < <(grep -lE "\"(base/mutex.h|$headers)\"" server/*.cc worker/*.cc mycc_tune/*.cc)
[[ ${#files[@]} -gt 3 ]] || { echo "only ${#files[@]} files take locks: the search for them is wrong"; exit 1; }
failed=0
for file in "${files[@]}"; do
  echo "$file"
  clang++-14 -std=c++20 -fsyntax-only -I. -isystem "$generated" -Wno-everything -Wthread-safety \
    -Werror=thread-safety "$file" || failed=1
done
# The analysis itself is checked by what it must refuse.
printf '%s\n' '#include "base/mutex.h"' 'struct S { mycc::Mutex m; int x ABSL_GUARDED_BY(m); int Read() { return x; } };' |
  clang++-14 -std=c++20 -fsyntax-only -I. -Wthread-safety -Werror=thread-safety -x c++ - 2>/dev/null &&
  { echo "an unguarded read was not noticed"; failed=1; }
exit $failed
