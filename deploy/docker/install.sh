#!/bin/sh
# install.sh SERVICE WHEELS PREFIX: a virtual environment with the service, without pip.
set -eu
service=$1 wheels=$2 prefix=$3
here=$(cd "$(dirname "$0")" && pwd)

python3 -m venv --without-pip "$prefix"
pip="python3 -m pip --disable-pip-version-check --python $prefix/bin/python install --quiet"
$pip --require-hashes --no-compile -r "$here/requirements-$service.lock"
$pip --no-deps --no-index --no-compile "$wheels"/*.whl
# The root file system is read-only later; what is not compiled now is compiled at every start.
"$prefix/bin/python" -m compileall -q -j 0 "$prefix/lib" >/dev/null || true
