#!/usr/bin/env bash
# Installs the clients and limiter libraries of other languages that tests/clients runs, and says which of them it could not get.
set -uo pipefail
cd "$(dirname "$0")/.."

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)

packages=(python3-redis php-cli php-redis ruby ruby-redis libhiredis-dev libredis-perl)
missing=()
for p in "${packages[@]}"; do
  dpkg -s "$p" >/dev/null 2>&1 || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "make clients: installing ${missing[*]}"
  install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  }
  install 2>/dev/null || { "${as_root[@]}" apt-get update -qq && install; } || echo "make clients: could not install ${missing[*]}; their clients are left out" >&2
fi

major=$(node --version 2>/dev/null | sed -E 's/^v([0-9]+).*/\1/')
if [ -z "$major" ] || [ "$major" -lt 20 ]; then
  echo "make clients: the packages of npm need Node 20 or later, and here is ${major:-none}; they are left out" >&2
elif [ ! -d tests/clients/foreign/node_modules ]; then
  echo "make clients: installing the packages of tests/clients/foreign/package.json"
  (cd tests/clients/foreign && npm install --no-package-lock --no-audit --no-fund --silent) || echo "make clients: npm could not install them; they are left out" >&2
fi
