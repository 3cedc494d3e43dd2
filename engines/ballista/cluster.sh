#!/usr/bin/env bash
# Starts Ballista's scheduler and two of our executors, each a process of its own on free ports of this
# machine, and lets Ballista's client run TPC-H queries. Fails unless the answers equal DataFusion's and both
# executors ran our operators. All processes end with the script.
#
#   cluster.sh [QUERY...]    runs these of the 22 queries (1 3 6 12 14), and ends
#   cluster.sh --keep        runs no query; the cluster stays until Ctrl-C
#
# DEVICE is the device of the executors' stages (cpu), SCALE the tables' scale factor (0.1). With ROUNDS,
# queries are measured, and their answers not compared. LOSE kills the second executor after so many seconds
# of the queries, which must answer without it. PROGRAMS is the folder with the built programs; without it,
# cargo builds them.
set -euo pipefail
cd "$(dirname "$0")/.."

keep=
if [ "${1-}" = --keep ]; then keep=yes; shift; fi
queries=("${@:-}")
[ -n "${queries[0]}" ] || queries=(1 3 6 12 14)

programs=${PROGRAMS:-}
if [ -z "$programs" ]; then
    cargo build --release --locked --workspace --bins --examples
    programs=${CARGO_TARGET_DIR:-target}/release
fi

work=$(mktemp -d)
processes=()
end() {
    local code=$?
    trap - EXIT
    [ ${#processes[@]} -eq 0 ] || kill "${processes[@]}" 2>/dev/null || true
    wait || true
    if [ $code -ne 0 ] && [ $code -ne 130 ]; then tail -n 20 "$work"/*.log >&2 || true; fi
    rm -rf "$work"
    exit $code
}
trap end EXIT
trap 'exit 130' INT TERM

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Below the range from which systems take the ports of outgoing connections.
port=$((20000 + RANDOM % 10000))
free_port() {
    port=$((port + 1))
    while listens $port; do port=$((port + 1)); done
}

# start NAME PORT PROGRAM ARGUMENT...: a process in the background, its log in NAME.log, until it listens on
# PORT.
start() {
    local name=$1 at=$2
    shift 2
    "$@" >"$work/$name.log" 2>&1 &
    processes+=($!)
    for _ in $(seq 150); do
        listens "$at" && return
        kill -0 $! 2>/dev/null || break
        sleep 0.2
    done
    echo "$name has not started" >&2
    exit 1
}

free_port; scheduler=$port
start scheduler $scheduler "$programs/examples/scheduler" --bind-host 127.0.0.1 --bind-port $scheduler \
    --task-distribution round-robin ${LOSE:+--executor-timeout-seconds 10 --expire-dead-executor-interval-seconds 2}
for executor in one two; do
    mkdir "$work/$executor"
    free_port; flight=$port; free_port; grpc=$port; free_port; health=$port
    start $executor $flight "$programs/bowstring-executor" --device "${DEVICE:-cpu}" --option always=true \
        --scheduler-host 127.0.0.1 --scheduler-port $scheduler --bind-host 127.0.0.1 --bind-port $flight \
        --bind-grpc-port $grpc --bind-health-port $health --vcores 2 --work-dir "$work/$executor" \
        ${LOSE:+--executor-heartbeat-interval-seconds 2}
done
echo "scheduler on 127.0.0.1:$scheduler, executors one and two; logs in $work"
if [ -n "$keep" ]; then
    echo "stays until Ctrl-C"
    wait "${processes[0]}"
    exit
fi

client=("$programs/examples/client" --scheduler 127.0.0.1:$scheduler --tables "$work/tables" --remote-shuffle)
# The tables are there before the time of LOSE begins.
timeout 150 "${client[@]}" --make "${SCALE:-0.1}" --query=6 >/dev/null
how=(--check) seconds=150
[ -z "${ROUNDS:-}" ] || { how=(--rounds "$ROUNDS"); seconds=1800; }
if [ -n "${LOSE:-}" ]; then
    (sleep "$LOSE" && kill -9 "${processes[2]}") &
    processes+=($!)
fi
timeout $seconds "${client[@]}" "${how[@]}" "${queries[@]/#/--query=}"
if [ -n "${LOSE:-}" ]; then
    ! kill -0 "${processes[2]}" 2>/dev/null || { echo "the queries ended before executor two was lost" >&2; exit 1; }
    echo "executor two was lost, and all queries have answers"
fi
for executor in one two; do
    tasks=$(grep -c 'bowstring: task .* operators on' "$work/$executor.log" || true)
    echo "executor $executor: $tasks tasks with operators of ours"
    [ "$tasks" -gt 0 ]
done
