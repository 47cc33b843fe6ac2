#!/usr/bin/env bash
# Runs fuzzers for T seconds each (default 60) with ASan and UBSan. fuzz.sh [T] [NAME ...]
# NAME is a fuzzer, or files:READER for one reader of src/train/files_fuzz.c alone: safetensors, checkpoint, csv, npz, idx, tar,
# picture, cifar, bpe, wordpiece.
# Seeds are files of the project: the golden corpus, the chips; a checkpoint, images and a vocabulary in miniature.
set -eu
cd "$(dirname "$0")/.."
T=${1:-60}
shift || true
build=${BUILD:-build-fuzz}
all=$(find src -name '*_fuzz.c' -printf '%f\n' | sed 's/_fuzz\.c$//' | sort)

make_fuzzer() { # NAME
  local launcher=""
  ! command -v ccache > /dev/null || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
  cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang-14 $launcher -DWEFT_FUZZ=ON -DWEFT_TESTS=OFF \
    -DWEFT_SANITIZE=address,undefined > /dev/null
  ninja -C "$build" "$1_fuzz"
}

letter_of() { # READER, as in files_fuzz.c
  case $1 in
    safetensors) echo S ;; checkpoint) echo K ;; csv) echo V ;; npz) echo N ;; idx) echo I ;; tar) echo W ;;
    picture) echo P ;; cifar) echo C ;; bpe) echo T ;; wordpiece) echo B ;;
    *) echo "fuzz: no reader '$1'" >&2 && exit 2 ;;
  esac
}

seeds_of() { # NAME FOLDER
  case $1 in
    bytecode) find tests/golden/corpus -name '*.mlirbc' -size -64k -exec cp {} "$2" \; ;;
    text) find tests/golden/corpus -name '*.mlir' -size -64k -exec cp {} "$2" \; ;;
    npy) find tests/golden/corpus -name '*.npz' -size -8k -exec cp {} "$2" \; ;;
    chip) cp data/chips/*.chip "$2" ;;
    files)
      printf 'S\x56\0\0\0\0\0\0\0%s12345678' \
        '{"__metadata__":{"step":"1"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}  ' > "$2/safetensors"
      printf 'Vwidth,"the, height",label\n1,2.5,cat\n\n3,"-1e3",dog\r\n' > "$2/csv"
      printf 'V1;2;0\n3;4;1\n' > "$2/semicolons"
      { printf N && cat "$(find tests/golden/corpus -name '*.npz' -size -4k | sort | head -1)"; } > "$2/arrays"
      printf 'I\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03abcdef' > "$2/idx"
      { printf C && base64 -d <<'EOF'
/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////
////////////////////wAALCAAgACABAREA/8QAFgABAQEAAAAAAAAAAAAAAAAAAAMC/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/a
AAgBAQAAPwDAqJCokKiQqP/Z
EOF
      } > "$2/cifar"
      { printf B && cat tests/train/tokens/uncased/vocab.txt; } > "$2/pieces"
      { printf K && cat "$2/safetensors" | tail -c +2; } > "$2/checkpoint"
      python3 - "$2" > "$2/tokens" <<'EOF'
import io
import json
import struct
import sys
import tarfile
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 2, 0, 0, 0)) + \
    chunk(b"IDAT", zlib.compress(bytes(2 * 10))) + chunk(b"IEND", b"")
open(sys.argv[1] + "/png", "wb").write(b"P" + png)
tar = io.BytesIO()
with tarfile.open(fileobj=tar, mode="w") as t:
    for i in range(4):
        for name, data in ((f"{i}.png", png), (f"{i}.cls", str(i % 2).encode())):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
open(sys.argv[1] + "/tar", "wb").write(b"W" + tar.getvalue())
shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
names = [chr(b) for b in shown] + [chr(256 + i) for i in range(256 - len(shown))]
print("T" + json.dumps({n: i for i, n in enumerate(names + ["th", "the"])}) + "\0#version\nt h\nth e\n", end="")
EOF
      ;;
  esac
}

for name in ${@:-$all}; do
  reader=${name#*:}
  name=${name%:*}
  [ "$reader" = "$name" ] && reader="" || reader=$(letter_of "$reader")
  make_fuzzer "$name"
  mkdir -p "$build/corpus-$name"
  seeds=$(mktemp -d)
  seeds_of "$name" "$seeds"
  echo "== $name ${reader:+(reader $reader) }for $T s"
  WEFT_FUZZ_READER=$reader "$build/${name}_fuzz" -max_total_time="$T" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/" "$build/corpus-$name" "$seeds"
  rm -rf "$seeds"
done
