#!/usr/bin/env bash
# Makes the web page of mycc-tune's server: fetches the packages of web/ui/package-lock.json by npm, checks the types, and bundles web/ui into
# one C++ source, assets.cc. All builds of a tree share the folder. Nothing is fetched or made when nothing has changed.
#
#   deploy/web.sh [FOLDER]     where the page is made; build/web if not given
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

readonly ui=$root/web/ui
readonly folder=${1:-$root/build/web}

fail() {
  echo "web.sh: $*" >&2
  exit 1
}

digest_of() { cat "$@" | sha256sum | cut -d ' ' -f 1; }

command -v node >/dev/null || fail "Node.js is not there, which bundles the web page; run deploy/packages.sh"
mkdir -p "$folder"
# Builds of two presets may come here at once.
exec 9>"$folder/lock"
flock 9

packages=$(digest_of "$ui/package.json" "$ui/package-lock.json")
if [[ $(cat "$folder/packages.sha256" 2>/dev/null) != "$packages" ]]; then
  command -v npm >/dev/null || fail "npm is not there, which fetches the packages of the web page; run deploy/packages.sh"
  cp "$ui/package.json" "$ui/package-lock.json" "$ui/.npmrc" "$folder"
  (cd "$folder" && npm ci --ignore-scripts --loglevel=error >npm.txt 2>&1) ||
    fail "npm cannot fetch the packages of web/ui/package-lock.json: $(grep -m 3 -i -E '^npm (err|error)' "$folder/npm.txt" | tr '\n' ' ')"
  echo "$packages" >"$folder/packages.sha256"
fi

readarray -t sources < <(find "$ui" -type f | LC_ALL=C sort)
page=$(digest_of "${sources[@]}")
if [[ $(cat "$folder/page.sha256" 2>/dev/null) != "$page" || ! -f $folder/assets.cc ]]; then
  "$folder/node_modules/.bin/tsc" --project "$ui" || fail "the types of web/ui do not fit"
  node "$ui/bundle.mjs" "$folder" || fail "web/ui cannot be bundled"
  echo "$page" >"$folder/page.sha256"
fi
