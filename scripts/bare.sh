#!/usr/bin/env bash
# Runs every shell block of README.md and the guides, in order, in a fresh clone of the last commit in a bare Debian: a chroot that has what
# debootstrap's smallest variant has, and Go. Whatever else is needed is installed by the blocks. WITHOUT names a line that is left out, such
# as WITHOUT='make test'; SUITE is Debian's, and MIRROR where debootstrap takes it from, if not from where it does by itself.
#
# It takes root, for the chroot and its mounts. Go is this machine's, and so is the way to modules and packages: certificates, names, proxies.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${SUITE:-bookworm}
give_up() { echo "make bare: $1" >&2; exit 1; }

if [ "${1:-}" != inside ]; then
  [ "$(uname -s)" = Linux ] || give_up "a chroot of Debian takes Linux"
  [ "$(id -u)" -eq 0 ] || give_up "a chroot takes root"
  unshare --mount --pid --fork true || give_up "this machine allows no mounts of one's own, which the chroot takes"
  ./scripts/deps.sh debootstrap:debootstrap /usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT # the mounts have gone with their namespace
  unshare --mount --pid --fork --kill-child "$0" inside "$work"
  exit
fi
work=$2
root=$work/root

echo "== a bare Debian ($suite)"
debootstrap --variant=minbase "$suite" "$root" ${MIRROR:+"$MIRROR"} >"$work/debootstrap.log" 2>&1 || {
  tail -n 20 "$work/debootstrap.log" >&2
  give_up "debootstrap could not make a bare Debian"
}
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mkdir -p "$root/usr/local/share/ca-certificates"
[ ! -d /usr/local/share/ca-certificates ] || cp -R /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"

# The machines that the documents name are this one, each with an address of its own.
cp /etc/hosts "$root/etc/hosts"
printf '%s\n' '127.0.0.2 headgate' '127.0.0.3 redis-1' '127.0.0.4 redis-2' '127.0.0.5 redis.example' >>"$root/etc/hosts"

# Go, as its own instructions install it.
mkdir "$root/usr/local/go"
mount --bind -o ro "$(go env GOROOT)" "$root/usr/local/go"

clone=/usr/src/headgate # within the chroot
git clone -q --no-checkout . "$root$clone"
git -C "$root$clone" checkout -q "$(git rev-parse HEAD)"
CGO_ENABLED=0 go test -C tests -c -o "$root/blocks" ./docs

variables=(HOME=/home LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
for name in GOPROXY GOSUMDB GONOSUMDB GONOPROXY GOPRIVATE GOTOOLCHAIN; do
  variables+=("$name=$(go env "$name")")
done
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || variables+=("$name=${!name}")
done
echo "== the blocks of README.md and the guides"
chroot "$root" env -i "${variables[@]}" /blocks -test.v -test.timeout 60m -test.run '^TestBlocksRun$' -blocks.clone "$clone" -blocks.without "${WITHOUT:-}"
