#!/usr/bin/env bash
# Builds the book, follows its links, and runs the programs in it that are not Rust's (`cargo test --test docs` runs those).
#
#   docs/check.sh PREFIX [PYTHON [MDBOOK]]
#
# PREFIX is where the C library is installed; PYTHON has bowstring, pyarrow, numpy and pytest. The book is target/book.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=$1
python=$(command -v "${2:-python3}")
# It is called from another folder; a link stays one, or it would not be that environment's.
case $python in /*) ;; *) python=$PWD/$python ;; esac

"$python" "$here/pictures.py" --check
"${3:-mdbook}" build "$here"
"$python" "$here/links.py" "$here/../target/book"
(cd "$here/src" && "$python" -m pytest -q -p no:cacheprovider --doctest-glob='*.md' .)

arrow=$("$python" -c 'import os, pyarrow; print(os.path.dirname(pyarrow.__file__))')
program=$(mktemp -d)/arrow
c++ -std=c++20 -Wall -Wextra -Werror -o "$program" "$here/programs/arrow.cc" -I"$prefix/include" -isystem "$arrow/include" \
    -L"$prefix/lib" -lbowstring "$arrow"/libarrow.so.* -Wl,-rpath,"$prefix/lib" -Wl,-rpath,"$arrow"
"$program"
rm -r "$(dirname "$program")"
