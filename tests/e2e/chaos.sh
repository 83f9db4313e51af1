#!/usr/bin/env bash
# Kills processes of a farm at random moments, more often than CI does: chaos.sh [--kills N] [--seed N]. Expects the
# build in build/dev, or in MYCC_BINARY_DIR.
set -euo pipefail

kills=100
seed=""
while [[ $# -gt 0 ]]; do
  case "$1" in
    --kills) kills="$2" ;;
    --seed) seed="$2" ;;
    *)
      echo "chaos.sh: \`$1\`; expected --kills N or --seed N" >&2
      exit 2
      ;;
  esac
  shift 2
done

cd "$(dirname "$0")/../.."
export MYCC_SOURCE_DIR="$PWD" MYCC_BINARY_DIR="${MYCC_BINARY_DIR:-$PWD/build/dev}" MYCC_CHAOS_KILLS="$kills"
if [[ -n "$seed" ]]; then
  export MYCC_CHAOS_SEED="$seed"
fi
exec "$MYCC_BINARY_DIR/tests/e2e/chaos_test"
