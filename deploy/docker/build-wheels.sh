#!/bin/sh
# build-wheels.sh SERVICE WHEELS: stubs from proto/, then wheels of the service and its base.
set -eu
service=$1 wheels=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
  -r "$here/requirements-build.lock"
# Built from a copy: setuptools writes beside the sources.
mkdir -p "$work/services" "$wheels"
cp -R "$root/services/common" "$root/services/$service" "$work/services"
stubs=$work/services/common/src
rm -rf "$stubs/annals"
(cd "$root" && find proto -name '*.proto' -exec "$work/tools/bin/python" -m grpc_tools.protoc \
  -Iproto --python_out="$stubs" --grpc_python_out="$stubs" {} +)
"$work/tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$wheels" "$work/services/common" "$work/services/$service"
