#!/usr/bin/env bash
# Builds a self-contained archive of the test and bench executables, for a machine with a GPU and no Rust: see run.sh.
#   tests/archive/build.sh [ARCHIVE]        (default: target/bowstring-tests.tar.gz)
#   BENCHES=0 tests/archive/build.sh        the tests alone, which takes less time
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath -m "${1:-$root/target/bowstring-tests.tar.gz}")
cd "$root"

into=$(mktemp -d)
trap 'rm -rf "$into"' EXIT
folder=$into/bowstring-tests
mkdir -p "$folder"

# What cargo built, a line each: the executable's path.
executables() {
    cargo "$@" --no-run --message-format=json-render-diagnostics | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
}
# NAME-HASH under NAME, without what only a debugger reads.
put() {
    local name=${1##*/}
    name=$2${name%-*}
    cp "$1" "$folder/$name"
    strip --strip-debug "$folder/$name"
}

for path in $(executables test -p bowstring --lib --test it); do
    put "$path" test-
    beside=${path%/*}
done
# What stands in for the drivers' libraries is looked for next to the tests.
cp "$beside/libbowstring_standin.so" "$folder/"
strip --strip-debug "$folder/libbowstring_standin.so"
if [ "${BENCHES:-1}" != 0 ]; then
    for path in $(executables bench -p bowstring --benches); do
        put "$path" bench-
    done
    mkdir -p "$folder/benches"
    cp -r benches/*.py benches/peers "$folder/benches/"
    rm -rf "$folder"/benches/__pycache__ "$folder/benches/peers/__pycache__"
    # Where nvcc is here, it need not be there.
    if command -v nvcc >/dev/null; then
        nvcc -O3 -std=c++17 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90] \
            -o "$folder/peers-cuda" benches/peers/gpu.cu
    fi
fi
cp tests/archive/run.sh "$folder/"
git rev-parse HEAD >"$folder/COMMIT" 2>/dev/null || echo unknown >"$folder/COMMIT"

mkdir -p "$(dirname "$out")"
tar -C "$into" -czf "$out" bowstring-tests
echo "$out: $(du -h "$out" | cut -f1), $(ls "$folder" | grep -c '^test-') test and $(ls "$folder" | grep -c '^bench-' || true) bench executables"
