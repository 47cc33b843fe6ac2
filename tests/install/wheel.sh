#!/usr/bin/env bash
# Installs the wheel as users do, and trains with it: wheel.sh WHEEL FOLDER [CHECK...] (FOLDER is for what it makes)
#
#   names      what the plugin shows to other libraries, and which of the system's it needs
#   python3.X  an empty environment of each Python from 3.10 to 3.14 that is here: it imports, the command answers
#   jax        an empty environment with weft[jax]: a train step, against JAX's own CPU backend
#   trixie     a Debian 13 of its own (mmdebstrap, as root), its Python and the newest JAX that weft[jax] takes: the same
#   beside     each Python of WEFT_BESIDE (a list): in one process with torch and tensorflow, where it has them
set -u
here=$(cd "$(dirname "$0")" && pwd)
wheel=$(realpath "$1")
mkdir -p "$2"
work=$(realpath "$2")
only=" ${*:3} "
passed=0 failed=0 skipped=0

# check NAME COMMAND...: its output is shown when it fails; a command that could not download what it needs ends with 75.
check() {
  local name=$1 code
  shift
  [[ "$only" = *[!\ ]* && "$only" != *" $name "* ]] && return
  "$@" > "$work/$name.log" 2>&1
  code=$?
  if [ $code = 0 ]; then
    passed=$((passed + 1))
    echo "$name: good ($(tail -1 "$work/$name.log"))"
  elif [ $code = 75 ]; then
    skip "$name" "no download: $(tail -1 "$work/$name.log")"
  else
    failed=$((failed + 1))
    tail -30 "$work/$name.log"
    echo "$name: FAILED"
  fi
}
skip() {
  skipped=$((skipped + 1))
  echo "$1: skipped, $2"
}

names() {
  local folder=$work/unpacked shown needed odd
  rm -rf "$folder"
  python3 -m zipfile -e "$wheel" "$folder"
  shown=$(readelf -W --dyn-syms "$folder/weft/libpjrt_weft.so" | awk '$7 != "UND" && ($5 == "GLOBAL" || $5 == "WEAK") {print $8}' | sort -u)
  [ "$shown" = GetPjrtApi ] || { echo "the plugin shows: $shown"; return 1; }
  needed=$(readelf -d "$folder/weft/libpjrt_weft.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
  odd=$(grep -Ev '^(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux-x86-64)\.so|^lib(jpeg|cjson|utf8proc|protobuf-c)-[0-9a-f]+\.so' <<< "$needed")
  [ -z "$odd" ] || { echo "the plugin needs of the system: $odd"; return 1; }
  echo "shows GetPjrtApi, needs glibc alone"
}

# environment PYTHON NAME WHAT
environment() {
  local pip=("$work/$2/bin/python" -m pip --disable-pip-version-check -q)
  rm -rf "${work:?}/$2"
  "$1" -m venv "$work/$2" || return
  "${pip[@]}" install "$3" && return
  "${pip[@]}" download --no-deps --no-cache-dir -d "$work/index" numpy || return 75 # no index at all
  return 1
}

imports() { # imports PYTHON NAME
  environment "$1" "$2" "$wheel" &&
    "$work/$2/bin/python" -c 'import ctypes, weft; ctypes.CDLL(weft.library_path()); import jax_plugins.weft' &&
    "$work/$2/bin/weft" chips > /dev/null && "$work/$2/bin/weft" version
}

trains() {
  environment /usr/bin/python3 jax "$wheel[jax]" && cd "$work" && JAX_PLATFORMS=weft,cpu "$work/jax/bin/python" "$here/train.py"
}

# A program's own python for each minor version: the system's, or one of pyenv's.
pythons() {
  local minor found
  for minor in 10 11 12 13 14; do
    found=$(ls -d /usr/bin/python3.$minor /usr/local/bin/python3.$minor "$HOME"/.pyenv/versions/3.$minor.*/bin/python3.$minor 2> /dev/null | head -1)
    [ -z "$found" ] || echo "$found"
  done
}

# In the Debian 13, with its own /proc and /dev: they are gone with the command.
inside() {
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$work/trixie" \
    env -i HOME=/root PATH=/usr/bin:/bin:/usr/sbin:/sbin "${pip_settings[@]}" "$@"
}

trixie() {
  local mirror root=$work/trixie
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -1)
  if [ ! -f "$root/made" ]; then
    rm -rf "$root"
    mmdebstrap -q --variant=minbase --include=python3,python3-venv,ca-certificates trixie "$root" "${mirror:?apt knows no mirror}" || return 75
    touch "$root/made"
  fi
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  [ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/"
  rm -rf "$root"/opt/weft && mkdir -p "$root/opt/weft" && cp "$wheel" "$here/train.py" "$root/opt/weft/"
  mapfile -t pip_settings < <(env | grep '^PIP_\|_proxy=\|^SSL_CERT' | grep -v PIP_FIND_LINKS)
  inside python3 -m venv /opt/venv && inside /opt/venv/bin/pip install -q "/opt/weft/$(basename "$wheel")[jax]" &&
    inside /opt/venv/bin/weft version && inside JAX_PLATFORMS=weft,cpu /opt/venv/bin/python /opt/weft/train.py
}

beside() { PYTHONPATH=$work/unpacked timeout 1500 "$1" "$here/beside.py"; }

check names names
for python in $(pythons); do check "$(basename "$python")" imports "$python" "$(basename "$python")"; done
check jax trains
if ! command -v mmdebstrap > /dev/null; then
  skip trixie "there is no mmdebstrap"
elif [ "$(id -u)" != 0 ]; then
  skip trixie "it needs root"
elif ! unshare --mount true 2> /dev/null; then
  skip trixie "mounts of its own are not allowed here"
else
  check trixie trixie
fi
if [ -z "${WEFT_BESIDE:-}" ]; then skip beside "WEFT_BESIDE names no Python with torch or tensorflow"; fi
for python in ${WEFT_BESIDE:-}; do check "beside$((passed + failed))" beside "$python"; done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
