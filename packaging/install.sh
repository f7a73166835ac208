#!/bin/sh
# Installs the compiled program: sh packaging/install.sh dist/hearth-linux-x64 [PREFIX]
# As root on a system with systemd it also makes the user `hearth` and starts the service; PREFIX is /usr/local.
set -eu

program=${1:?usage: install.sh PROGRAM [PREFIX]}
prefix=${2:-/usr/local}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

[ -f "$program" ] || { echo "install.sh: '$program': no such file" >&2; exit 1; }
"$program" --version >/dev/null || { echo "install.sh: '$program' does not run on this machine" >&2; exit 1; }

mkdir -p "$prefix/bin"
# copied beside the old one first, so that a running program is replaced atomically
cp "$program" "$prefix/bin/.hearth.new"
chmod 755 "$prefix/bin/.hearth.new"
mv "$prefix/bin/.hearth.new" "$prefix/bin/hearth"
echo "installed $("$prefix/bin/hearth" --version) as $prefix/bin/hearth"

if [ "$prefix" != /usr/local ] || [ "$(id -u)" -ne 0 ] || ! [ -d /run/systemd/system ]; then
  echo "start it with: $prefix/bin/hearth serve"
  exit 0
fi
id hearth >/dev/null 2>&1 || useradd --system --home-dir /var/lib/hearth --shell /usr/sbin/nologin hearth
# GPUs, and the models of an Ollama service, are readable through these groups on systems that have
# them
for group in video render ollama; do
  if getent group "$group" >/dev/null; then usermod -a -G "$group" hearth; fi
done
mkdir -p /etc/hearth
cp "$here/hearth.service" /etc/systemd/system/hearth.service
systemctl daemon-reload
systemctl enable --now hearth
systemctl restart hearth
echo "the service runs: systemctl status hearth; its settings: /etc/hearth/environment"
