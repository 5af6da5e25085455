#!/bin/sh
# Stops the service when the package is removed, and not when it is upgraded: dpkg says "remove", rpm 0.
set -e
case "$1" in
remove | 0)
  if [ -d /run/systemd/system ]; then
    systemctl disable --now headgate.socket headgate.service
  fi
  ;;
esac
