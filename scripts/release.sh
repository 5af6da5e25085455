#!/usr/bin/env bash
# Builds headgate for each system into dist/, as archives with a checksum file. The same commit gives the same bytes, wherever it is
# built with the same Go: no paths, no build times, files in the archives as old as the commit.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -mod=readonly"
out=${1:-dist}
version=$(sed -nE 's/^const Version = "(.*)"/\1/p' server/command/core.go)
[ -n "$version" ] || { echo 'server/command/core.go declares no Version' >&2; exit 1; }
revision=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision="$revision-changed"
at=$(git log -1 --format=%ct 2>/dev/null || echo 0)

rm -rf "$out"
mkdir -p "$out"
for target in ${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
  name=headgate-$version-${target/\//-}
  work=$(mktemp -d)
  mkdir "$work/$name"
  GOOS=${target%/*} GOARCH=${target#*/} go build -ldflags "-s -w -buildid= -X main.revision=$revision" -o "$work/$name/headgate" ./cmd/headgate
  cp LICENSE README.md CHANGELOG.md "$work/$name/"
  [ "${target%/*}" = darwin ] || cp -R deploy/systemd "$work/$name/systemd"
  chmod -R u=rwX,go=rX "$work/$name"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$at" --format=ustar -C "$work" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  rm -rf "$work"
done
(cd "$out" && sha256sum -- *.tar.gz >SHA256SUMS && cat SHA256SUMS)
