#!/usr/bin/env bash
# Installs what the tests need: Debian's redis-server and redis-tools, to compare with, and openssl, which encrypts keys; or what the
# arguments name, each as program:package, or as file:package with the file's whole path. The packages start no daemon: while they
# are installed a policy-rc.d forbids that, and whatever policy-rc.d was there is put back afterwards.
set -euo pipefail

missing=()
[ $# -gt 0 ] || set -- redis-server:redis-server redis-cli:redis-tools openssl:openssl
for wanted in "$@"; do
  command -v "${wanted%%:*}" >/dev/null || [ -e "${wanted%%:*}" ] || missing+=("${wanted#*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

give_up() {
  echo "make deps: $1" >&2
  echo "make deps: the tests need ${missing[*]}: install them by hand (Debian: apt-get install ${missing[*]})" >&2
  exit 1
}

command -v apt-get >/dev/null || give_up "there is no apt-get here"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || give_up "installing takes root, and there is no sudo"
  sudo -n true 2>/dev/null || give_up "installing takes root, and sudo asks for a password"
  as_root=(sudo -n)
fi

policy=/usr/sbin/policy-rc.d
kept=""
restore() {
  if [ -n "$kept" ]; then
    "${as_root[@]}" mv -f "$kept" "$policy"
  else
    "${as_root[@]}" rm -f "$policy"
  fi
}
if [ -e "$policy" ] || [ -L "$policy" ]; then
  kept="$policy.headgate-$$"
  "${as_root[@]}" mv "$policy" "$kept"
fi
trap restore EXIT
printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
"${as_root[@]}" chmod 755 "$policy"

echo "make deps: installing ${missing[*]}"
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
# Package lists may be missing or old: fetch them only when they are.
install 2>/dev/null || { "${as_root[@]}" apt-get update -qq && install; } || give_up "apt-get could not install them"
