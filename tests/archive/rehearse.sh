#!/usr/bin/env bash
# Rehearses the use of the archive: built from existing debug builds, unpacked in an empty folder, without
# Rust in the PATH, on the library that stands in for CUDA's. Fails if a step fails, or if the page is
# incomplete.
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

# The PATH has only this machine's usual programs.
cp -rs /usr/bin "$folder/bin"
rm -f "$folder"/bin/cargo* "$folder"/bin/rust*
bare() { env -i PATH="$folder/bin" HOME="$folder/home" TMPDIR="$folder/home" LD_LIBRARY_PATH="$there/standin" "$@"; }
if bare sh -c 'command -v cargo || command -v rustc'; then echo "there is Rust in the PATH"; exit 1; fi
began=$SECONDS
bare env BOWSTRING_BENCH=tiny FIRST_SECONDS="$seconds" "$there/first.sh" | grep '^=='
took=$((SECONDS - began))
page=$(ls "$there"/results/*-stand-in.md)
lacks() { echo "the page lacks $1:"; cat "$page"; exit 1; }
tar -tJf "$there/results.tar.xz" | grep "results/$(basename "$page")" >/dev/null || { echo "the bundle lacks the page"; exit 1; }
for text in '^| doctor | .* done |$' '^| driver |' '^| equivalence |' '^| sanitizer |' '^| benches |' '^| peers |' '^CUDA:0 stand-in' \
    'results of .* as on the CPU'; do
    grep -q "$text" "$page" || lacks "$text"
done
measured=$(sed -n 's/^\([0-9]*\) of [0-9]* predictions were measured\.$/\1/p' "$page")
with_bench=$(cut -f 2 "$there/predictions.tsv" | grep -c /)
# For filters of whole numbers, tiny inputs have other masks than the predictions.
if grep -q '^| benches | .* done |$' "$page"; then
    ! grep 'not measured' "$page" | grep -v '^| filter Int[36][24], [0-9]* %' || lacks "these"
fi
[ "$measured" -ge 5 ] || lacks "5 predictions measured"
[ "$took" -le $((seconds + 20)) ] || { echo "it took $took s of $seconds"; exit 1; }
python3 -m json.tool "$there/results/doctor.json" >/dev/null
# If a GPU ends the process at a fault, as ROCm's do, the page names the step.
bare env BOWSTRING_STANDIN_FAULT=abort:copy "$there/doctor" --devices 1 --budget 12 >"$folder/fault" 2>&1 &&
    { echo "a fault was not noticed"; cat "$folder/fault"; exit 1; }
grep -q 'ended by signal 6 in: equivalence, concat' "$folder/fault" || { cat "$folder/fault"; exit 1; }
# If a GPU gives a wrong result, the launch is found, and the interpreter disagrees with it.
entry=take_b1_i1 test=equivalence_take::every_index_type_meets_every_width
bare env BOWSTRING_REQUIRE=cuda BOWSTRING_CASES=1 BOWSTRING_STANDIN_FAULT="wrong:$entry" "$there/first.sh" --wrong $test >"$folder/wrong" 2>&1
grep -q "$entry of .* differs: the word" "$folder/wrong" || { cat "$folder/wrong"; exit 1; }
[ -s "$there/results/wrong-launch-$entry.txt" ] || { ls "$there/results"; exit 1; }

# A GPU that others use is left alone. A run that is stopped half way leaves a bundle.
printf '#!/bin/sh\necho 55, 10, 1000\n' >"$there/nvidia-smi"
chmod +x "$there/nvidia-smi"
busy() { exec env -i PATH="$there:$folder/bin" HOME="$folder/home" LD_LIBRARY_PATH="$there/standin" BOWSTRING_BENCH=tiny "$there/first.sh" "$@"; }
if (busy) >"$folder/busy"; then echo "it ran on a GPU that is used"; exit 1; fi
grep -q '55 % busy.*--shared' "$folder/busy" || { cat "$folder/busy"; exit 1; }
rm "$there"/results.tar.xz
busy --shared >"$folder/stopped" 2>&1 &
stopped=$!
for _ in $(seq 100); do [ -e "$there/logs/doctor.log" ] && break; sleep 0.2; done
kill -TERM "$stopped"
wait "$stopped" && { echo "it was not stopped"; exit 1; }
tar -tJf "$there/results.tar.xz" | grep logs/machine.log >/dev/null || { cat "$folder/stopped"; exit 1; }

echo "rehearsed in $took s: $((bytes >> 20)) MiB, $measured of $with_bench benches beside their predictions"
