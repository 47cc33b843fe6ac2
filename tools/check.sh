#!/usr/bin/env bash
# Slow checks: warnings as errors, format, ASan+UBSan over the unit tests, and what AVX-512 hosts run, emulated.
set -u
cd "$(dirname "$0")/.."
fail=0
python3 tools/layers.py || fail=1
python3 tools/gen_docs.py --check || fail=1
if command -v clang-format >/dev/null; then
  bad=$(find src include -name '*.[ch]' 2>/dev/null | xargs clang-format --dry-run 2>&1 | grep -c 'warning: code should be') || true
  echo "format: $bad places differ from .clang-format (make format)"
  [ "$bad" = 0 ] || fail=1
fi
cmake -S . -B build-check -G Ninja -DWEFT_WERROR=ON -DWEFT_SANITIZE=address,undefined >/dev/null
ninja -C build-check || exit 1
ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 ctest --test-dir build-check --output-on-failure --timeout 1200 -j2 || fail=1
cmake -S . -B build-avx512 -G Ninja -DCMAKE_BUILD_TYPE=Release -DWEFT_EMULATE_AVX512=ON >/dev/null
ninja -C build-avx512 || exit 1
ctest --test-dir build-avx512 --output-on-failure --timeout 1200 -j2 || fail=1
exit $fail
