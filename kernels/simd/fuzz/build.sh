#!/usr/bin/env bash
# Builds the fuzzer with sanitizers (apt-get install clang-19 libclang-rt-19-dev). Usage: build.sh PROGRAM [avx2|vnni]
set -euo pipefail
cd "$(dirname "$0")"
case ${2:-avx2} in
  avx2) level=(-march=x86-64-v3) ;;
  vnni) level=(-march=x86-64-v4 -mavx512vnni) ;;
  *) echo "level '$2': expected avx2 or vnni" >&2; exit 1 ;;
esac
# Rows of blocks begin anywhere, and are read with instructions that allow it.
clang-19 -O0 -g -std=gnu11 -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi \
  -fsanitize=address,undefined -fno-sanitize=alignment -fno-sanitize-recover=all "${level[@]}" fuzz.c -o "$1"
