#!/usr/bin/env bash
# Builds the kernels for every platform with clang 19 and lld 19 of Debian (apt-get install clang-19 lld-19), without any
# platform's headers or libraries. The same source gives the same bytes. Usage: build.sh [FOLDER [NAME…]], where the names
# of libraries, without their endings, are those to build.
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-lib}
mkdir -p "$out"
[ $# -gt 0 ] || bun -e 'import { layoutHeader } from "./layout.ts"; await Bun.write("layout.h", layoutHeader());'
flags=(-Oz -std=gnu11 -ffreestanding -fno-stack-protector -fno-math-errno -fno-trapping-math -ffp-contract=off
  -fvisibility=hidden -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-ident -Wall -Werror -Wno-unused-function
  -Wno-psabi ${KERNEL_FLAGS:-})
vnni=(-march=x86-64-v4 -mavx512vnni -mtune=znver4 -mprefer-vector-width=512 -mno-gather)
avx2=(-march=x86-64-v3)
sse41=(-march=x86-64 -msse4.1)
no_red_zone=-mno-red-zone # Windows may write below the stack, which functions of vec.h's convention would use
neon=(-march=armv8.2-a+dotprod+fp16 -mno-outline-atomics -mno-outline)
neon80=(-march=armv8-a -mno-outline-atomics -mno-outline)

compile() { clang-19 "${flags[@]}" "$@" run.c; }
# The assembler cannot know which function needs a feature, so it gets all of them.
assemble() { compile "$@" -S -o - | bun constants.ts | clang-19 "${@/%+fp16/+fp16+i8mm}" -Wno-unused-command-line-argument -c -x assembler -; }

linux() { # NAME TARGET FLAGS
  local object="$out/$1.o"
  assemble --target="$2-linux-gnu" "${@:3}" -fPIC -o "$object"
  ld.lld-19 -shared --build-id=none -s --no-undefined -z norelro --hash-style=gnu -o "$out/$1.so" "$object"
  rm "$object"
}
macos() { # NAME ARCH FLAGS
  local object="$out/$1.o"
  compile --target="$2-apple-macos11" "${@:3}" -c -fPIC -o "$object"
  ld64.lld-19 -arch "$2" -platform_version macos 11.0 11.0 -dylib -install_name "@rpath/$1.dylib" -undefined dynamic_lookup \
    -S -x "$object" -o "$out/$1.dylib"
  rm "$object"
}
windows() { # NAME ARCH FLAGS
  local object="$out/$1.o"
  assemble --target="$2-pc-windows-msvc" "${@:3}" -o "$object"
  lld-link-19 /dll /noentry /brepro /nodefaultlib /nologo "/out:$out/$1.dll" "$object"
  rm -f "$object" "$out/$1.lib"
}
wasm() {
  compile --target=wasm32 -msimd128 -mrelaxed-simd -matomics -mbulk-memory -nostdlib -fuse-ld=/usr/bin/wasm-ld-19 \
    -Wl,--no-entry -Wl,--export=hearth_run -Wl,--export=__stack_pointer -Wl,--import-memory -Wl,--shared-memory \
    -Wl,--max-memory=4294967296 -Wl,-z,stack-size=262144 -Wl,--global-base=65536 -Wl,-s -o "$out/simd.wasm"
}
# The quantizers: one module for every system, in a memory of its own.
quantize() {
  clang-19 "${flags[@]}" -Os --target=wasm32 -msimd128 -mbulk-memory -nostdlib -fuse-ld=/usr/bin/wasm-ld-19 \
    -Wl,--no-entry -Wl,--export=__heap_base -Wl,-z,stack-size=65536 -Wl,-s -o "$out/quantize.wasm" quantize.c
}

jobs=(
  "linux linux-x64-vnni x86_64 ${vnni[*]}"
  "linux linux-x64-avx2 x86_64 ${avx2[*]}"
  "linux linux-x64-sse41 x86_64 ${sse41[*]}"
  "linux linux-arm64 aarch64 ${neon[*]}"
  "linux linux-arm64-neon80 aarch64 ${neon80[*]}"
  "macos macos-arm64 arm64 ${neon[*]}"
  "macos macos-x64-avx2 x86_64 ${avx2[*]}"
  "windows windows-x64-vnni x86_64 ${vnni[*]} $no_red_zone"
  "windows windows-x64-avx2 x86_64 ${avx2[*]} $no_red_zone"
  "windows windows-x64-sse41 x86_64 ${sse41[*]} $no_red_zone"
  "windows windows-arm64 aarch64 ${neon[*]}"
  "wasm simd"
  "quantize quantize"
)
running=()
for job in "${jobs[@]}"; do
  read -r _ name _ <<<"$job"
  [ $# -lt 2 ] || [[ " ${*:2} " == *" $name "* ]] || continue
  $job &
  running+=($!)
done
for each in "${running[@]}"; do wait "$each"; done
shopt -s nullglob # some may not be wanted
(cd "$out" && sha256sum -- *.so *.dylib *.dll *.wasm > SHA256SUMS)
