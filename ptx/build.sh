#!/bin/bash
# Builds device images from kernels/src: for each family an archive with one image for each architecture, and
# a manifest.
#   ptx/build.sh [OUT]          OUT defaults to ptx/images; the same compiler gives the same images anywhere
# Contains no family's name: each kernel declares its own compiler options, and images.py reads them.
# Needs Python and either of:
#   Debian's rustc-web 1.96, as in CI:  apt-get install rustc-web cargo-web rust-web-src rust-web-llvm lld-22
#   a rustup nightly, as users have:    rustup toolchain install nightly -c rust-src -c llvm-tools
# If both are present, DEVICE_RUSTC and DEVICE_CARGO choose. Intermediate files go to TARGET_ROOT
# (target/device), uncompressed images, FAMILY.ARCH.ptx or .hsaco, to images in it.
# FAMILIES restricts the build to these families; STALE=1 restricts it to those whose sources have changed.
# ARCHES (sm_75 gfx90a …) restricts the architectures, for work on one kernel; then no archives are written to
# ptx/images, and those elsewhere have images of these only.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "${1:-$here/ptx/images}" && cd "${1:-$here/ptx/images}" && pwd)
targets=${TARGET_ROOT:-$here/target/device}
raw=$targets/images
mkdir -p "$raw"
tool() { python3 "$here/ptx/images.py" "$@"; }

# PTX 7.4 for sm_75 runs on everything since (SASS made from it for sm_90 equals that from sm_90 PTX).
arches=${ARCHES:-$(awk -F ' *[|] *' '!/^#/ { print $1 }' "$here/ptx/architectures")}
families=${FAMILIES:-$(if [ -n "${STALE:-}" ]; then tool stale; else tool families; fi)}
[ -n "$families" ] || exit 0

if [ -z "${DEVICE_RUSTC:-}" ]; then
  if /usr/bin/rustc --version 2>/dev/null | grep -q 'rustc 1\.9[6-9]'; then
    DEVICE_RUSTC=/usr/bin/rustc DEVICE_CARGO=/usr/bin/cargo
  else
    DEVICE_RUSTC=$(rustup which --toolchain nightly rustc) DEVICE_CARGO=$(rustup which --toolchain nightly cargo)
  fi
fi
export RUSTC=$DEVICE_RUSTC RUSTC_BOOTSTRAP=1
unset RUSTC_WRAPPER CARGO_ENCODED_RUSTFLAGS
sysroot=$("$RUSTC" --print sysroot)
lld=$(command -v ld.lld-22 || command -v ld.lld || find "$sysroot" -name rust-lld -o -name gcc-ld/ld.lld | head -1)
case $lld in */rust-lld) lld="$lld -flavor gnu" ;; esac

images() { # ARCH
  set -euo pipefail
  arch=$1
  # Each architecture has its own target directory, because core is built for it. Flags that differ by family
  # go to the last crate only. JumpThreading breaks convergence before 1.97 (kernels/src/selftest.rs has the
  # case), so that flag must reach core too.
  export CARGO_TARGET_DIR=$targets/$arch
  flags="-Ctarget-cpu=$arch -Zmir-enable-passes=-JumpThreading -Awarnings"
  flags+=" --remap-path-prefix=$sysroot=/rust"
  case $arch in
  sm_*) target=nvptx64-nvidia-cuda flags+=" -Ctarget-feature=+ptx74 -Clinker=/bin/true" type=cdylib ;;
  gfx9*) target=amdgcn-amd-amdhsa flags+=" --cfg gpu_wave64 --cfg gpu_gfx9" type=staticlib ;;
  *) target=amdgcn-amd-amdhsa flags+=" --cfg gpu_wave32" type=staticlib ;;
  esac
  # Code objects of version 5 load from ROCm 6.0 on. Generic targets need version 6, LLVM's default, which
  # needs ROCm 6.4.
  case $arch in sm_* | *-generic) version= ;; *) version=-Cllvm-args=--amdhsa-code-object-version=5 ;; esac
  # LLVM adds a local symbol for each figure of a kernel (vector registers and so on), not always in the same
  # order, so the linker discards them: nothing reads them, and the same source must give the same bytes.
  # Merging functions would join two entries with the same code to one with two names. On AMD one of the names
  # would have no descriptor and could not be launched: hence merge-functions=disabled.
  for family in $families; do
    case $arch in
    sm_*) emit=asm=$raw/$family.$arch.ptx attributes= ;;
    *) emit=obj=$targets/$family.$arch.o attributes="-Cllvm-args=-forceattrs-csv-path=$targets/$family.$arch.csv $version" ;;
    esac
    rm -f "${emit#*=}"
    # Tell AMD's compiler the block size if it matters: planning for 1024 threads, it spills in the largest
    # casts.
    tool tuning "$family" | awk '$1 == "threads" { for (i = 4; i <= NF; i++) print $i ",amdgpu-flat-work-group-size=1," $2 }' \
      > "$targets/$family.$arch.csv"
    touch "$here/kernels/src/lib.rs" # cargo does not know of the extra output: a fresh crate would write nothing
    (cd "$here" && RUSTFLAGS=$flags "$DEVICE_CARGO" rustc -q -p bowstring-kernels --profile device -Zbuild-std=core \
      --target $target --crate-type $type -- --remap-path-prefix="$here=/bowstring" \
      --cfg family --cfg "family=\"$family\"" -Zmerge-functions=disabled $attributes --emit="$emit")
    case $arch in
    sm_*) tool finish "$family" "$raw/$family.$arch.ptx" ;;
    gfx*) $lld -shared --no-undefined --discard-all -O2 --build-id=none "$targets/$family.$arch.o" -o "$raw/$family.$arch.hsaco" ;;
    esac
  done
}
export -f images tool
export here raw targets families sysroot lld DEVICE_CARGO
printf '%s\n' $arches | xargs -P "$(nproc)" -I{} bash -c 'images {}'
if [ -z "${ARCHES:-}" ] || [ "$out" != "$here/ptx/images" ]; then
  tool pack "$raw" "$out" "$("$RUSTC" --version)" $families
fi
# Fail here, not first in CI, when the checked-in archives have outgrown their limits.
[ "$out" != "$here/ptx/images" ] || tool check
