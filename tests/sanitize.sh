#!/usr/bin/env bash
# The tests with a sanitizer of the compiler's built in; what it finds ends the run, or the process that a test has started.
#   tests/sanitize.sh address [short]    reads and writes outside of memory, or after it was freed
#   tests/sanitize.sh thread [short]     data races
# BOWSTRING_CASES says how many random cases a property has. Each has a target directory of its own, under target/sanitize.
#
# address needs what the tests need. Buffers that strangers hand over end with their last byte then (BOWSTRING_SANITIZED), and
# of the library's own nothing may be touched behind the padding, nor once they are back in their pool (cfg sanitized).
#
# thread needs a standard library that is instrumented too, or its locks would not be seen to order anything: so its sources,
# and a compiler of the same version. On Debian:
#   apt-get install rustc-web cargo-web rust-web-src libclang-rt-22-dev
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-} length=${2:-whole}
case $kind-$length in
address-whole | address-short | thread-whole | thread-short) ;;
*) sed -n '2,4s/^# *//p' tests/sanitize.sh >&2; exit 2 ;;
esac
target=x86_64-unknown-linux-gnu
export RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$PWD/target/sanitize/$kind CARGO_INCREMENTAL=0
mkdir -p "$CARGO_TARGET_DIR"

if [ "$kind" = address ]; then
    export RUSTFLAGS="-Zsanitizer=address --cfg sanitized" BOWSTRING_SANITIZED=1
    # Leaks are counted by the tests themselves; some of their strangers never release what they made.
    export ASAN_OPTIONS=detect_leaks=0
    cargo=(cargo test)
    suites=(equivalence_ exchange:: extents:: fuzz:: nulls soak::)
    [ "$length" = whole ] || suites=(exchange::contents exchange::fuzz exchange::hostile extents:: fuzz:: soak::)
else
    runtime=$(find /usr/lib/llvm-*/lib/clang -name 'libclang_rt.tsan-x86_64.a' | sort -V | tail -n 1)
    [ -n "$runtime" ] || { echo "there is no libclang_rt.tsan: see the top of tests/sanitize.sh" >&2; exit 2; }
    # Debian's compiler comes without the runtime. It stands before all else, so that its functions are found before those that
    # they replace. A shared library takes it from the program, which therefore exports it: hence a linker of our own.
    mkdir -p "$CARGO_TARGET_DIR/bin"
    cat >"$CARGO_TARGET_DIR/bin/cc" <<'END'
#!/usr/bin/env bash
shared=
for argument; do [ "$argument" != -shared ] || shared=yes; done
arguments=()
for argument; do
    case $argument in
    *libclang_rt.tsan*)
        [ -z "$shared" ] || continue
        runtime=${argument#*whole-archive,} && runtime=${runtime%%,*}
        arguments+=("-Wl,--dynamic-list=$runtime.syms")
        ;;
    esac
    arguments+=("$argument")
done
exec /usr/bin/cc "${arguments[@]}"
END
    chmod +x "$CARGO_TARGET_DIR/bin/cc"
    export PATH=$CARGO_TARGET_DIR/bin:$PATH RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
    export RUSTFLAGS="-Zsanitizer=thread -Zexternal-clangrt -Zpre-link-args=-Wl,--whole-archive,$runtime,--no-whole-archive"
    export TSAN_OPTIONS=halt_on_error=1
    cargo=(/usr/bin/cargo test -Zbuild-std)
    # interrupts:: shares every operation of the CPU out among threads.
    suites=(batches:: exchange::async_ exchange::streams faults:: interrupts:: ordering:: soak::)
    [ "$length" = whole ] || suites=(batches:: exchange::streams interrupts:: ordering:: soak::)
fi
[ "$length" = whole ] && cases=8 || cases=2
export BOWSTRING_CASES=${BOWSTRING_CASES:-$cases}
"${cargo[@]}" --locked --target "$target" --test it -- "${suites[@]}"
