#!/bin/sh
# Forgets the unit. When dpkg purges the package, the data and the user go too; rpm keeps both.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  rm -rf /var/lib/headgate
  if getent passwd headgate >/dev/null; then
    userdel headgate || echo "the user headgate is in use, and stays" >&2
  fi
fi
