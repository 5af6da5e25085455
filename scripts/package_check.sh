#!/usr/bin/env bash
# Installs a .deb, upgrades, removes and purges it, in a copy of this system's files that is thrown away afterwards (an overlay in a mount
# namespace), and looks at what is there after each step. package_check.sh FILE.deb; it takes root.
set -euo pipefail
package=$(realpath "$1")

if [ "${2:-}" != inside ]; then
  exec unshare --mount --propagation private "$0" "$package" inside
fi

mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
mount --bind /dev /mnt/root/dev
mount -t proc proc /mnt/root/proc
cp "$package" /mnt/root/package.deb
in_root() { chroot /mnt/root "$@"; }
step() { echo "-- $1"; }
fail() { echo "package_check: $1" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive

step install
in_root dpkg -i /package.deb >/dev/null
in_root getent passwd headgate | grep -q ':/var/lib/headgate:/usr/sbin/nologin$' || fail "the user headgate"
[ "$(in_root stat -c '%a %U %G' /etc/headgate/headgate.conf)" = '640 headgate headgate' ] || fail "the rights of the configuration"
in_root headgate version | grep -q '^headgate ' || fail "headgate version"
in_root setpriv --reuid headgate --regid headgate --clear-groups headgate /etc/headgate/headgate.conf --dir /tmp --check-config >/dev/null || fail "the configuration"
grep -q '^User=headgate$' /mnt/root/usr/lib/systemd/system/headgate.service || fail "the unit's user"
! command -v systemd-analyze >/dev/null || systemd-analyze --root=/mnt/root verify headgate.service headgate.socket || fail "the units"

step "run as the service's user"
in_root install -d -o headgate -g headgate -m 700 /var/lib/headgate
chroot /mnt/root setpriv --reuid headgate --regid headgate --clear-groups headgate /etc/headgate/headgate.conf --dir /var/lib/headgate --port 0 --metrics-port 0 \
  --unixsocket /var/lib/headgate/socket >/dev/null 2>&1 &
server=$!
for _ in $(seq 200); do
  in_root headgate ping --unixsocket /var/lib/headgate/socket >/dev/null 2>&1 && answered=yes && break
  sleep 0.05
done
[ "$(in_root headgate cli -s /var/lib/headgate/socket CONFIG REWRITE)" = OK ] || fail "CONFIG REWRITE"
kill "$server"
wait "$server" || true
[ "${answered:-}" = yes ] || fail "the server does not answer"

step upgrade
echo 'maxmemory 64mb' >>/mnt/root/etc/headgate/headgate.conf
in_root dpkg -i /package.deb >/dev/null
grep -q '^maxmemory 64mb$' /mnt/root/etc/headgate/headgate.conf || fail "an upgrade changed the configuration"

step remove
in_root dpkg -r headgate >/dev/null
[ ! -e /mnt/root/usr/bin/headgate ] || fail "the program is still there"
[ -e /mnt/root/etc/headgate/headgate.conf ] || fail "removing took the configuration"
[ -d /mnt/root/var/lib/headgate ] || fail "removing took the data"

step purge
in_root dpkg -P headgate >/dev/null
for left in /etc/headgate /var/lib/headgate /usr/share/doc/headgate; do
  [ ! -e "/mnt/root$left" ] || fail "$left is still there"
done
! in_root getent passwd headgate >/dev/null || fail "the user is still there"

if command -v lintian >/dev/null; then
  step lintian
  lintian --allow-root --fail-on error,warning "$package" || fail "lintian"
fi
echo "ok: $(basename "$package") installs, runs, upgrades, is removed and purged"
