#!/bin/sh
# Creates the user that the service runs as, before files are installed for its group.
set -e
getent group headgate >/dev/null || groupadd --system headgate
getent passwd headgate >/dev/null ||
  useradd --system --gid headgate --home-dir /var/lib/headgate --no-create-home --shell /usr/sbin/nologin headgate
