#!/usr/bin/env bash
# Runs fuzzers for T seconds each (default 60) with ASan and UBSan. fuzz.sh [T] [NAME ...]
# Seeds are files of the project: the golden corpus, the chips; a checkpoint, images and a vocabulary in miniature.
set -eu
cd "$(dirname "$0")/.."
T=${1:-60}
shift || true
build=${BUILD:-build-fuzz}
all=$(find src -name '*_fuzz.c' -printf '%f\n' | sed 's/_fuzz\.c$//' | sort)

make_in() { # FOLDER BACKENDS-LEFT-OUT NAME ...
  cmake -S . -B "$1" -G Ninja -DCMAKE_C_COMPILER=clang-14 -DWEFT_FUZZ=ON -DWEFT_TESTS=OFF \
    -DWEFT_SANITIZE=address,undefined "-DWEFT_WITHOUT=$2" > /dev/null
  ninja -C "$1" $(printf '%s_fuzz ' "${@:3}")
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
      python3 - > "$2/tokens" <<'EOF'
import json
shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
names = [chr(b) for b in shown] + [chr(256 + i) for i in range(256 - len(shown))]
print("T" + json.dumps({n: i for i, n in enumerate(names + ["th", "the"])}) + "\0#version\nt h\nth e\n", end="")
EOF
      ;;
  esac
}

for name in ${@:-$all}; do
  # readers do without the devices, whose kernels take a sanitizing compiler half an hour
  folder=$build without="cpu;sim"
  if [ "$name" = kept ]; then folder=$build-cpu without=; fi # what it reads the CPU device wrote
  make_in "$folder" "$without" "$name"
  mkdir -p "$build/corpus-$name"
  seeds=$(mktemp -d)
  seeds_of "$name" "$seeds"
  echo "== $name for $T s"
  "$folder/${name}_fuzz" -max_total_time="$T" -timeout=20 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$build/" "$build/corpus-$name" "$seeds"
  rm -rf "$seeds"
done
