#!/bin/sh
# finish.sh: takes pip out of the final image and adds the user it runs as.
set -eu
python3 -m pip uninstall --quiet --yes setuptools wheel pip 2>/dev/null
groupadd --gid 10001 annals
useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin annals
