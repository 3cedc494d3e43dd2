#!/usr/bin/env bash
# Runs the tests with a sanitizer. A finding ends the run, or the process that a test has started.
#   tests/sanitize.sh address [short]    reads and writes outside of memory, or after it was freed
#   tests/sanitize.sh thread [short]     data races
# BOWSTRING_CASES is the number of random cases of a property. Each sanitizer has its own target directory, in
# target/sanitize.
#
# address needs what the tests need. It makes imported buffers end with their last byte (BOWSTRING_SANITIZED).
# It also forbids access to the library's own buffers past their padding, and after they are back in their
# pool (cfg sanitized).
#
# thread needs an instrumented standard library, because the sanitizer would not see the order that its locks
# make. So it needs the library's sources, and a compiler of the same version. On Debian:
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
    # The tests count leaks themselves; some of their hostile producers never release what they made.
    export ASAN_OPTIONS=detect_leaks=0
    cargo=(cargo test)
    suites=(equivalence_ exchange:: extents:: fuzz:: nulls soak::)
    [ "$length" = whole ] || suites=(exchange::contents exchange::fuzz exchange::hostile extents:: fuzz:: soak::)
else
    runtime=$(find /usr/lib/llvm-*/lib/clang -name 'libclang_rt.tsan-x86_64.a' | sort -V | tail -n 1)
    [ -n "$runtime" ] || { echo "there is no libclang_rt.tsan: see the top of tests/sanitize.sh" >&2; exit 2; }
    # Debian's compiler does not include the runtime. The runtime comes first on the command line, so that the
    # linker finds its functions before those that they replace. A shared library uses the program's copy,
    # which the program must export: that needs a linker of our own.
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
    # Tests ask for more memory than there is, and expect an error. This allocator gives up to a TiB otherwise.
    export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1:max_allocation_size_mb=4096
    cargo=(/usr/bin/cargo test -Zbuild-std)
    # interrupts:: divides every operation of the CPU among threads.
    suites=(batches:: exchange::async_ exchange::streams faults:: interrupts:: ordering:: soak::)
    [ "$length" = whole ] || suites=(batches:: exchange::streams interrupts:: ordering:: soak::)
fi
[ "$length" = whole ] && cases=8 || cases=2
export BOWSTRING_CASES=${BOWSTRING_CASES:-$cases}
"${cargo[@]}" --locked --target "$target" --test it -- "${suites[@]}"
