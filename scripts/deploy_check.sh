#!/usr/bin/env bash
# Checks what is in deploy/ and what a release is made of, in stages, of which the arguments choose some:
#
#   charts    renders the chart with every combination of its values, with helm, and decodes all manifests into Kubernetes' own types
#   build     sees that a build downloads what is in the program, and nothing else
#   release   builds a release twice, in two places and with two build caches, and sees that it comes out the same
#   package   installs, upgrades, removes and purges the .deb, as root, and runs lintian
#
# helm and Kubernetes' types come from the Go module proxy.
set -euo pipefail
cd "$(dirname "$0")/.."
helm=bin/helm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chart=deploy/helm/headgate
commit=$(git rev-parse HEAD) # of all releases that are built, whatever is committed meanwhile

get_helm() { GOBIN=$PWD/bin go install helm.sh/helm/v3/cmd/helm@v3.19.0; }

# release NAME TARGETS builds a release of the last commit in a clone of that name, and says its checksums.
release() {
  git clone -q --no-checkout . "$work/$1"
  git -C "$work/$1" checkout -q "$commit"
  (cd "$work/$1" && TARGETS=$2 GOCACHE="${3:-$(go env GOCACHE)}" ./scripts/release.sh)
}

check_charts() {
  echo "== helm lint and template"
  get_helm
  $helm lint --strict $chart
  PATH=$PWD/bin:$PATH go test -C tests -count=1 -timeout 30m ./deploy -run Chart -chart.all
  $helm template headgate $chart --kube-version 1.31.0 >"$work/plain.yaml"
  $helm template headgate $chart --kube-version 1.31.0 --set persistence.enabled=true,persistence.storageClassName=fast,metrics.serviceMonitor.enabled=true \
    --set tls.enabled=true,tls.existingSecret=tls,tls.plaintext=true,tls.authClients=optional,networkPolicy.enabled=true,metrics.existingSecret=scrapers \
    --set 'extraEnv[0].name=HEADGATE_MAXMEMORY,extraEnv[0].value=1gb,extraVolumes[0].name=more,extraVolumes[0].emptyDir.medium=Memory,extraVolumeMounts[0].name=more,extraVolumeMounts[0].mountPath=/more' \
    --set metrics.prometheusRule.enabled=true,nodeSelector.disk=ssd,priorityClassName=high,'imagePullSecrets[0].name=pull' >"$work/full.yaml"
  grep -q 'kind: PrometheusRule' "$work/full.yaml"
  $helm template headgate $chart --kube-version 1.31.0 --set upstream.url=redis://gateway@redis:6379,upstream.failure=local,upstream.replicas=3,upstream.existingSecret=redis >"$work/gateway.yaml"
  grep -q 'replicas: 3' "$work/gateway.yaml"

  echo "== every manifest decodes into Kubernetes' own types, strictly"
  go run -C tests/deploy/testdata/kubecheck . "$PWD/deploy/kubernetes/sidecar.yaml" "$PWD/deploy/kubernetes/gateway.yaml" "$PWD/deploy/kubernetes/standby.yaml" "$work/plain.yaml" "$work/full.yaml" "$work/gateway.yaml"
}

check_build() {
  echo "== a build downloads what is in the program, and nothing else"
  GOFLAGS="-modcacherw -buildvcs=false" GOMODCACHE="$work/modules" go build -o "$work/headgate" ./cmd/headgate
  diff <(go version -m "$work/headgate" | awk '$1 == "dep" { print $2 "@" $3 }' | sort) \
    <(cd "$work/modules/cache/download" && find . -name '*.zip' | sed -E 's|^\./||; s|/@v/(.*)\.zip$|@\1|; s/!(.)/\u\1/g' | sort)
}

check_release() {
  echo "== the same release twice"
  for i in one two; do
    release $i '' "$work/cache-$i" >"$work/sums-$i"
  done
  diff "$work/sums-one" "$work/sums-two"
  cat "$work/sums-one"

  echo "== the packed chart, and the formula"
  get_helm
  $helm lint --strict "$work"/one/dist/headgate-*.tgz
  diff <($helm template headgate "$work"/one/dist/headgate-*.tgz --kube-version 1.31.0) <($helm template headgate $chart --kube-version 1.31.0)
  [ "$(awk '$1 == "sha256" { gsub(/"/, "", $2); print $2 }' "$work/one/dist/headgate.rb" | sort)" = \
    "$(grep -E '(darwin|linux)-(amd64|arm64)\.tar\.gz$' "$work/one/dist/SHA256SUMS" | cut -d' ' -f1 | sort)" ]
  if grep @ "$work/one/dist/headgate.rb"; then return 1; fi
  ! command -v ruby >/dev/null || ruby -c "$work/one/dist/headgate.rb"
}

check_package() {
  echo "== the package"
  [ -e "$work/one" ] || release one linux/amd64 >/dev/null
  [ "$(id -u)" -ne 0 ] || ./scripts/package_check.sh "$work"/one/dist/headgate_*_amd64.deb
}

stages=("$@")
[ $# -gt 0 ] || stages=(charts build release package)
for stage in "${stages[@]}"; do
  "check_$stage"
done
echo "ok: ${stages[*]}"
