#!/usr/bin/env bash
# What is in Debian's packages works, unpacked into a folder: deb.sh PACKAGES FOLDER (FOLDER is for what it makes)
set -eu
packages=$(realpath "$1")
rm -rf "$2"
mkdir -p "$2"
cd "$2"
root=$PWD/root
for package in "$packages"/{weft,libweft0,libweft-dev}_*.deb; do dpkg-deb -x "$package" "$root"; done
libraries=$(dirname "$root"/usr/lib/*/libweft.so.0)
export PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$libraries PKG_CONFIG_PATH=$libraries/pkgconfig
step=none
trap '[ $? = 0 ] || { tail -20 *.log; echo "packages: $step FAILED"; }' EXIT

step=command
weft version > version.log
weft train mlp --data synthetic --steps 20 --out run > train.log 2>&1
[ -s run/checkpoint.safetensors ]

step=serve # with the HTTP library that the package recommends
weft serve run --port 0 > serve.log 2>&1 &
server=$!
for _ in $(seq 100); do
  grep -q 'http://' serve.log && break
  kill -0 $server 2> /dev/null || break
  sleep 0.1
done
kill $server && wait $server || true
grep -q 'http://' serve.log

step=library
cc "$root"/usr/share/doc/libweft-dev/examples/run.c $(pkg-config --cflags --libs weft) -o example
./example > example.log 2>&1
[ "$(cat example.log)" = "on cpu: 4 5 10 11" ]

step=pages
for page in $(weft --help | sed -n 's/^  *weft \([a-z]*\).*/\1/p'); do [ -f "$root/usr/share/man/man1/weft-$page.1.gz" ]; done
for package in weft libweft0 libweft-dev; do [ -f "$root/usr/share/doc/$package/copyright" ]; done
[ -d "$root/usr/share/doc/weft/accuracy" ]
echo "packages: $(cat version.log): trained, served, linked"
