#!/bin/sh
# Runs the tests of an archive that build.sh made, on a machine with a GPU; it needs neither Rust nor a network.
#   ./run.sh                       every test; fails where there is no CUDA device
#   BOWSTRING_REQUIRE= ./run.sh    whatever there is will do (or rocm, or names with commas between them)
#   ./run.sh --bench               the benches, which print their throughput
cd "$(dirname "$0")" || exit 1
export BOWSTRING_REQUIRE="${BOWSTRING_REQUIRE-cuda}" BOWSTRING_PTX_DIR="$PWD/ptx" RUST_BACKTRACE=1
echo "commit $(cat COMMIT), on $(uname -srm), $(nproc) processors"
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
command -v rocminfo >/dev/null && rocminfo | grep -m2 -E 'Marketing Name|gfx'

if [ "$1" = --bench ]; then
    for bench in ./bench-*; do "$bench" --bench || failed=1; done
    exit "${failed:-0}"
fi
log=$(mktemp)
for test in ./test-*; do
    echo "== $test"
    # These two read the sources, which are not here.
    "$test" --skip layers --skip readme "$@" 2>&1 || failed=1
done | tee "$log"
echo "== in all"
grep -E '^(devices:|cuda:|rocm:|test result:)' "$log" | sort | uniq
awk '/^test result:/ { passed += $4; failed += $6; ignored += $8; out += $12 }
     END { printf "%d passed, %d failed, %d not run\n", passed, failed, ignored + out; exit failed > 0 || passed == 0 }' "$log"
status=$?
rm -f "$log"
exit $status
