#!/usr/bin/env bash
# Builds a self-contained archive of the doctor, the tests and the benches for a machine with a GPU and
# without Rust: see first.sh and run.sh.
#   tests/archive/build.sh [ARCHIVE]              (default: target/bowstring-tests.tar.xz)
#   BENCHES=0 tests/archive/build.sh              without benches, which takes less time
#   PROFILE=dev tests/archive/build.sh            from debug builds, which may exist already: to try it,
#                                                 not to measure
#   GLIBC=2.28 tests/archive/build.sh             for systems since RHEL 8: linked by cargo-zigbuild
#                                                 (pip install cargo-zigbuild)
#   TARGET=aarch64-unknown-linux-gnu GLIBC=2.28 tests/archive/build.sh
#                                                 for another processor (Grace, Jetson), whose standard
#                                                 library rustup has to add
# Without GLIBC the archive needs this machine's glibc or a newer one, as a rule 2.34. Its file GLIBC names
# the version, and first.sh says so if the machine's is too old.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(realpath -m "${1:-$root/target/bowstring-tests.tar.xz}")
cd "$root"

if [ -n "${GLIBC:-}" ] && ! command -v cargo-zigbuild >/dev/null; then
    echo "GLIBC=$GLIBC needs cargo-zigbuild: pip install cargo-zigbuild"
    exit 1
fi

into=$(mktemp -d)
trap 'rm -rf "$into"' EXIT
folder=$into/bowstring-tests
mkdir -p "$folder"

# Runs cargo, and keeps its messages.
build() {
    local what=$1
    shift
    if [ -n "${GLIBC:-}" ]; then
        cargo-zigbuild "$what" --target "${TARGET:-$(uname -m)-unknown-linux-gnu}.$GLIBC" "$@" --locked \
            --message-format=json-render-diagnostics >"$into/messages"
    else
        cargo "$what" ${TARGET:+--target "$TARGET"} "$@" --locked --message-format=json-render-diagnostics >"$into/messages"
    fi
}
# Prints the paths of the executables that cargo built from the sources at a path, a line each.
made_of() { sed -n "s|.*\"src_path\":\"$root/$1\".*\"executable\":\"\([^\"]*\)\".*|\1|p" "$into/messages"; }
# Copies an executable into the archive under a name, without its symbols.
put() {
    cp "$1" "$folder/$2"
    # This machine may have no strip for another processor.
    "${STRIP:-strip}" "$folder/$2" 2>/dev/null || echo "$2 keeps its symbols"
}

# Builds all tests of the workspace, so that cargo uses the same features as in any run of the tests.
build test --workspace --no-run
it=$(made_of tests/it/main.rs)
put "$it" test-it
put "$(made_of host/lib.rs)" test-bowstring
# The tests look for the stand-in of the drivers' libraries next to themselves.
put "${it%/*}/libbowstring_standin.so" libbowstring_standin.so
if [ "${PROFILE:-bench}" = dev ]; then
    put "$(made_of examples/doctor.rs)" doctor
    benches=(test --bench '*' --no-run)
else
    build build --profile bench --example doctor
    put "$(made_of examples/doctor.rs)" doctor
    benches=(bench --bench '*' --no-run)
fi
if [ "${BENCHES:-1}" != 0 ]; then
    build "${benches[@]}"
    for path in $(made_of 'benches/[a-z_]*\.rs'); do
        name=${path##*/}
        # This bench counts calls of the stand-in.
        case $name in host_cost-*) continue ;; esac
        put "$path" "bench-${name%-*}"
    done
    mkdir -p "$folder/benches"
    cp -r benches/*.py benches/peers "$folder/benches/"
    rm -rf "$folder"/benches/__pycache__ "$folder/benches/peers/__pycache__"
    # If this machine has nvcc, the other one does not need it.
    if command -v nvcc >/dev/null; then
        nvcc -O3 -std=c++17 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=[sm_90,compute_90] \
            -o "$folder/peers-cuda" benches/peers/gpu.cu
    fi
fi
cp tests/archive/first.sh tests/archive/page.awk tests/archive/run.sh "$folder/"
cp doctor/src/h200-predictions.tsv "$folder/predictions.tsv"
target=${TARGET:-$(uname -m)}
echo "${target%%-*}" >"$folder/ARCH"
# Finds the newest version of glibc that any file needs. Unlike objdump, readelf reads the files of other
# processors.
find "$folder" -maxdepth 1 -type f -perm -u+x ! -name '*.sh' -exec readelf --version-info --wide {} + |
    sed -n 's/.*GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -Vu | tail -n 1 >"$folder/GLIBC"
needs=$(cat "$folder/GLIBC")
if [ "$(printf '%s\n' "${GLIBC:-2.28}" "$needs" | sort -V | tail -n 1)" != "${GLIBC:-2.28}" ]; then
    echo "needs glibc $needs, so not RHEL 8 nor Ubuntu 20.04: GLIBC=2.28 builds one that does not"
    [ -z "${GLIBC:-}" ] || exit 1
fi
git rev-parse HEAD >"$folder/COMMIT" 2>/dev/null || echo unknown >"$folder/COMMIT"

mkdir -p "$(dirname "$out")"
# Every executable contains the same kernels, so xz needs a window that reaches from one to the next.
tar -C "$into" -cf - bowstring-tests | xz --lzma2=preset=1,dict=256MiB >"$out"
count() { find "$folder" -name "$1-*" | wc -l; }
echo "$out: $(du -h "$out" | cut -f1), the doctor, $(count test) test and $(count bench) bench executables"
