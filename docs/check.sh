#!/usr/bin/env bash
# Builds the book, checks its links, and runs its programs that are not in Rust (`cargo test --test docs` runs
# the Rust ones).
#
#   docs/check.sh PREFIX [PYTHON [MDBOOK]]
#
# PREFIX is the prefix of the installed C library; PYTHON has bowstring, pyarrow, numpy and pytest. The book
# is written to target/book.
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
