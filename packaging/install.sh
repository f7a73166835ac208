#!/bin/sh
# Installs Hearth. From a release, which fills in the three variables below:
#   curl -fsSL URL/install.sh | sh                  or: … | sh -s -- --prefix DIR --no-gpu --no-service
# or a program that was compiled here:
#   sh packaging/install.sh dist/hearth-linux-x64 [PREFIX]
# and away again: sh install.sh --uninstall [--purge: models and settings too]
#
# HEARTH_RELEASE_URL names a mirror of the release. PREFIX is /usr/local for root, else ~/.local. As root with systemd
# and /usr/local it also makes the user `hearth` and starts the service.
set -eu

release_url=''
release_version=''
# lines of a target and the digest of its archive
release_digests=''

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

fetch() { # URL FILE
  if command -v curl >/dev/null; then curl -fsSL --retry 3 -o "$2" "$1"
  elif command -v wget >/dev/null; then wget -q -O "$2" "$1"
  else fail "needs curl or wget"; fi || fail "cannot download $1"
}

digest_of() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# ldd is of the system's own libc; Alpine with gcompat and Debian with musl have the loaders of both.
is_musl() {
  if command -v ldd >/dev/null; then ldd --version 2>&1 | grep -q musl; else [ -e "/lib/ld-musl-$(uname -m).so.1" ]; fi
}

target_here() {
  case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "$(uname -s) is not supported: Linux and macOS are; for Windows there is install.ps1" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) processor=x64 ;;
    aarch64 | arm64) processor=arm64 ;;
    *) fail "the processor $(uname -m) is not supported: x86_64 and arm64 are" ;;
  esac
  if [ "$system-$processor" = darwin-x64 ] && [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" = 1 ]; then processor=arm64; fi # Rosetta
  libc=
  if [ "$system" = linux ] && is_musl; then libc=-musl; fi
  echo "$system-$processor$libc"
}

# Fetches the release's program for this machine into $scratch, and sets $program.
download() {
  release_url=${HEARTH_RELEASE_URL:-$release_url}
  [ -n "$release_url" ] || fail "expected a program as the first argument; only the install.sh of a release downloads one"
  target=$(target_here)
  expected=$(printf '%s\n' "$release_digests" | sed -n "s/^$target //p")
  [ -n "$expected" ] || fail "this release has no program for $target"
  command -v xz >/dev/null || [ "$(uname -s)" = Darwin ] || fail "needs xz: the package is named xz or xz-utils"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  archive=hearth-$release_version-$target.tar.xz
  echo "downloading $archive"
  fetch "$release_url/$archive" "$scratch/$archive"
  found=$(digest_of "$scratch/$archive")
  [ "$found" = "$expected" ] || fail "$archive: expected sha256 $expected, got $found"
  tar -xJf "$scratch/$archive" -C "$scratch"
  program=$scratch/hearth
  here=$scratch
}

put_program() {
  # copied beside the old one first, so that a running program is replaced atomically; and tried there, since many
  # systems run nothing in /tmp
  new=$prefix/bin/.hearth.new
  cp "$program" "$new"
  chmod 755 "$new"
  "$new" --version >/dev/null || {
    rm -f "$new"
    fail "the program does not run on this machine, in $prefix/bin (on Alpine: apk add libstdc++)"
  }
  mv "$new" "$prefix/bin/hearth"
  echo "installed $("$prefix/bin/hearth" --version) as $prefix/bin/hearth"
}

start_service() {
  id hearth >/dev/null 2>&1 || useradd --system --home-dir /var/lib/hearth --shell /usr/sbin/nologin hearth
  # GPUs, and the models of an Ollama service, are readable through these groups on systems that have them
  for group in video render ollama; do
    if getent group "$group" >/dev/null; then usermod -a -G "$group" hearth; fi
  done
  mkdir -p /etc/hearth
  cp "$here/hearth.service" /etc/systemd/system/hearth.service
  systemctl daemon-reload
  systemctl enable --now hearth
  systemctl restart hearth
  echo "the service runs: systemctl status hearth; its settings: /etc/hearth/environment"
}

has_gpu() {
  [ "$(uname -s)" = Darwin ] || [ -e /dev/nvidia0 ] || [ -e /dev/dxg ] || ls /dev/dri/renderD* >/dev/null 2>&1
}

# The library that released programs fetch; a compiled one has it inside.
fetch_gpu() { # COMMAND…
  [ -n "$release_url" ] && [ "$gpu" = yes ] && has_gpu || return 0
  "$@" update --gpu || echo "without the GPU library models run on the CPU; later: hearth update --gpu"
}

uninstall() {
  unit=/etc/systemd/system/hearth.service
  if [ "$prefix" = /usr/local ] && [ -e $unit ]; then
    systemctl disable --now hearth || true
    rm -f $unit
    systemctl daemon-reload || true
  fi
  rm -f "$prefix/bin/hearth" "$prefix/bin/hearth.previous"
  rm -rf "$HOME/.cache/hearth"
  if [ "$purge" = yes ]; then
    rm -rf "$HOME/.hearth"
    if [ "$prefix" = /usr/local ] && [ "$(id -u)" -eq 0 ]; then
      rm -rf /var/lib/hearth /etc/hearth
      ! id hearth >/dev/null 2>&1 || userdel hearth
    fi
    echo "removed Hearth with its models and settings"
  else
    echo "removed Hearth; models and settings stay in ~/.hearth (of a service: /var/lib/hearth, /etc/hearth)"
  fi
}

main() {
  program= prefix= service=yes gpu=yes purge=no action=install
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix) prefix=${2:?--prefix: expected a folder}; shift ;;
      --no-service) service=no ;;
      --no-gpu) gpu=no ;;
      --uninstall) action=uninstall ;;
      --purge) purge=yes ;;
      -*) fail "unknown option '$1': expected --prefix DIR, --no-service, --no-gpu, --uninstall or --purge" ;;
      *) if [ -z "$program" ]; then program=$1; else prefix=$1; fi ;;
    esac
    shift
  done
  if [ -z "$prefix" ]; then
    if [ "$(id -u)" -eq 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
  fi
  if [ $action = uninstall ]; then
    uninstall
    return
  fi
  mkdir -p "$prefix/bin" && [ -w "$prefix/bin" ] || fail "cannot write to $prefix/bin: --prefix DIR names another folder"
  if [ -n "$program" ]; then
    [ -f "$program" ] || fail "'$program': no such file"
    here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
  else
    download
  fi
  put_program
  if [ $service = yes ] && [ "$prefix" = /usr/local ] && [ "$(id -u)" -eq 0 ] && [ -d /run/systemd/system ]; then
    start_service
    fetch_gpu runuser -u hearth -- env HOME=/var/lib/hearth "$prefix/bin/hearth"
    return
  fi
  fetch_gpu "$prefix/bin/hearth"
  echo "start it with: $prefix/bin/hearth serve"
  case :$PATH: in *":$prefix/bin:"*) ;; *) echo "$prefix/bin is not in PATH" ;; esac
}

# at the end, so that half a download does nothing
main "$@"
