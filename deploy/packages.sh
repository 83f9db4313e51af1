#!/usr/bin/env bash
# Installs the Debian 12 packages that the project is built, tested and benchmarked with: the one list of them. Installed packages are left
# alone, and nothing is fetched when nothing is missing.
set -euo pipefail

packages=(
  # The tools.
  ca-certificates ccache cmake g++ git mold ninja-build python3 python3-venv xz-utils
  # The service: RPC, the tuning log, the cost model.
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libsqlite3-dev libxgboost-dev
  # The compiler: LLVM and its linker, linked statically (LLVM's pass library wants Polly when it is linked); DLPack for
  # the artifacts' interface.
  llvm-19-dev liblld-19-dev libpolly-19-dev libdlpack-dev
  # Libraries of both programs.
  libabsl-dev libcli11-dev libseccomp-dev libspdlog-dev libssl-dev nlohmann-json3-dev
  # The server's web page: HTTP, compression; what bundles it; a browser and a scraper that test it.
  libmicrohttpd-dev zlib1g-dev chromium prometheus
  # Tests, and Clang for fuzzing, thread-safety analysis and formatting.
  libbenchmark-dev libgmock-dev libgtest-dev clang-19 clang-format-14 clang-tidy-14 libclang-rt-19-dev
  # The libraries that benchmarks compare with.
  libdnnl-dev libopenblas-openmp-dev
  # For the tests of deploy/: Slurm, and a container that is built from Debian's packages.
  buildah mmdebstrap munge openssl slurm-client slurmctld slurmd systemd
)

# npm fetches the models of deploy/models.sh and what the web page is made of. Any npm on any Node.js from 18 on will do: Debian's package npm
# brings Debian's Node.js with it, and a Node.js from elsewhere has an npm of its own.
command -v npm >/dev/null || packages+=(npm)

fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

if ! command -v apt-get >/dev/null; then
  fail "this system has no apt-get; expected Debian 12 (on another system, install the equivalents of: ${packages[*]})"
fi

missing=()
for package in "${packages[@]}"; do
  # shellcheck disable=SC2016  # ${Status} is dpkg-query's own field.
  if [[ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" != "install ok installed" ]]; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "packages.sh: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null ||
    fail "not root, and there is no sudo; as root, run: apt-get install --no-install-recommends ${missing[*]}"
  as_root=(sudo)
fi

echo "packages.sh: installing ${#missing[@]} of ${#packages[@]} packages: ${missing[*]}"

# Tests start the daemons that they need, with configurations of their own: an installation starts none of Slurm's.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" install -m 755 /dev/stdin "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
apt update || fail "apt-get update failed; expected a reachable Debian 12 mirror in /etc/apt"
apt install -y --no-install-recommends "${missing[@]}" >/dev/null ||
  fail "apt-get install failed; expected Debian 12 (bookworm) with its updates, where all of these exist: ${missing[*]}"
