#!/bin/sh
# Runs the tests and benches of an archive that build.sh made, on a machine with a GPU; it needs neither Rust
# nor a network. (first.sh runs the best of both in ten minutes.)
#   ./run.sh                       every test; fails if the machine has no CUDA device
#   BOWSTRING_REQUIRE= ./run.sh    every test on any device (or rocm, or names with commas between them)
#   ./run.sh --sanitize            the suites under compute-sanitizer, if it is installed; findings of
#                                  initcheck do not count, because kernels read whole aligned blocks, which
#                                  may have unwritten bytes
#   ./run.sh --bench               every bench, every peer that can run, and a report of all in results/
#   ./run.sh --bench filter [...]  one bench; criterion gets the other arguments
#   ./run.sh --peers [PART ...]    only the peers: nvcc, CuPy, torch, polars, pyarrow, if installed
#   ./run.sh --replay FILE         the launch in a results/wrong-launch-*.txt (from first.sh) in the
#                                  interpreter, on any machine
#   ./run.sh --report              only the report
# BOWSTRING_BENCH= ./run.sh --bench takes minutes instead of a quarter of an hour, and measures less.
cd "$(dirname "$0")" || exit 1
export BOWSTRING_REQUIRE="${BOWSTRING_REQUIRE-cuda}" RUST_BACKTRACE=1
export BOWSTRING_BENCH="${BOWSTRING_BENCH-full}" CRITERION_HOME="${CRITERION_HOME-$PWD/criterion}"
echo "commit $(cat COMMIT), on $(uname -srm), $(nproc) processors"
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
command -v rocminfo >/dev/null && rocminfo | grep -m2 -E 'Marketing Name|gfx'

# Runs benches by their names, with arguments.
benches() {
    names=$1
    shift
    for name in $names; do
        echo "== $name"
        "./bench-$name" --bench "$@" || { echo "$name failed"; failed=1; }
    done
}
# Runs a peer and keeps its output for the report. A peer that cannot run is no failure.
peer() {
    name=$1
    shift
    echo "== peers: $name"
    "$@" >"$CRITERION_HOME/peers-$name.new" && mv "$CRITERION_HOME/peers-$name.new" "$CRITERION_HOME/peers-$name.jsonl" ||
        echo "not run, or not to its end: $name"
}
has() { python3 -c "import $1" >/dev/null 2>&1; }
peers() {
    mkdir -p "$CRITERION_HOME"
    if command -v nvcc >/dev/null && [ -e benches/peers/gpu.cu ]; then
        nvcc -O3 -std=c++17 -arch=native -o peers-cuda benches/peers/gpu.cu || echo "not built: CUB and Thrust"
    fi
    # The archive may contain one, built along with it.
    if [ -x peers-cuda ]; then peer cuda ./peers-cuda "$@"; else echo "not run: CUB and Thrust (no nvcc)"; fi
    if has cupy || has torch; then peer gpu python3 benches/peers/gpu.py "$@"; else echo "not run: CuPy, torch"; fi
    # These peers run on the CPU, and take long.
    if [ "${PEERS_CPU-1}" = 0 ]; then :
    elif has polars && has pyarrow; then peer cpu python3 benches/peers/cpu.py "$@"; else echo "not run: polars, pyarrow"; fi
}
report() { python3 benches/report.py --criterion "$CRITERION_HOME" --out results --plots results/plots; }

case $1 in
--bench)
    shift
    if [ $# -gt 0 ]; then
        benches "$@"
    else
        benches "$(for bench in ./bench-*; do echo "${bench#./bench-}"; done)"
        peers
        report || failed=1
    fi
    exit "${failed:-0}" ;;
--peers)
    shift
    peers "$@"
    exit ;;
--report)
    report
    exit ;;
--replay)
    BOWSTRING_REPLAY=$2 BOWSTRING_REQUIRE='' ./test-it --exact witness::replayed --ignored --nocapture
    exit ;;
--sanitize)
    command -v compute-sanitizer >/dev/null || { echo "not run: there is no compute-sanitizer"; exit 1; }
    # Each launch is many times slower under the sanitizer.
    export BOWSTRING_CASES="${BOWSTRING_CASES-2}" BOWSTRING_KEEP=0
    for tool in memcheck initcheck synccheck; do
        echo "== $tool"
        races=
        [ "$tool" = memcheck ] && races=--track-stream-ordered-races=all
        compute-sanitizer --tool "$tool" $races --error-exitcode 9 ./test-it equivalence_ --test-threads 1 ||
            if [ "$tool" = initcheck ]; then echo "initcheck: see above, not a failure"; else failed=1; fi
    done
    exit "${failed:-0}" ;;
esac
# The tests of one topic may not ask for devices at all, so this one does.
./test-it --exact support::devices::what_is_required_is_here || exit
log=$(mktemp)
for test in ./test-*; do
    echo "== $test"
    # The skipped tests read the sources, which the archive lacks.
    "$test" --skip circles:: --skip layers:: --skip languages:: --skip readme:: --skip costs:: --skip doctor::fakes --skip doctor::apart "$@" 2>&1 || echo "$test: ended with $?"
done | tee "$log"
echo "== in all"
grep -E '^\./test-[a-z]*: ended with' "$log" && died=1
grep -E '^(devices:|cuda:|rocm:|test result:)' "$log" | sort | uniq
awk '/^test result:/ { passed += $4; failed += $6; ignored += $8; out += $12 }
     END { printf "%d passed, %d failed, %d not run\n", passed, failed, ignored + out; exit failed > 0 || passed == 0 }' "$log"
status=$?
rm -f "$log"
exit $((status | ${died:-0}))
