#!/usr/bin/env bash
# Installs what the project needs and is missing: setup.sh [build] [data] [python] [check] [fuzz] [site] [jobs] [wheel] [deb]
# Debian 12, as root or with sudo.
# Debian's release fixes the versions of its packages; Python's are pinned in tests/requirements.txt.
set -eu
cd "$(dirname "$0")/.."

# libstdc++ and libgfortran as archives go with the compiler's release
gcc=$(gcc -dumpversion 2>/dev/null || apt-cache depends gcc 2>/dev/null | sed -n 's/.*Depends: gcc-\([0-9]*\)$/\1/p')
gcc=${gcc%%.*}
gcc=${gcc:-12}

build_packages="gcc libc6-dev libstdc++-$gcc-dev libgfortran-$gcc-dev make cmake ninja-build pkg-config llvm-19-dev libdnnl-dev libopenblas-pthread-dev
  libcjson-dev libprotobuf-c-dev protobuf-c-compiler libcmocka-dev libmicrohttpd-dev libmicrohttpd12 zlib1g-dev libzstd-dev liblzma-dev libjpeg62-turbo-dev libutf8proc-dev"
data_packages="dataset-fashion-mnist"
python_packages="python3 python3-venv"
jobs_packages="openmpi-bin slurmctld slurmd slurm-client"
check_packages="clang-format"
fuzz_packages="clang-14 libclang-rt-14-dev"
wheel_packages="python3 python3-venv binutils mmdebstrap"
deb_packages="build-essential dpkg-dev debhelper fakeroot"
site_packages="python3 python3-venv chromium"

need=""
for group in "$@"; do
  var="${group}_packages"
  need="$need ${!var}"
done
missing=""
for p in $need; do
  dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
if [ -n "$missing" ]; then
  sudo=""
  [ "$(id -u)" = 0 ] || sudo="sudo"
  command -v apt-get >/dev/null || { echo "setup: needs Debian's packages:$missing" >&2; exit 1; }
  echo "setup: installing$missing"
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get -o DPkg::Lock::Timeout=600 update -qq
  $sudo apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $missing > /tmp/weft-setup.$$.log 2>&1 \
    || { cat /tmp/weft-setup.$$.log >&2; exit 1; }
  rm -f /tmp/weft-setup.$$.log
fi

for group in "$@"; do
  [ "$group" = python ] || continue
  stamp=.venv/requirements.$(sha256sum tests/requirements.txt | cut -c1-12)
  if [ ! -f "$stamp" ]; then
    # Debian's own interpreter: its version decides which wheels fit
    echo "setup: Python packages of tests/requirements.txt into .venv"
    rm -rf .venv
    /usr/bin/python3 -m venv .venv
    .venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt
    touch "$stamp"
  fi
done
