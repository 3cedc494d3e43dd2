#!/usr/bin/env bash
# Builds a self-contained archive of the doctor, the tests and the benches, for a machine with a GPU and no Rust: see first.sh
# and run.sh.
#   tests/archive/build.sh [ARCHIVE]              (default: target/bowstring-tests.tar.gz)
#   BENCHES=0 tests/archive/build.sh              without benches, which takes less time
#   PROFILE=dev tests/archive/build.sh            of debug builds, which may be there already: to try it, not to measure
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath -m "${1:-$root/target/bowstring-tests.tar.gz}")
cd "$root"

into=$(mktemp -d)
trap 'rm -rf "$into"' EXIT
folder=$into/bowstring-tests
mkdir -p "$folder"

# What cargo builds of the sources at a path, a line each: the executable's path.
executables() {
    local of=$1
    shift
    cargo "$@" --locked --message-format=json-render-diagnostics >"$into/messages"
    sed -n "s|.*\"src_path\":\"$root/$of\".*\"executable\":\"\([^\"]*\)\".*|\1|p" "$into/messages"
}
# An executable under a name, without what only a debugger reads.
put() {
    cp "$1" "$folder/$2"
    strip --strip-debug "$folder/$2"
}

# Everything that is there to be tested: so cargo builds with the same features as in any run of the tests.
it=$(executables tests/it/main.rs test --workspace --no-run)
put "$it" test-it
put "$(sed -n "s|.*\"src_path\":\"$root/host/lib.rs\".*\"executable\":\"\([^\"]*\)\".*|\1|p" "$into/messages")" test-bowstring
# What stands in for the drivers' libraries is looked for next to the tests.
put "${it%/*}/libbowstring_standin.so" libbowstring_standin.so
case ${PROFILE:-bench} in
dev) doctor=$(executables examples/doctor.rs build --workspace --example doctor) benches=(test --bench '*' --no-run) ;;
*) doctor=$(executables examples/doctor.rs build --profile bench --example doctor) benches=(bench --bench '*' --no-run) ;;
esac
put "$doctor" doctor
if [ "${BENCHES:-1}" != 0 ]; then
    for path in $(executables 'benches/[a-z_]*\.rs' "${benches[@]}"); do
        name=${path##*/}
        put "$path" "bench-${name%-*}"
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
cp tests/archive/first.sh tests/archive/page.awk tests/archive/run.sh "$folder/"
cp benches/results/h200-predictions.tsv "$folder/predictions.tsv"
git rev-parse HEAD >"$folder/COMMIT" 2>/dev/null || echo unknown >"$folder/COMMIT"

mkdir -p "$(dirname "$out")"
tar -C "$into" -cf - bowstring-tests | gzip -9 >"$out"
count() { find "$folder" -name "$1-*" | wc -l; }
echo "$out: $(du -h "$out" | cut -f1), the doctor, $(count test) test and $(count bench) bench executables"
