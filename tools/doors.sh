#!/usr/bin/env bash
# Tests of programs that come through another framework: doors.sh BUILD NAME... (folders of tests/doors).
# Each has an environment of its own, .venv-NAME, with what its requirements.txt pins and the package of python/.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
fail=0
for name in "$@"; do
  venv=${WEFT_DOOR_VENV:-.venv-$name}
  pins=tests/doors/$name/requirements.txt
  stamp=$venv/requirements.$(sha256sum "$pins" | cut -c1-12)
  if [ ! -f "$stamp" ]; then
    echo "doors: Python packages of $pins into $venv"
    [ -x "$venv/bin/python" ] || /usr/bin/python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check -r "$pins"
    touch "$stamp"
  fi
  site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  echo "$PWD/python" > "$site/_weft_tree.pth" # as installed, from this tree
  for hook in python/*.pth; do cp "$hook" "$site/"; done
  WEFT_BUILD="$PWD/$build" "$venv/bin/python" -m pytest -q --durations=10 "tests/doors/$name" || fail=1
done
exit $fail
