#!/usr/bin/env bash
# Builds a release into dist/: an archive and an SBOM for each system, .deb and .rpm packages and a container image for Linux, the Helm chart, a
# Homebrew formula, and a file with the checksums of all. The same commit gives the same bytes, wherever it is built with the same Go: no paths, no build times, files as old as
# the commit. It needs git and Go; nfpm comes from Go's module proxy. TARGETS chooses systems, such as TARGETS=linux/amd64;
# DOWNLOADS and HOMEPAGE are the addresses that the formula names.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC GOTOOLCHAIN=local
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.1
out=${1:-dist}
version=$(sed -nE 's/^const Version = "(.*)"/\1/p' server/command/core.go)
[ -n "$version" ] || { echo 'server/command/core.go declares no Version' >&2; exit 1; }
revision=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || revision="$revision-changed"
at=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH=$at

# literally PATH-OR-URL is the text as it stands for itself in the replacement of sed's s||.
literally() { printf '%s' "$1" | sed 's/[\\&|]/\\&/g'; }

rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/artifacts" ./scripts/artifacts

images=()
for target in ${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 freebsd/amd64}; do
  system=${target%/*} architecture=${target#*/}
  name=headgate-$version-$system-$architecture
  program=headgate
  [ "$system" != windows ] || program=headgate.exe
  mkdir "$work/$name"
  CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=false -mod=readonly" GOOS=$system GOARCH=$architecture \
    go build -ldflags "-s -w -buildid= -X main.revision=$revision" -o "$work/$name/$program" ./cmd/headgate
  "$work/artifacts" sbom "$work/$name/$program" "$name" "$version" "$at" >"$out/$name.spdx.json"
  cp LICENSE README.md CHANGELOG.md headgate.conf "$work/$name/"
  [ "$system" != linux ] || cp -R deploy/systemd "$work/$name/systemd"
  chmod -R u=rwX,go=rX "$work/$name"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$at" --format=ustar -C "$work" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

  [ "$system" = linux ] || continue
  images+=("$target=$work/$name/headgate")
  parts=$work/package-$architecture
  mkdir "$parts"
  cp "$work/$name/headgate" "$parts/"
  cp "$out/$name.spdx.json" "$parts/headgate.spdx.json"
  sed 's|^SocketGroup=.*|SocketGroup=headgate|' deploy/systemd/headgate.socket >"$parts/headgate.socket"
  gzip -9nc CHANGELOG.md >"$parts/changelog.gz"
  printf 'headgate (%s-1) unstable; urgency=medium\n\n  * Upstream release %s; see changelog.gz.\n\n -- headgate maintainers <maintainers@headgate.invalid>  %s\n' \
    "$version" "$version" "$(date -u -R -d "@$at")" | gzip -9nc >"$parts/changelog.Debian.gz"
  # A package has a user of its own, to which it gives the configuration file, and installs into /usr.
  sed -e 's|/usr/local/bin/|/usr/bin/|' -e 's|^DynamicUser=yes$|User=headgate\nGroup=headgate|' \
    -e 's|^# headgate under systemd.*|# headgate under systemd 240 or later|' -e '/^# \/etc\/headgate\/headgate.conf, this file/d' \
    deploy/systemd/headgate.service >"$parts/headgate.service"
  sed -e "s|@ARCH@|$architecture|; s|@VERSION@|$version|; s|@MTIME@|$(date -u -d "@$at" +%Y-%m-%dT%H:%M:%SZ)|; s|@WORK@|$(literally "$parts")|" \
    deploy/packages/nfpm.yaml >"$parts/nfpm.yaml"
  for packager in deb rpm; do
    go run "$nfpm" package --config "$parts/nfpm.yaml" --packager "$packager" --target "$out" >/dev/null
  done
done
[ ${#images[@]} -eq 0 ] || "$work/artifacts" image "$out/headgate-$version-image.tar" "$version" "$revision" "$at" "${images[@]}"

# The chart, as helm package would pack it, but with the same bytes each time.
for field in version appVersion; do
  grep -qx "$field: $version" deploy/helm/headgate/Chart.yaml || { echo "deploy/helm/headgate/Chart.yaml: $field is not $version" >&2; exit 1; }
done
cp -R deploy/helm/headgate "$work/headgate"
chmod -R u=rwX,go=rX "$work/headgate"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$at" --format=ustar -C "$work" -cf - headgate | gzip -9n >"$out/headgate-$version.tgz"

# The formula is of the systems that Homebrew has, if all of them were built.
cp deploy/homebrew/headgate.rb "$work/formula"
sed -i "1d; s|@DOWNLOADS@|$(literally "${DOWNLOADS:-https://headgate.invalid/download/v$version}")|; s|@HOMEPAGE@|$(literally "${HOMEPAGE:-https://headgate.invalid}")|; s|@VERSION@|$version|" "$work/formula"
for system in darwin-amd64 darwin-arm64 linux-amd64 linux-arm64; do
  archive=$out/headgate-$version-$system.tar.gz
  [ ! -e "$archive" ] || sed -i "s|@SHA256-$system@|$(sha256sum "$archive" | cut -d' ' -f1)|" "$work/formula"
done
grep -q '@SHA256' "$work/formula" || cp "$work/formula" "$out/headgate.rb"

(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | sort | xargs sha256sum -- >SHA256SUMS && cat SHA256SUMS)
