#!/bin/sh
# The first ten minutes on a machine with a GPU, in the order of what is worth most: the doctor, the suites of equivalence, the
# sanitizer, the benches that are predicted, their peers. Needs no Rust, no network and no Python, and uses what is there.
#   ./first.sh                        results/DATE-GPU.md, with every prediction beside what was measured
#   FIRST_SECONDS=120 ./first.sh      in less time
#   BOWSTRING_BENCH=tiny ./first.sh   with tiny inputs, to see whether it runs; figures mean nothing
# A step that takes longer than its part is cut and named, and the page is written anew after each: so nothing is lost.
cd "$(dirname "$0")" || exit 1
limit=${FIRST_SECONDS:-570}
began=$(date +%s)
export BOWSTRING_REQUIRE="${BOWSTRING_REQUIRE-cuda}" RUST_BACKTRACE=1
export BOWSTRING_BENCH="${BOWSTRING_BENCH-full}" CRITERION_HOME="$PWD/criterion"
mkdir -p results logs "$CRITERION_HOME"

left() { echo $((began + limit - $(date +%s))); }
say() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>logs/steps.tsv; echo "== $1: $3 ($2 s)"; }

# The GPU's name, as the doctor or its driver has it.
gpu() {
    name=$(sed -n 's/^\(CUDA\|ROCM\):0 \([^,]*\).*/\2/p' logs/doctor.log 2>/dev/null | head -n 1)
    echo "${name:-no GPU}"
}
page() {
    slug=$(gpu | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9][^a-z0-9]*/-/g; s/^-//; s/-$//')
    file=results/$(date +%Y-%m-%d)-$slug.md
    # Medians of criterion's, in nanoseconds.
    find "$CRITERION_HOME" -path '*/new/benchmark.json' | while read -r about; do
        id=$(sed -n 's/.*"group_id":"\([^"]*\)".*"function_id":"\([^"]*\)".*/\1\t\2/p' "$about")
        median='s/.*"median":{"confidence_interval":{[^}]*},"point_estimate":\([^,]*\),.*/\1/p'
        printf '%s\t%s\n' "$id" "$(sed -n "$median" "$(dirname "$about")/estimates.json")"
    done >logs/measured.tsv
    # The peers' are lines of JSON, in seconds.
    cat "$CRITERION_HOME"/peers-*.jsonl "$CRITERION_HOME"/peers-*.new 2>/dev/null |
        sed -n 's/.*"id": *"\([^"]*\)".*"who": *"\([^"]*\)".*"seconds": *\([0-9.e+-]*\).*/\1\t\2\t\3/p' >logs/peers.tsv
    {
        echo "# $(gpu), $(date +%Y-%m-%d)"
        echo
        echo "Written by \`first.sh\`, commit $(cat COMMIT), on $(uname -srm)."
        [ "$BOWSTRING_BENCH" = tiny ] && printf '\n**Tiny inputs: no figure of the benches means anything.**\n'
        awk -f page.awk -v tiny="$BOWSTRING_BENCH" logs/steps.tsv logs/measured.tsv logs/peers.tsv predictions.tsv
        printf '\n## What the doctor says\n\n```\n'
        cat logs/doctor.log 2>/dev/null
        printf '```\n'
        for log in logs/equivalence.log logs/driver.log logs/memcheck.log logs/racecheck.log; do
            [ -s "$log" ] || continue
            printf '\n## The end of %s\n\n```\n' "$(basename "$log" .log)"
            grep -E '^(devices:|cuda:|rocm:|test result:|test .*FAILED|========= ERROR SUMMARY|.*panicked at)' "$log" | tail -n 40
            printf '```\n'
        done
    } >"$file.new"
    mv "$file.new" "$file"
}

# A step: its name, its part of the time in hundredths, and what to run.
step() {
    name=$1 part=$2
    shift 2
    bound=$((limit * part / 100)) rest=$(left)
    [ "$bound" -gt "$rest" ] && bound=$rest
    if [ "$bound" -lt 2 ]; then
        say "$name" 0 "not run: no time was left"
        return
    fi
    from=$(date +%s)
    timeout -k 3 "$bound" "$@" >"logs/$name.log" 2>&1 </dev/null
    code=$?
    took=$(($(date +%s) - from))
    case $code in
    0) say "$name" "$took" "done" ;;
    124 | 137) say "$name" "$took" "cut after its $bound s" ;;
    *) say "$name" "$took" "FAILED with $code: $(grep -v '^$' "logs/$name.log" | tail -n 1 | cut -c 1-150 | tr '\t|' '  ')" ;;
    esac
    page
}

# Every bench that there is a prediction for, one after the other.
predicted() {
    tail -n +2 predictions.tsv | cut -f 2,3 | while read -r id rows; do
        [ "$id" = - ] && continue
        operation=${id%%/*}
        few=5000
        case $operation in
        less_than | three_terms) operation=expressions ;;
        tpch_q6) operation=expressions few=20000 ;;
        null_count) few=20000 ;;
        esac
        case $id in
        cast/*/utf8-largeutf8/*) ;;
        cast/*/utf8-* | cast/*-utf8/*) operation=written ;;
        esac
        [ "$BOWSTRING_BENCH" = tiny ] && id=$(echo "$id" | sed "s#/$rows/#/$few/#")
        [ "${BOWSTRING_REQUIRE}" = rocm ] && id=$(echo "$id" | sed 's#/cuda/#/rocm/#')
        [ -x "bench-$operation" ] || continue
        "./bench-$operation" --bench "$id" || echo "failed: $id"
    done
}
[ "$1" = --predicted ] && { predicted; exit; }
[ "$1" = --page ] && { page; exit; }

rm -f logs/* results/doctor.json
echo "commit $(cat COMMIT), on $(uname -srm), $(nproc) processors, $limit s"
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
few=3
[ "$BOWSTRING_BENCH" = tiny ] && few=1
step doctor 20 ./doctor --devices 1 --budget $((limit * 17 / 100)) --json results/doctor.json
cat logs/doctor.log
step driver 6 ./test-bowstring installed
BOWSTRING_CASES=${BOWSTRING_CASES-$few} step equivalence 20 ./test-it equivalence_ driver::equivalence small_batches expressions:: texts:: terms::
if command -v compute-sanitizer >/dev/null; then
    export BOWSTRING_CASES=1
    for tool in memcheck racecheck; do
        step $tool 8 compute-sanitizer --tool $tool --error-exitcode 9 \
            ./test-it equivalence_nulls equivalence_filter equivalence_take --test-threads 1
    done
    unset BOWSTRING_CASES
else
    say sanitizer 0 "not run: there is no compute-sanitizer"
fi
step benches 30 "$0" --predicted
step peers 20 env PEERS_CPU=0 ./run.sh --peers /268435456/ /134217728/
# Suites that were left over, if there is time.
step suites 100 ./test-it --skip circles:: --skip layers:: --skip languages:: --skip readme:: --skip costs:: --skip doctor::fakes
page
echo "results: $PWD/$file"
! cut -f 3 logs/steps.tsv | grep -q '^FAILED'
