# Checks of the C library, the Python package and the documents, whose programs use both.

# The C library, installed in $work/prefix.
prefix() {
    once built
    capi/install.sh "$work/prefix" target/debug/deps
}

# An environment for Python's packages, without ours.
venv() {
    python3 -c 'import ensurepip' 2>/dev/null || packages python3-venv
    python3 -m venv "$work/venv"
}
pip() { "$work/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }

# The Python package and what its tests need: the wheel, if this run has built one, or else the sources.
wheel=
package() {
    once venv
    # pip would keep an older wheel of the same version.
    "$work/venv/bin/pip" uninstall --quiet --yes bowstring 2>/dev/null
    pip "${wheel:-./python}[test]"
}

check c-install "the C library as a package would install it, moved; pkg-config and CMake use it, shared and static"
check_c-install() {
    packages pkg-config cmake
    once built
    capi/tests/installed/check.sh "$work/installed" target/debug/deps
    rm -rf "$work/installed"
}

check c-valgrind "the examples in C and C++ under valgrind"
check_c-valgrind() {
    packages valgrind pkg-config
    once prefix
    local flags example
    flags=$(PKG_CONFIG_PATH=$work/prefix/lib/pkgconfig pkg-config --cflags --libs bowstring)
    cc -std=c11 -Wall -Wextra -Werror -g -o "$work/filter" capi/examples/filter.c $flags
    c++ -std=c++17 -Wall -Wextra -Werror -g -o "$work/streams" capi/examples/streams.cpp $flags
    for example in filter streams; do
        LD_LIBRARY_PATH=$work/prefix/lib valgrind --quiet --error-exitcode=1 --leak-check=full \
            --errors-for-leak-kinds=definite "$work/$example"
    done
}

# One build for all of it: the wheel is made from what the source distribution has.
check wheel "Python's source distribution, a wheel made from it, their sizes, no gathers in it, and that it works alone"
check_wheel() {
    once venv
    pip 'maturin>=1.16,<2'
    local wheels=$work/wheels library bounded file most bytes
    rm -rf "$wheels"
    "$work/venv/bin/maturin" sdist --manifest-path python/Cargo.toml --out "$wheels" >"$work/maturin.log" 2>&1 ||
        { cat "$work/maturin.log"; exit 1; }
    tar xzf "$wheels"/bowstring-*.tar.gz -C "$wheels"
    # With its symbols, which the search for gathers needs. Users get none, so the library is weighed
    # without them.
    sed -i '/^strip = true/d' "$wheels"/bowstring-*/pyproject.toml
    # The lock file is the workspace's. This removes the packages that only members need that are not
    # packed, and changes no version.
    (cd "$wheels"/bowstring-*/ && cargo update --quiet --workspace)
    (cd "$wheels"/bowstring-*/ && CARGO_TARGET_DIR=$wheels/target "$work/venv/bin/maturin" build --locked \
        --profile dist --compression-level 9 --out "$wheels") 2>&1 | tail -n 5
    wheel=$(echo "$wheels"/bowstring-*-cp310-abi3-manylinux*.whl)
    python3 -m zipfile -e "$wheel" "$wheels/inside"
    library=$(echo "$wheels"/inside/bowstring/_bowstring*.so)
    if [ "$(uname -m)" = x86_64 ]; then python3 benches/gathers.py "$library"; fi
    strip "$library"
    python3 -c 'import sys, zipfile, pathlib
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for file in pathlib.Path(sys.argv[2]).rglob("*"):
        out.write(file)' "$wheels/weighed.zip" "$wheels/inside"
    # The aims were 6 and 14 MB. They were met before pickles, the doctor, expressions, casts of text on
    # devices, images for MI300, operations that can be awaited, sorts, groups, joins, windows and spilling.
    local large=
    for bounded in "$wheels/weighed.zip 11400000" "$(echo "$wheels"/bowstring-*.tar.gz) 8000000" "$library 24600000"; do
        read -r file most <<<"$bounded"
        bytes=$(stat -c %s "$file")
        echo "${file##*/}: $bytes bytes of at most $most"
        [ "$bytes" -le "$most" ] || large=yes
    done
    [ -z "$large" ] || exit 1
    python3 -m venv "$work/alone"
    "$work/alone/bin/pip" install --quiet --disable-pip-version-check "$wheel" numpy
    (cd "$wheels" && "$work/alone/bin/python" -c '
import bowstring as bs, numpy as np
taken = bs.take(np.arange(5.0), np.array([4, 0]))
there = taken.to(bs.Device.emulated())
assert np.from_dlpack(bs.cast(there, "Int32").to(bs.Device.cpu())).tolist() == [4, 0]
')
    # Only the wheel stays, for the checks after this one.
    rm -rf "$work/alone" "$wheels"/{target,inside,weighed.zip} "$wheels"/bowstring-*/ "$wheels"/bowstring-*.tar.gz
}

check python "the Python package, with the packages that people have: all its tests"
check_python() {
    once package
    (cd python && "$work/venv/bin/pytest" --doctest-glob=README.md README.md tests)
}

check arrow-cpp "asynchronous streams with the Arrow C++ of pyarrow, then under valgrind"
check_arrow-cpp() {
    packages valgrind
    once prefix
    once package
    capi/tests/async_arrow.sh "$work/prefix" "$work/venv/bin/python" 20
    capi/tests/async_arrow.sh "$work/prefix" "$work/venv/bin/python" 1 valgrind --quiet --error-exitcode=1
}

# The tests in Rust have run the documents' programs in Rust.
check documents "the documents build, their links lead somewhere, their programs in Python and C++ run"
check_documents() {
    once prefix
    once package
    if ! command -v mdbook >/dev/null && [ ! -x "$work/mdbook/bin/mdbook" ]; then
        CARGO_TARGET_DIR=$work/mdbook-build cargo install --quiet --locked --debug --no-default-features \
            --root "$work/mdbook" mdbook@0.5.4
        rm -rf "$work/mdbook-build"
    fi
    PATH=$PATH:$work/mdbook/bin docs/check.sh "$work/prefix" "$work/venv/bin/python"
}

check python-gpus "the Python package on the stand-ins for CUDA and ROCm"
check_python-gpus() {
    once standins
    once package
    (cd python && LD_LIBRARY_PATH=$work/both "$work/venv/bin/pytest" tests/test_cuda_device.py tests/test_cuda_memory.py tests/test_rocm_device.py)
}
