#!/usr/bin/env bash
# Tries the archive as it will be used: made of what debug builds have left, unpacked in an empty folder, with no Rust in the
# PATH, on the library that stands in for CUDA's. Fails where a step fails, or where the page lacks what it should have.
#   tests/archive/rehearse.sh [SECONDS]    (default: 150, on two cores)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${1:-150}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

PROFILE=dev "$root/tests/archive/build.sh" "$folder/archive.tar.xz"
bytes=$(stat -c %s "$folder/archive.tar.xz")
[ "$bytes" -le $((64 << 20)) ] || { echo "the archive has $bytes bytes, more than 64 MiB"; exit 1; }
mkdir "$folder/there" "$folder/home"
tar -C "$folder/there" -xJf "$folder/archive.tar.xz"
there=$folder/there/bowstring-tests
mkdir "$there/standin"
cp "$there/libbowstring_standin.so" "$there/standin/libcuda.so.1"

# Nothing of this machine but its usual programs.
cp -rs /usr/bin "$folder/bin"
rm -f "$folder"/bin/cargo* "$folder"/bin/rust*
bare() { env -i PATH="$folder/bin" HOME="$folder/home" TMPDIR="$folder/home" LD_LIBRARY_PATH="$there/standin" "$@"; }
if bare sh -c 'command -v cargo || command -v rustc'; then echo "there is Rust in the PATH"; exit 1; fi
began=$SECONDS
bare env BOWSTRING_BENCH=tiny FIRST_SECONDS="$seconds" "$there/first.sh" | grep '^=='
took=$((SECONDS - began))
page=$(ls "$there"/results/*-stand-in.md)
lacks() { echo "the page lacks $1:"; cat "$page"; exit 1; }
for text in '^| doctor | .* done |$' '^| driver |' '^| equivalence |' '^| sanitizer |' '^| benches |' '^| peers |' '^CUDA:0 stand-in' \
    'results of .* as on the CPU'; do
    grep -q "$text" "$page" || lacks "$text"
done
measured=$(sed -n 's/^\([0-9]*\) of [0-9]* predictions were measured\.$/\1/p' "$page")
with_bench=$(cut -f 2 "$there/predictions.tsv" | grep -c /)
# Of filters of whole numbers, tiny inputs have other masks than those that are predicted.
if grep -q '^| benches | .* done |$' "$page"; then
    ! grep 'not measured' "$page" | grep -v '^| filter Int[36][24], [0-9]* %' || lacks "these"
fi
[ "$measured" -ge 5 ] || lacks "5 predictions measured"
[ "$took" -le $((seconds + 20)) ] || { echo "it took $took s of $seconds"; exit 1; }
python3 -m json.tool "$there/results/doctor.json" >/dev/null
echo "rehearsed in $took s: $((bytes >> 20)) MiB, $measured of $with_bench benches beside their predictions"
