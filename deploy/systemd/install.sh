#!/usr/bin/env bash
# Installs the programs of an unpacked archive with the units for systemd. Settings and credentials that are in /etc/mycc-tune already stay.
# Nothing is started.
#
#   deploy/systemd/install.sh ARCHIVE_FOLDER [ROOT]     ROOT is put before all paths
set -euo pipefail

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

[[ $# -ge 1 && $# -le 2 ]] || usage
archive=$1
root=${2:-}
units=$(dirname "${BASH_SOURCE[0]}")
if [[ ! -x $archive/bin/mycc-tune ]]; then
  echo "install.sh: $archive has no bin/mycc-tune; expected the folder that deploy/archive.sh's archive unpacks to" >&2
  exit 1
fi

# The programs find their libraries from where they are, so they stay together; /usr/bin has links.
mkdir -p "$root/opt/mycc" "$root/usr/bin" "$root/usr/share/doc/mycc"
cp -r --no-preserve=ownership "$archive/." "$root/opt/mycc.new"
rm -rf "$root/opt/mycc"
mv -T "$root/opt/mycc.new" "$root/opt/mycc"
for program in mycc mycc-tune; do
  ln -sfn "/opt/mycc/bin/$program" "$root/usr/bin/$program"
done
ln -sfn /opt/mycc/docs "$root/usr/share/doc/mycc/docs"

install -D -m 644 -t "$root/etc/systemd/system" "$units"/mycc-tune*.{service,timer}
install -D -m 644 "$units/mycc-tune.sysusers" "$root/usr/lib/sysusers.d/mycc-tune.conf"
install -d -m 755 "$root/etc/mycc-tune"
for settings in server.env worker.env; do
  [[ -e $root/etc/mycc-tune/$settings ]] || install -m 644 "$units/$settings" "$root/etc/mycc-tune/$settings"
done
if [[ -z $root ]]; then
  systemd-sysusers mycc-tune.conf
  systemctl daemon-reload
fi
echo "install.sh: installed in ${root:-/}; next: credentials in /etc/mycc-tune (docs/operating.md)"
