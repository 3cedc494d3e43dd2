#!/bin/bash
# Builds every device image from kernels/src: one file per kernel family and architecture, and MANIFEST.
#   ptx/build.sh [OUT]          OUT defaults to this directory; the same compiler gives the same bytes anywhere
# Needs either of:
#   Debian's rustc-web 1.96, as CI uses:   apt-get install rustc-web cargo-web rust-web-src rust-web-llvm lld-22
#   a rustup nightly, as users have:       rustup toolchain install nightly -c rust-src -c llvm-tools
# With both, DEVICE_RUSTC and DEVICE_CARGO choose. Intermediate files go to TARGET_ROOT (target/device).
# FAMILIES and ARCHES (sm_75 gfx90a …) restrict what is built, for work on one kernel.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
out=$(mkdir -p "${1:-$here/ptx}" && cd "${1:-$here/ptx}" && pwd)
targets=${TARGET_ROOT:-$here/target/device}
mkdir -p "$targets"

# PTX 7.4 for sm_75 runs on everything since (SASS made from it for sm_90 equals that from sm_90 PTX).
arches=${ARCHES:-sm_75 gfx90a gfx9-4-generic gfx10-3-generic gfx11-generic gfx12-generic}
families=${FAMILIES:-$(grep -hoP '^    family "\K[a-z0-9_]+' -r "$here/kernels/src" | sort -u)}

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
  # A target directory for each: core is built for the architecture. What differs by family is passed to the last crate
  # only. JumpThreading breaks convergence before 1.97 (kernels/src/selftest.rs has the case): the flag must reach core too.
  export CARGO_TARGET_DIR=$targets/$arch
  flags="-Ctarget-cpu=$arch -Zmir-enable-passes=-JumpThreading -Awarnings"
  flags+=" --remap-path-prefix=$sysroot=/rust"
  case $arch in
  sm_*) target=nvptx64-nvidia-cuda flags+=" -Ctarget-feature=+ptx74 -Clinker=/bin/true" type=cdylib ;;
  gfx9*) target=amdgcn-amd-amdhsa flags+=" --cfg gpu_wave64 --cfg gpu_gfx9" type=staticlib ;;
  *) target=amdgcn-amd-amdhsa flags+=" --cfg gpu_wave32" type=staticlib ;;
  esac
  # Two entries of the same code would become one with two names, of which on AMD one has no descriptor and cannot be
  # launched: hence merge-functions=disabled.
  for family in $families; do
    rm -f "$out/$family.$arch".*
    case $arch in
    sm_*) emit=asm=$out/$family.$arch.ptx attributes= ;;
    *) emit=obj=$targets/$family.$arch.o attributes=-Cllvm-args=-forceattrs-csv-path=$targets/$family.$arch.csv ;;
    esac
    rm -f "${emit#*=}"
    # A block is 256 threads, which AMD's compiler does not know: planning for 1024 it spills in the largest casts.
    large=
    case $family in
    cast_float) large=$(echo cast_product_I256_{F16,f32,f64}) ;;
    cast_scale) large=$(echo cast_down_I256_{i8,i16,i32,i64,u8,u16,u32,u64,i128,I256}) ;;
    esac
    for entry in $large; do echo "$entry,amdgpu-flat-work-group-size=1,256"; done > "$targets/$family.$arch.csv"
    touch "$here/kernels/src/lib.rs" # cargo does not know of the extra output: a fresh crate would write nothing
    (cd "$here" && RUSTFLAGS=$flags "$DEVICE_CARGO" rustc -q -p bowstring-kernels --profile device -Zbuild-std=core \
      --target $target --crate-type $type -- --remap-path-prefix="$here=/bowstring" \
      --cfg family --cfg "family=\"$family\"" -Zmerge-functions=disabled $attributes --emit="$emit")
    # Without the block's size ptxas plans for 1024 threads and saves registers where loads should be in flight together: a
    # take of 16-byte values had one. Four blocks of 256 a processor leave it 64 registers, which only 256-bit casts exceed; a
    # filter gains nothing beyond the 48 of five blocks but fewer waves.
    case $family in cast_float | cast_scale | cast_time) blocks=2 ;; filter | filter_few) blocks=5 ;; ranges | take) blocks=3 ;; *) blocks=4 ;; esac
    case $arch in
    sm_*) sed -i -z "s/\n)\n{/\n)\n.maxntid 256\n.minnctapersm $blocks\n{/g; s/\t\/\/ \(begin\|end\) inline asm\n//g" "$out/$family.$arch.ptx"
      # Two casts of eight bytes to eight miss four bytes of that on older GPUs.
      sed -i -z 's/\(\.entry cast_f64_[iu]64([^)]*)\n\.maxntid 256\n\.minnctapersm \)4/\13/g' "$out/$family.$arch.ptx" ;;
    gfx*) $lld -shared --no-undefined -O2 --build-id=none "$targets/$family.$arch.o" -o "$out/$family.$arch.hsaco" ;;
    esac
  done
}
export -f images
export here out targets families sysroot lld DEVICE_CARGO
printf '%s\n' $arches | xargs -P "$(nproc)" -I{} bash -c 'images {}'
[ -z "${ARCHES:-}${FAMILIES:-}" ] || exit 0

# What the images were made from and with. build.rs compares the checksums (POSIX cksum) with the files and says when the
# images are stale; the host's own files do not matter.
{
  echo "compiler $("$RUSTC" --version)"
  (cd "$here/kernels/src" && find . -name '*.rs' ! -path './target/host.rs' ! -path './target/entry.rs' -printf '%P\n' |
    LC_ALL=C sort | xargs cksum | sed 's/^/source /')
  (cd "$out" && LC_ALL=C sha256sum -- *.hsaco *.ptx | sed 's/^/image /')
} > "$out/MANIFEST"
