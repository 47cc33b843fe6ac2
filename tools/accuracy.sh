#!/usr/bin/env bash
# How well the model of the chips agrees with libtpu's compiler and with published runs: tools/accuracy.sh BUILD
# Prints the tables and writes them into docs/accuracy.md and docs/accuracy/.
cd "$(dirname "$0")/.." && exec python3 tools/accuracy.py "${1:-build}"
