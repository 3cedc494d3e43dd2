#!/bin/bash
# Compiles the PTX with the compilers of older drivers, and refuses spills that are not listed below.
#   ptx/older.sh [ARCHIVES]     the folder of archives defaults to images/
# A driver compiles PTX with its own ptxas: check.sh has that of the newest CUDA. These two are the oldest of
# which there is a package (the PTX is for CUDA 11.4 and later), and one between. Takes three minutes on two
# cores. Needs Python; the compilers are from PyPI on first use, kept in $TOOLS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tools=${TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/bowstring}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

# The known spills, as "VERSION ARCH ENTRY BYTES": all of them lie in L1.
known="11.8.89 sm_80 read_time 8
11.8.89 sm_80 text_like 16
12.2.140 sm_90 cast_i64_u64 8
12.2.140 sm_90 cast_u64_i64 8"

python3 "$here/images.py" unpack "$work/images" "${1:-$here/images}"
for package in nvidia-cuda-nvcc-cu11==11.8.89 nvidia-cuda-nvcc-cu12==12.2.140; do
  version=${package##*==}
  ptxas=$tools/ptxas-$version/nvidia/cuda_nvcc/bin/ptxas
  if [ ! -e "$ptxas" ]; then
    mkdir -p "$tools/ptxas-$version"
    python3 -m pip download -q --no-deps -d "$tools/ptxas-$version" "$package"
    python3 -m zipfile -e "$tools/ptxas-$version"/*.whl "$tools/ptxas-$version"
    chmod +x "$ptxas"
  fi
  for arch in sm_75 sm_80 sm_90; do
    for image in "$work"/images/*.ptx; do echo "$image"; done |
      xargs -P "$(nproc)" -I{} bash -c '"$0" -v -arch="$1" {} -o /dev/null 2> {}.log || { cat {}.log; exit 255; }' "$ptxas" "$arch"
    cat "$work"/images/*.log > "$work/log"
    awk -v what="$version $arch" '
      /Compiling entry function/ { split($0, quoted, "\x27"); entry = quoted[2] }
      /bytes stack frame/ && $1 + $5 + $9 { print what, entry, $1 }' "$work/log" >> "$work/spills"
    echo "$version $arch: $(grep -c 'Compiling entry' "$work/log") entries compiled"
  done
done
touch "$work/spills"
diff <(sort <<< "$known") <(sort "$work/spills") || { echo "REFUSED other spills than those that are known (<)"; exit 1; }
