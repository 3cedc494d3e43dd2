#!/usr/bin/env bash
# Compiles and runs `async_arrow.cpp` with an installed bowstring and the Arrow C++ in the pyarrow of a
# Python. Also compiles and runs `async_hostile.c`, which needs no Arrow.
#
#   capi/tests/async_arrow.sh PREFIX [PYTHON [ROUNDS [WRAPPER...]]]
#
# WRAPPER is the command that runs the programs, such as valgrind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$1
arrow=$("${2:-python3}" -c 'import os, pyarrow; print(os.path.dirname(pyarrow.__file__))')
program=$(mktemp -d)/async_arrow
c++ -std=c++20 -Wall -Wextra -Werror -g -O1 -o "$program" "$here/async_arrow.cpp" -I"$prefix/include" \
    -isystem "$arrow/include" -L"$prefix/lib" -lbowstring "$arrow"/libarrow.so.* -pthread \
    -Wl,-rpath,"$prefix/lib" -Wl,-rpath,"$arrow"
"${@:4}" "$program" "${3:-20}"
cc -std=c11 -Wall -Wextra -Werror -g -O1 -o "$program" "$here/async_hostile.c" -I"$prefix/include" -L"$prefix/lib" \
    -lbowstring -Wl,-rpath,"$prefix/lib"
"${@:4}" "$program"
rm -r "$(dirname "$program")"
