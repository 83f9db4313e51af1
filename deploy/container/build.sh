#!/usr/bin/env bash
# Builds the image of mycc-tune with buildah.
#
#   deploy/container/build.sh [--archive FILE] [--base IMAGE | --base-tar FILE] [--tag NAME] [--output FILE]
#     --archive FILE   an archive of deploy/archive.sh; without it, the sources are compiled in the container, which takes long
#     --base IMAGE     what the image begins with; debian:12-slim if not given
#     --base-tar FILE  the same as a root file system; made from Debian's mirror by mmdebstrap where there is no such file, so that no
#                      registry of images is needed
#     --tag NAME       the image's name; mycc-tune:latest if not given
#     --output FILE    also writes the image there, as an OCI archive that other hosts load
#
# buildah's own variables hold: BUILDAH_ISOLATION=chroot builds where no container can be started, for instance in one.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly sources

archive=
base=debian:12-slim
base_tar=
tag=mycc-tune:latest
output=

usage() {
  sed -n '2,12s/^# \{0,1\}//p' "$sources/deploy/container/build.sh" >&2
  exit 2
}

while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || usage
  case $1 in
    --archive) archive=$(realpath "$2") ;;
    --base) base=$2 ;;
    --base-tar) base_tar=$(realpath "$2") ;;
    --tag) tag=$2 ;;
    --output) output=$(realpath "$2") ;;
    *) usage ;;
  esac
  shift 2
done
command -v buildah >/dev/null || {
  echo "build.sh: no buildah; expected it installed, as deploy/packages.sh does" >&2
  exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [[ -n $base_tar ]]; then
  if [[ ! -e $base_tar ]]; then
    mmdebstrap --quiet --variant=minbase --include=ca-certificates \
      --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
      bookworm "$base_tar"
  fi
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$base_tar" / >/dev/null
  buildah commit --quiet --rm "$container" mycc-tune-base >/dev/null
  base=localhost/mycc-tune-base
fi

context=$sources
stage=built
if [[ -n $archive ]]; then
  context=$work/context
  stage=given
  mkdir "$context"
  cp "$archive" "$context"
else
  # The build folder and the environment of the host stay out.
  context=$work/context
  git -C "$sources" ls-files -z | (cd "$sources" && tar --create --null --files-from=-) >"$work/sources.tar"
  mkdir "$context"
  tar --extract --file "$work/sources.tar" --directory "$context"
fi
buildah bud --quiet --build-arg BASE="$base" --build-arg ARCHIVE="$stage" --file "$sources/deploy/container/Containerfile" \
  --target image --tag "$tag" "$context"
if [[ -n $output ]]; then
  buildah push --quiet "$tag" "oci-archive:$output:$tag"
fi
echo "build.sh: $tag"
