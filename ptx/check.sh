#!/bin/bash
# Refuses images that contain what a kernel must not, and keeps the table of each entry's costs. Needs no GPU.
#   ptx/check.sh [--write] [ARCHIVES]   compares with (or writes) STATIC.md in this directory (static.py makes
#                                       it); the folder of archives defaults to images/
# Refused: calls, panics, local memory, spills (on AMD also spills of scalars to lanes of vectors),
# scratch, LDS, undefined symbols, generic loads and stores; more than one ballot in selftest_bait (a sign
# of jump threading); on AMD, any value but the wave's index made scalar in copy_views, whose lanes have
# buffers of their own; more than 128 registers (in a 256-bit cast; elsewhere the block sizes that a
# family requests leave 64 or 80); images of a family, for one maker, with different entries; and code
# objects with an entry without its descriptor, or a descriptor without its entry. Compared: the text of
# every AMD instruction by lab/amd, with LLVM's disassembler. Needs Rust, LLVM 22 (llvm-readelf, llvm-nm,
# llvm-objdump) and, from PyPI on first use, ptxas and nvdisasm, kept in $TOOLS.
set -euo pipefail
write=; [ "${1:-}" != --write ] || { write=1; shift; }
here=$(cd "$(dirname "$0")" && pwd)
tools=${TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/bowstring/cuda-13.4}
bin=$tools/nvidia/cu13/bin
work=$(mktemp -d); dir=$work/images; trap 'rm -rf "$work"' EXIT
llvm() { local tool=$1; shift; if command -v "llvm-$tool-22" >/dev/null; then "llvm-$tool-22" "$@"; else "llvm-$tool" "$@"; fi; }
bad() { echo "REFUSED $*"; touch "$work/bad"; }

python3 "$here/images.py" unpack "$dir" "${1:-$here/images}"
if [ ! -x "$bin/ptxas" ]; then
  mkdir -p "$tools"
  python3 -m pip download -q --no-deps -d "$tools" nvidia-cuda-nvcc==13.4.92 nvidia-cuda-nvdisasm==13.5.37
  for wheel in "$tools"/*.whl; do python3 -m zipfile -e "$wheel" "$tools"; done
  chmod +x "$bin"/{ptxas,nvdisasm}
fi

# Check the PTX as text.
for f in "$dir"/*.ptx; do
  name=$(basename "$f")
  if grep -nE '\.func|^\s+call|\btrap;|__local_depot|\.extern|\.shared' "$f" | head -3 | grep .; then bad "$name: a call, a panic or memory of its own"; fi
  if grep -nE '^\s+(@!?%p[0-9]+ )?(ld|st|atom|red)\.' "$f" | grep -vE '\.(global|param)\b' | head -3 | grep .; then bad "$name: a generic access"; fi
done
ballots=$(awk '/^\.visible \.entry/ { inside = /selftest_bait\(/ } inside && /vote\.sync/ { n++ } END { print n + 0 }' "$dir"/selftest.*.ptx)
[ "$ballots" = 1 ] || bad "selftest_bait has $ballots ballots: jump threading"

# Run ptxas for each architecture: each entry's registers; for sm_90 its instructions, with their control
# bits.
assemble() { # ARCH FILE
  "$bin/ptxas" -v -arch="$1" "$2" -o "$work/$1.$(basename "$2").cubin" 2> "$work/$1.$(basename "$2").log" || { cat "$work/$1.$(basename "$2").log"; exit 1; }
}
export -f assemble; export bin work
for arch in sm_75 sm_80 sm_90 sm_100 sm_120; do for f in "$dir"/*.ptx; do echo "$arch $f"; done; done |
  xargs -P "$(nproc)" -L 1 bash -c 'assemble $0 $1'
for arch in sm_75 sm_80 sm_90 sm_100 sm_120; do
  cat "$work/$arch".*.log | awk -v arch=$arch '
    /Compiling entry function/ { split($0, q, "\x27"); entry = q[2] }
    /bytes stack frame/ { if ($1 + 0 || $5 + 0 || $9 + 0) print "spill", arch, entry, $0 }
    /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); print "registers", arch, entry, substr($0, RSTART + 5, RLENGTH - 5) }'
done > "$work/facts"
for cubin in "$work"/sm_90.*.cubin; do "$bin/nvdisasm" -c -hex "$cubin"; done > "$work/sass"

# Check AMD's code objects: their notes and their instructions.
for f in "$dir"/*.hsaco; do
  name=$(basename "$f" .hsaco); arch=${name#*.}
  llvm readelf --notes "$f" | awk -v arch="$arch" '
    /^ +\.name: / { entry = $2 }
    /\.(private_segment_fixed_size|group_segment_fixed_size|vgpr_spill_count): / && $2 + 0 { print "spill", arch, entry, $0 }
    /\.sgpr_spill_count: / && $2 + 0 { print "lanes", arch, entry, $0 }
    /uses_dynamic_stack: +true/ { print "spill", arch, entry, $0 }
    /\.sgpr_count: / { print "scalars", arch, entry, $2 }
    /\.vgpr_count: / { print "registers", arch, entry, $2 }' >> "$work/facts"
  if llvm nm --dynamic --undefined-only "$f" | grep .; then bad "$name: undefined symbols"; fi
  llvm objdump -d --no-show-raw-insn "$f" | awk -v arch="$arch" '
    /^[0-9a-f]+ <.*>:$/ { entry = substr($2, 2, length($2) - 3) }
    /^\t/ && !/s_nop|s_code_end/ { n[entry]++ }
    /^\tv_readfirstlane/ && entry ~ /^copy_views_/ && ++scalars[entry] > 1 { print "scalar", arch, entry, $0 }
    /^\t(flat|scratch|buffer)_|^\tds_(read|write|load|store|add)/ { print "access", arch, entry, $1 }
    END { for (e in n) print "code", arch, e, n[e] }' >> "$work/facts"
done

# Compare every AMD instruction in the text of our interpreter's decoder and of LLVM.
cargo run --quiet --manifest-path "$here/../Cargo.toml" -p bowstring-amdi --example amdi -- text "$dir"/*.hsaco > "$work/ours"
for f in "$dir"/*.hsaco; do
  # The text is followed by the address, the words, and the target of a branch; zeroes between kernels are no
  # code.
  llvm objdump -d "$f" | sed -nE '/^\t(v_illegal|\.\.\.)|: 00000000 *$/d; s/^\t([a-z].*)\/\/ [0-9A-F]{12}:.*$/\1/; T; s/[[:space:]]+$//; s/[[:space:]]+/ /g; p'
done > "$work/theirs"
cmp -s "$work/ours" "$work/theirs" || bad "instructions that are not what LLVM says: $(diff "$work/ours" "$work/theirs" | head -4 | tr '\n' ' ')"

# Known exceptions: "KIND ARCH ENTRY" and the reason, one on each line. Everything else fails, and a fixed
# exception must be removed from this list.
cat > "$work/known" <<'KNOWN'
lanes gfx90a program_b8 five scalars that only code between tiles wants: lanes of a vector register keep them, memory none
lanes gfx9-4-generic program_b8 the same
lanes gfx942 program_b8 the same as gfx9-4-generic
lanes gfx90a program_b16 one scalar, around the loop that divides: a lane of a vector register keeps it, memory none
lanes gfx90a text_compare what two columns are found by, in nested loops: lanes of a vector register keep some of it, memory none
lanes gfx9-4-generic text_compare the same
lanes gfx942 text_compare the same as gfx9-4-generic
lanes gfx90a text_contains the same
lanes gfx90a text_like the same
lanes gfx90a text_pieces the same
lanes gfx9-4-generic text_like the same
lanes gfx942 text_like the same as gfx9-4-generic
lanes gfx90a read_date what a column is found by, and what its type is, around long code: lanes of a vector register keep some of it, memory none
lanes gfx9-4-generic read_date the same
lanes gfx942 read_date the same as gfx9-4-generic
lanes gfx90a read_decimal_b16 the same
lanes gfx9-4-generic read_decimal_b16 the same
lanes gfx942 read_decimal_b16 the same as gfx9-4-generic
lanes gfx90a read_decimal_b32 the same
lanes gfx9-4-generic read_decimal_b32 the same
lanes gfx942 read_decimal_b32 the same as gfx9-4-generic
lanes gfx90a read_f32 the same
lanes gfx9-4-generic read_f32 the same
lanes gfx942 read_f32 the same as gfx9-4-generic
lanes gfx90a read_f32_hard the same
lanes gfx90a read_f64 the same
lanes gfx9-4-generic read_f64 the same
lanes gfx942 read_f64 the same as gfx9-4-generic
lanes gfx90a read_interval the same
lanes gfx9-4-generic read_interval the same
lanes gfx942 read_interval the same as gfx9-4-generic
lanes gfx90a read_time the same
lanes gfx9-4-generic read_time the same
lanes gfx942 read_time the same as gfx9-4-generic
lanes gfx90a read_timestamp the same
lanes gfx9-4-generic read_timestamp the same
lanes gfx942 read_timestamp the same as gfx9-4-generic
lanes gfx9-4-generic program_terms one that only code between terms wants
lanes gfx942 program_terms the same as gfx9-4-generic
KNOWN
{ grep -E '^(spill|lanes|access|scalar) ' "$work/facts" || true; } | sort | uniq -c | while read -r count kind arch entry rest; do
  grep -qE "^$kind $arch $entry( |\$)" "$work/known" || bad "$kind $arch $entry $rest ($count)"
done
while read -r kind arch entry rest; do
  grep -q "^$kind $arch $entry " "$work/facts" || bad "known no more: $kind $arch $entry"
done < "$work/known"

# All images of a maker's machines must have the same entries in a family: one exported function in PTX, a
# function and its descriptor in a code object.
for f in "$dir"/*.ptx "$dir"/*.hsaco; do
  name=$(basename "$f"); family=${name%%.*}.${name##*.}
  case $f in
  *.ptx) sed -n 's/^\.visible \.entry \([A-Za-z0-9_]*\)(.*/\1/p' "$f" | LC_ALL=C sort > "$work/entries" ;;
  *.hsaco)
    llvm readelf --dyn-symbols --wide "$f" | awk '$4 == "FUNC" && $7 != "UND" { print $8 }' | LC_ALL=C sort > "$work/entries"
    llvm readelf --dyn-symbols --wide "$f" | awk '$4 == "OBJECT" && $8 ~ /\.kd$/ { print substr($8, 1, length($8) - 3) }' |
      LC_ALL=C sort | cmp -s - "$work/entries" || bad "$name: entries and descriptors differ" ;;
  esac
  [ -s "$work/entries" ] || bad "$name: no entries"
  if [ ! -e "$work/$family.entries" ]; then cp "$work/entries" "$work/$family.entries"; fi
  diff "$work/$family.entries" "$work/entries" > "$work/difference" || bad "$name: other entries than the family's first such image: $(grep -c '^[<>]' "$work/difference")"
done
while read -r line; do bad "$line"; done < <(awk '$1 == "registers" && $4 > 128 && $2 ~ /^sm/' "$work/facts")

python3 "$here/static.py" "$work/facts" "$work/sass" "$dir" > "$work/STATIC.md"
if [ -n "$write" ]; then cp "$work/STATIC.md" "$here/STATIC.md"; else diff -u "$here/STATIC.md" "$work/STATIC.md" || bad "ptx/STATIC.md is stale: tools/bless static"; fi
echo "$(grep -c '^| [a-z]*_' "$work/STATIC.md") entries in $(ls "$dir"/*.ptx "$dir"/*.hsaco | wc -l) images, $(cat "$dir"/*.ptx "$dir"/*.hsaco | wc -c) bytes, $(cat "${1:-$here/images}"/*.a | wc -c) compressed"
[ ! -e "$work/bad" ]
