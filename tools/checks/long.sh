# Checks that CI leaves out, because they take long or install much. Most take a number; the default is in
# brackets.

check engines "the engines: their tests, TPC-H's answers, a cluster and a bench; an hour, 450 packages"
check_engines() { engines/.ci/run; }

check engines-package "the engines' Python package as its README installs it: another build of 450 packages, then its tests"
check_engines-package() (
    cd engines
    python3 -m venv "$work/engines-venv"
    "$work/engines-venv/bin/pip" install --quiet "./python[test]"
    # The program of that name, unlike `python -m`, does not import the package from the sources.
    "$work/engines-venv/bin/pytest" python
)

check licences "the dependencies' licences and sources (needs cargo-deny)"
check_licences() { cargo deny check; }

check doctor "this machine's devices, and whether they work"
check_doctor() { cargo run --locked --release --example doctor; }

check cases "every operation against its definition, BOWSTRING_CASES random cases for each property (10000)"
check_cases() { BOWSTRING_CASES=${BOWSTRING_CASES:-10000} cargo test --locked --release --test it equivalence; }

check levels "the same with narrower vectors than the CPU has: plain and avx2"
check_levels() {
    local level
    for level in plain avx2; do BOWSTRING_LEVEL=$level cargo test --locked --test it equivalence; done
}

# The last profile has both makers, and no pools.
check versions "the drivers on the stand-in, as each version of CUDA and HIP that it can be"
check_versions() {
    local version
    for version in cuda-11.4 cuda-12.2 cuda-13 hip-6.0 hip-6.3 hip-6.4 hip-7.2 hip-windows cuda-12.2,hip-6.4,no-pools; do
        BOWSTRING_STANDIN=$version cargo test --locked --test it -- driver
    done
}

check older-compilers "what the compilers of CUDA 11.8 and 12.2 make of the PTX: no other spills than known ones"
check_older-compilers() { ptx/older.sh; }

check image-mutants "tests notice changed instructions in the images, of BOWSTRING_MUTANTS (1000)"
check_image-mutants() {
    BOWSTRING_MUTANTS=${BOWSTRING_MUTANTS:-1000} cargo test --locked --test it mutants -- --nocapture
}

check source-mutants "tests notice changed lines in host/ and kernels/, of MUTANTS (150)"
check_source-mutants() {
    once venv
    pip -r tests/mutants/requirements.txt
    "$work/venv/bin/python" tests/mutants/run.py --count "${MUTANTS:-150}"
}

check import-fuzz "the import of struct trees with random changes, BOWSTRING_CASES of them (1000000)"
check_import-fuzz() {
    BOWSTRING_CASES=${BOWSTRING_CASES:-1000000} cargo test --locked --release --test it exchange::fuzz -- --nocapture
}

check fuzz "all foreign input, and programs over it, for BOWSTRING_FUZZ seconds (3600) from BOWSTRING_FUZZ_SEED (1)"
check_fuzz() {
    BOWSTRING_FUZZ=${BOWSTRING_FUZZ:-3600} BOWSTRING_FUZZ_SEED=${BOWSTRING_FUZZ_SEED:-1} \
        cargo test --locked --release --test it fuzz::what -- --nocapture
}

check python-fuzz "CUDA array interfaces with random changes, CASES of them (10000)"
check_python-fuzz() {
    once package
    (cd python && CASES=${CASES:-10000} "$work/venv/bin/pytest" tests/test_fuzz.py)
}

check soak "a mixed load for BOWSTRING_SOAK seconds (3600)"
check_soak() { BOWSTRING_SOAK=${BOWSTRING_SOAK:-3600} cargo test --locked --release --test it soak -- --nocapture; }

check address "AddressSanitizer: the suites, with foreign buffers that end at their last byte (LENGTH=short: a part)"
check_address() { tools/sanitize address ${LENGTH:+"$LENGTH"}; }

check thread "ThreadSanitizer: the tests with several threads, the standard library instrumented (LENGTH=short: a part)"
check_thread() { tools/sanitize thread ${LENGTH:+"$LENGTH"}; }

check jax "exchange with jax by DLPack: half a gigabyte of packages"
check_jax() {
    once package
    pip jax
    (cd python && "$work/venv/bin/pytest" tests/test_neighbours.py)
}

check sedona "asynchronous streams with SedonaDB: 270 packages"
check_sedona() (cd tests/sedona && cargo test --locked)

check_on_gpu cuda "all tests, and a failure if no CUDA device is used (needs a GPU)"
check_cuda() { BOWSTRING_REQUIRE=cuda cargo test --locked --workspace; }

check_on_gpu rocm "all tests, and a failure if no ROCm device is used (needs a GPU)"
check_rocm() { BOWSTRING_REQUIRE=rocm cargo test --locked --workspace; }
