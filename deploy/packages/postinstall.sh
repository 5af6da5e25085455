#!/bin/sh
# Makes the unit known, and restarts a service that was running before an upgrade. A new installation is not started:
# systemctl enable --now headgate
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart headgate.service
fi
