#!/usr/bin/env bash
# The tasks that weft writes for SkyPilot, read by SkyPilot itself, in a venv of its own: test_sky.sh BUILD
set -eu
cd "$(dirname "$0")/.."
if [ ! -f .venv-sky/ready ]; then
  /usr/bin/python3 -m venv .venv-sky
  .venv-sky/bin/pip install -q --disable-pip-version-check skypilot==0.14.1
  touch .venv-sky/ready
fi
SKYPILOT_DISABLE_USAGE_COLLECTION=1 .venv-sky/bin/python tests/launch/sky_check.py "${1:-build}/weft"
