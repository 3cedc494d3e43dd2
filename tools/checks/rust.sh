# Checks of the Rust code: those of minutes, in the order in which CI runs them.

# Everything that `cargo test` builds. Other checks use its libraries, and build nothing else.
built() { cargo test --quiet --locked --workspace --no-run; }

# The library that stands in for CUDA's and HIP's: cuda/ has it under CUDA's name, both/ under both names.
standins() {
    once built
    mkdir -p "$work/cuda" "$work/both"
    for library in cuda/libcuda.so.1 both/libcuda.so.1 both/libamdhip64.so.7; do
        cp target/debug/deps/libbowstring_standin.so "$work/$library"
    done
}

check format "every Rust file has the format that rustfmt gives it"
check_format() { cargo fmt --all --check; }

# The 450 packages of the engines take an hour, so CI runs only this. The check engines does the rest.
check engines-format "the engines' format, and their lock file knows what bowstring depends on"
check_engines-format() (cd engines && cargo fmt --all --check && cargo update --quiet --workspace --locked)

check lints "clippy finds nothing"
check_lints() { cargo clippy --locked --workspace --all-targets -- -D warnings; }

check rustdoc "the documentation of the code builds, and its links lead somewhere"
check_rustdoc() { RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps; }

check tests "all tests in Rust (the README's second command)"
check_tests() (
    # Faults are injected into a third of the operations each day.
    if [ "${RECENT:-}" = 1 ]; then
        BOWSTRING_FAULTS=$(parts_of_today 0 1 2)
        export BOWSTRING_FAULTS
    fi
    cargo test --locked --workspace 2>&1 | tee "$work/tests.log"
)

# A change that concerns neither an image nor an interpreter may still launch a kernel wrongly, so a few
# suites run.
few="equivalence_nulls one_selection_filters_many_arrays the_sixth_query every_test_of_text columns_settle_the_ties several_keys_join integers_and_decimals_fold tpch::"

check ptx "SUITES on the checked-in PTX, interpreted; BOWSTRING_PTX seeds the order of lanes"
check_ptx() {
    local suites=$few
    if concerned lab/ptx lab/races; then
        suites+=" $(parts_of_today "equivalence_" "expressions:: texts:: substrings:: terms:: accumulators" \
            "groups windows frames hash_partitions joins:: tpch::")"
    fi
    BOWSTRING_PTX=${BOWSTRING_PTX:-2} BOWSTRING_CASES=${BOWSTRING_CASES:-2} \
        cargo test --locked --test it -- ${SUITES:-$suites} 2>&1 | tee "$work/ptx.log"
}

check amd "SUITES on the checked-in AMD objects, interpreted; BOWSTRING_AMD seeds the order, BOWSTRING_AMD_ARCH restricts"
check_amd() {
    local suites="equivalence_nulls the_sixth_query"
    if concerned lab/amd lab/races; then
        suites="$few $(parts_of_today "equivalence_expressions" "driver::equivalence texts_with_equal_beginnings" \
            "substrings:: groups::" "accumulators" "windows frames" "hash_partitions joins:: tpch::")"
    fi
    BOWSTRING_STANDIN=hip-7.2 BOWSTRING_AMD=${BOWSTRING_AMD:-2} BOWSTRING_CASES=${BOWSTRING_CASES:-1} \
        cargo test --locked --test it -- ${SUITES:-$suites} 2>&1 | tee "$work/amd.log"
}

# A workspace of its own, whose dependencies have our profiles and features: in our target folder only
# shuttle's are compiled.
check models "threads, events and streams in BOWSTRING_ORDERS random orders (20)"
check_models() (
    export CARGO_TARGET_DIR=$PWD/target BOWSTRING_ORDERS=${BOWSTRING_ORDERS:-20}
    cd tests/models && cargo test --locked --lib model_tests 2>&1 | tail -n 20
)

# A few cases each, and a failure if the library were not used. This is the oldest CUDA that runs the
# kernels.
check installed "SUITES where a library that stands in for CUDA 11.4 is installed; it loads every kernel"
check_installed() (
    once standins
    export LD_LIBRARY_PATH=$work/cuda
    BOWSTRING_STANDIN=cuda-11.4 BOWSTRING_REQUIRE=cuda BOWSTRING_CASES=${BOWSTRING_CASES:-2} \
        cargo test --locked --test it -- ${SUITES:-equivalence_exchange equivalence_nulls small_batches} 2>&1 |
        tee "$work/installed.log"
    cargo test --locked --lib every_kernel_loads
)

check benches "each bench runs once, on the CPU and on the stand-ins for CUDA and HIP"
check_benches() {
    once standins
    LD_LIBRARY_PATH=$work/both cargo test --locked --bench '*' >"$work/benches.log" 2>&1 ||
        { tail -n 40 "$work/benches.log"; exit 1; }
    for device in cpu cuda rocm; do
        echo "$device: $(grep -c "^Testing [a-z_]*/$device/" "$work/benches.log") benches ran"
    done
}

check archive "the archive for a machine with a GPU works on the stand-in, where no Rust is, for ARCHIVE_SECONDS (120)"
check_archive() { tests/archive/rehearse.sh "${ARCHIVE_SECONDS:-120}"; }

check example "the example (the README's first command)"
check_example() { cargo run --locked --example 01-filter; }
