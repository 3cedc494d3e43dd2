#!/bin/sh
# Uses the first ten minutes on a machine with a GPU, with the most valuable steps first: the doctor (every
# kernel with its registers and memory, the cost of small things, answers, speed), the suites of
# equivalence, the sanitizer, the benches with predictions, and their peers. It needs no Rust, no network and
# no Python, and uses what the machine has.
#   ./first.sh                        writes results/DATE-GPU.md, with every prediction beside the
#                                     measurement, and results.tar.xz to send
#   ./first.sh --shared               runs even if others use the GPU; then the figures mean less
#   FIRST_SECONDS=120 ./first.sh      takes less time
#   BOWSTRING_BENCH=tiny ./first.sh   uses tiny inputs, to see whether it runs; the figures mean nothing
#   ./first.sh --wrong NAME           repeats a test and interprets each launch too; the first launch that
#                                     differs is in results/wrong-launch-*.txt
#   BOWSTRING_REQUIRE=rocm ./first.sh chooses AMD's GPU; otherwise it takes NVIDIA's if the machine has one
# A step that takes longer than its part is cut and named. The page is written anew after each step, and the
# bundle also if the script is stopped, so no result is lost.
cd "$(dirname "$0")" || exit 1
here=$PWD
limit=${FIRST_SECONDS:-570}
began=$(date +%s)
export RUST_BACKTRACE=1 BOWSTRING_BENCH="${BOWSTRING_BENCH-full}" CRITERION_HOME="$PWD/criterion"
# Makes a fault an error, if ROCm is new enough; ROCm cannot do that while it writes core dumps.
export HIP_SKIP_ABORT_ON_GPU_ERROR=1 AMD_LOG_LEVEL="${AMD_LOG_LEVEL-1}"
ulimit -c 0
mkdir -p results logs "$CRITERION_HOME"

# Checks that these programs can run on this machine, and says why not in better words than the loader.
can_run() {
    built=$(cat ARCH 2>/dev/null) needs=$(cat GLIBC 2>/dev/null)
    if [ -n "$built" ] && [ "$built" != "$(uname -m)" ]; then
        echo "This archive is for $built, this machine is $(uname -m): build one with TARGET=$(uname -m)-unknown-linux-gnu tests/archive/build.sh."
        return 1
    fi
    has=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)
    oldest=$(printf '%s\n%s\n' "${has:-0}" "${needs:-0}" | sort -V | head -n 1)
    if [ "$oldest" != "${needs:-0}" ]; then
        echo "This archive needs glibc $needs, this machine has ${has:-none}: run it in a container of a newer system (ubuntu:22.04), or build"
        echo "it for an older one: pip install cargo-zigbuild, then GLIBC=2.28 tests/archive/build.sh."
        return 1
    fi
}

left() { echo $((began + limit - $(date +%s))); }
say() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>logs/steps.tsv; echo "== $1: $3 ($2 s)"; }

# Counts the GPUs of a kind that the library finds.
count() {
    timeout -k 3 60 ./doctor --budget 40 --only "$1" 2>/dev/null | sed -n 's/.*"devices": \([0-9][0-9]*\).*/\1/p' | tail -n 1
}
# Finds the kind of GPU: NVIDIA's, else AMD's.
which_kind() {
    if [ "$(count cuda)" -gt 0 ] 2>/dev/null; then echo cuda
    elif [ "$(count rocm)" -gt 0 ] 2>/dev/null || [ -e /dev/kfd ]; then echo rocm
    else echo cuda; fi
}
# Says how much of the GPU others use; prints nothing if it is at most a tenth.
in_use() {
    if [ "$BOWSTRING_REQUIRE" = cuda ] && command -v nvidia-smi >/dev/null; then
        # Divided GPUs have no figures: they say [N/A].
        gpu=${CUDA_VISIBLE_DEVICES:-0}
        timeout 30 nvidia-smi -i "${gpu%%,*}" --query-gpu=utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits 2>/dev/null |
            tr -d ' ' | awk -F , '$1 + 0 > 10 { print $1 " % busy" } $3 + 0 > 0 && 10 * $2 > $3 + 0 { print $2 " of " $3 " MiB in use" }'
    elif [ "$BOWSTRING_REQUIRE" = rocm ]; then
        for card in /sys/class/drm/card*/device; do
            [ -e "$card/mem_info_vram_total" ] || continue
            echo "$(cat "$card/gpu_busy_percent" 2>/dev/null || echo 0),$(cat "$card/mem_info_vram_used"),$(cat "$card/mem_info_vram_total")"
            break
        done | awk -F , '$1 > 10 { print $1 " % busy" } $3 > 0 && 10 * $2 > $3 { print $2 " of " $3 " bytes in use" }'
    fi
}

# Prints the GPU's name from the doctor's page.
gpu() {
    name=$(sed -n 's/^\(CUDA\|ROCM\|ROCm\):0 \([^,]*\).*/\2/p' logs/doctor.log 2>/dev/null | head -n 1)
    echo "${name:-no GPU}"
}
page() {
    slug=$(gpu | tr 'A-Z' 'a-z' | sed 's/[^a-z0-9][^a-z0-9]*/-/g; s/^-//; s/-$//')
    file=results/$(date +%Y-%m-%d)-$slug.md
    # Criterion's medians, in nanoseconds.
    find "$CRITERION_HOME" -path '*/new/benchmark.json' | while read -r about; do
        id=$(sed -n 's/.*"group_id":"\([^"]*\)".*"function_id":"\([^"]*\)".*/\1\t\2/p' "$about")
        median='s/.*"median":{"confidence_interval":{[^}]*},"point_estimate":\([^,]*\),.*/\1/p'
        printf '%s\t%s\n' "$id" "$(sed -n "$median" "$(dirname "$about")/estimates.json")"
    done >logs/measured.tsv
    # The peers' results are lines of JSON, in seconds.
    cat "$CRITERION_HOME"/peers-*.jsonl "$CRITERION_HOME"/peers-*.new 2>/dev/null |
        sed -n 's/.*"id": *"\([^"]*\)".*"who": *"\([^"]*\)".*"seconds": *\([0-9.e+-]*\).*/\1\t\2\t\3/p' >logs/peers.tsv
    # GB/s of a copy within the GPU. It scales the predictions, which are for an H200.
    copy=$(sed -n 's/^ *copy within  *[0-9.]* [^ ]*  *\([0-9.]*\) .*/\1/p' logs/doctor.log 2>/dev/null | tail -n 1)
    {
        echo "# $(gpu), $(date +%Y-%m-%d)"
        echo
        echo "Written by \`first.sh\`, commit $(cat COMMIT), on $(uname -srm)."
        [ "$BOWSTRING_BENCH" = tiny ] && printf '\n**Tiny inputs: no figure of the benches means anything.**\n'
        [ -s logs/shared ] && printf '\n**The GPU was shared: %s.**\n' "$(paste -s -d , logs/shared)"
        awk -f page.awk -v tiny="$BOWSTRING_BENCH" -v gpu="$(gpu)" -v copy="$copy" logs/steps.tsv logs/measured.tsv logs/peers.tsv predictions.tsv
        printf '\n## What the doctor says\n\n```\n'
        cat logs/doctor.log 2>/dev/null
        printf '```\n'
        for log in logs/equivalence.log logs/wrong.log logs/driver.log logs/memcheck.log logs/synccheck.log; do
            [ -s "$log" ] || continue
            printf '\n## The end of %s\n\n```\n' "$(basename "$log" .log)"
            grep -E '^(devices:|cuda:|rocm:|test result:|test .*FAILED|========= ERROR SUMMARY|.*panicked at|.* launches as interpreted|.* waves, as )' "$log" | tail -n 40
            printf '```\n'
        done
    } >"$file.new"
    mv "$file.new" "$file"
}

# Keeps the output of the machine's and drivers' own programs, each in a file, if they exist.
about() {
    uname -a >logs/machine.log
    cat /etc/os-release /proc/driver/nvidia/version /sys/module/amdgpu/version >>logs/machine.log 2>/dev/null
    { env | grep -E '^(CUDA|NVIDIA|HIP|ROCR|HSA|AMD|LD_|BOWSTRING)' && ldd ./doctor; } >>logs/machine.log 2>&1
    for words in 'nvidia-smi -q' 'nvidia-smi topo -m' rocminfo 'rocm-smi -a' lscpu; do
        command -v "${words%% *}" >/dev/null || continue
        # shellcheck disable=SC2086
        timeout -k 3 20 $words >"logs/$(echo "$words" | tr ' ' '_').log" 2>&1
    done
}
bundle() {
    timeout 10 dmesg 2>/dev/null | grep -i 'xid\|nvrm\|amdgpu' | tail -n 200 >logs/dmesg.log
    compress=xz name=results.tar.xz
    command -v xz >/dev/null || compress=gzip name=results.tar.gz
    tar -cf - COMMIT results logs | $compress >"$name.new" && mv "$name.new" "$name"
    echo "to send: $here/$name"
}
# Runs at every kind of end: stops the running step, writes the page, and bundles all results.
finish() {
    trap '' INT TERM
    [ -n "$running" ] && kill "$running" 2>/dev/null
    page
    bundle
    echo "results: $here/$file"
}

# Runs a step, given its name, its part of the time in hundredths, and its command.
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
    # The command runs in the background, so that the shell handles signals meanwhile.
    timeout -k 3 "$bound" "$@" >"logs/$name.log" 2>&1 </dev/null &
    running=$!
    wait "$running"
    code=$?
    running=
    took=$(($(date +%s) - from))
    case $code in
    0) say "$name" "$took" "done" ;;
    124 | 137) say "$name" "$took" "cut after its $bound s" ;;
    *) say "$name" "$took" "FAILED with $code: $(grep -v '^$' "logs/$name.log" | tail -n 1 | cut -c 1-150 | tr '\t|' '  ')" ;;
    esac
    page
}

# Prints each predicted id with its bench; for tiny inputs the id has fewer rows.
bench_of() {
    awk -F '\t' -v tiny="$BOWSTRING_BENCH" -v kind="$BOWSTRING_REQUIRE" 'NR > 1 {
        id = $2; bench = id; sub("/.*", "", bench); few = 5000
        if (bench == "tpch_q6" || bench == "null_count") few = 20000
        if (bench ~ /^(less_than|three_terms|tpch_q6)$/) bench = "expressions"
        if (bench ~ /^(less_than_column|add_itself|add_constant|two_operators|five_operators)$/) bench = "calculations"
        if (id ~ /^cast\/.*\/(utf8-|[^\/]*-utf8\/)/ && id !~ /\/utf8-largeutf8\//) bench = "written"
        if (tiny == "tiny") sub("/" $3 "/", "/" few "/", id)
        if (kind == "rocm") sub("/cuda/", "/rocm/", id)
        print bench "\t" $1 "\t" id
    }' predictions.tsv
}
# One bench of each kind; these run first.
best='^(filter Int32, 50 % uniform|take Int32, random|cast Int64 to Int32, nulls|cast Int64, 8 digits to Utf8|a < k, Int32|null_count|TPC-H Q6, .*)$'
# Runs every bench with a prediction: one process for each executable, with all its ids.
predicted() {
    bench_of >logs/ids.tsv
    for round in best rest; do
        for bench in filter take cast expressions calculations written null_count; do
            [ -x "bench-$bench" ] || continue
            ids=$(awk -F '\t' -v bench="$bench" -v best="$best" -v round="$round" \
                '$1 == bench && ($2 ~ best) == (round == "best") { printf "%s%s", sep, $3; sep = "|" }' logs/ids.tsv)
            [ -z "$ids" ] || "./bench-$bench" --bench "$ids" || echo "failed: $bench"
        done
    done
}
[ "$1" = --predicted ] && { predicted; exit; }

# Repeats a test with a witness: the interpreter runs each launch first. A launch that differs runs a second
# time, from the file.
wrong() {
    rm -f results/wrong-launch-*.txt results/launches.txt
    BOWSTRING_WITNESS="$here/results" ./test-it --exact "$1" --nocapture --test-threads 1
    cat results/launches.txt 2>/dev/null || echo "no launch was seen"
    for file in results/wrong-launch-*.txt; do
        [ -e "$file" ] && ./run.sh --replay "$file"
    done
    true
}
[ "$1" = --wrong ] && { wrong "$2"; exit; }
# Gives the first test that failed in the named step a step of its own.
witness() {
    test=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "logs/$1.log" | head -n 1)
    [ -z "$test" ] || [ -e logs/wrong.log ] || step wrong 10 "$here/first.sh" --wrong "$test"
}

can_run || exit 1
[ "$1" = --page ] && { page; exit; }
rm -f logs/* results/doctor.json
[ -n "$BOWSTRING_REQUIRE" ] || BOWSTRING_REQUIRE=$(which_kind)
export BOWSTRING_REQUIRE
in_use >logs/shared
if [ -s logs/shared ] && [ "$1" != --shared ]; then
    echo "The GPU is used by somebody else ($(paste -s -d , logs/shared)): ./first.sh --shared runs all the same."
    exit 1
fi
running='' file=''
trap finish EXIT
trap 'exit 130' INT TERM HUP

echo "commit $(cat COMMIT), on $(uname -srm), $(nproc) processors, $BOWSTRING_REQUIRE, $limit s"
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
about
few=3
[ "$BOWSTRING_BENCH" = tiny ] && few=1
# If a GPU does not answer, the doctor waits for a tenth more than its budget, and ten seconds.
step doctor 20 ./doctor --devices 1 --budget $((limit * 15 / 100)) --json results/doctor.json
cat logs/doctor.log
step driver 6 ./test-bowstring installed
BOWSTRING_CASES=${BOWSTRING_CASES-$few} step equivalence 20 ./test-it equivalence_ driver::equivalence small_batches expressions:: texts:: terms::
witness equivalence
if command -v compute-sanitizer >/dev/null; then
    # The sanitizer would take memory that the pool keeps for live. The kernels use no shared memory, so
    # racecheck has nothing to find; synccheck checks that all lanes reach the operations of whole waves.
    export BOWSTRING_CASES=1 BOWSTRING_KEEP=0
    step memcheck 8 compute-sanitizer --tool memcheck --track-stream-ordered-races=all --error-exitcode 9 \
        ./test-it equivalence_nulls equivalence_filter equivalence_take --test-threads 1
    step synccheck 5 compute-sanitizer --tool synccheck --error-exitcode 9 \
        ./test-it equivalence_nulls equivalence_filter equivalence_take --test-threads 1
    unset BOWSTRING_CASES BOWSTRING_KEEP
else
    say sanitizer 0 "not run: there is no compute-sanitizer"
fi
step benches 35 "$here/first.sh" --predicted
step peers 20 env PEERS_CPU=0 ./run.sh --peers /268435456/ /134217728/
# The remaining suites, if time is left.
step suites 100 ./test-it --skip circles:: --skip layers:: --skip languages:: --skip readme:: --skip costs:: --skip doctor::fakes --skip doctor::apart
witness suites
! cut -f 3 logs/steps.tsv | grep -q '^FAILED'
