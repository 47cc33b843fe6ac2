#!/usr/bin/env bash
# Debian's packages into dist: deb.sh FOLDER. They are built of a copy of the tree in FOLDER, as dpkg-buildpackage writes beside it.
set -eu
cd "$(dirname "$0")/.."
folder=$1
rm -rf "$folder"
mkdir -p "$folder/weft" dist
tar -c --exclude-vcs --exclude='./build*' --exclude=./dist --exclude=./runs --exclude=./.venv . | tar -x -C "$folder/weft"
(cd "$folder/weft" && DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym" dpkg-buildpackage -us -uc -b) > "$folder/log" 2>&1 || { tail -30 "$folder/log" >&2; exit 1; }
rm -f dist/*.deb
mv "$folder"/*.deb dist/
ls dist/*.deb
