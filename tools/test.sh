#!/usr/bin/env bash
# The tests: arrows, pages that are generated, C units (ctest), then the frameworks (pytest). test.sh BUILD
set -u
cd "$(dirname "$0")/.."
build=${1:-build}
fail=0
python3 tools/layers.py --objects "$build" || fail=1
python3 tools/gen_docs.py --check || fail=1
ctest --test-dir "$build" --output-on-failure --timeout 600 -j2 || fail=1
# What this host would not choose by itself: the CPU device as hosts without AVX-512 have it.
if grep -qw avx512f /proc/cpuinfo; then
  WEFT_VECTOR_BITS=256 ONEDNN_MAX_CPU_ISA=AVX2 ctest --test-dir "$build" --output-on-failure --timeout 600 -j2 \
    -R "^($(find src/dev/cpu -name '*_test.c' -exec basename -s .c {} + | paste -sd'|')|golden_test)$" || fail=1
fi
if grep -qw amx_tile /proc/cpuinfo; then
  WEFT_AMX=off ctest --test-dir "$build" --output-on-failure --timeout 600 -j2 -R '^(dot|conv)_test$' || fail=1
fi
if [ -x .venv/bin/python ]; then
  WEFT_BUILD="$PWD/$build" .venv/bin/python -m pytest -q --durations=10 tests || fail=1
fi
exit $fail
