#!/usr/bin/env bash
# Installs the C library like the build of a package, moves the folder, and uses the library there by
# pkg-config and by CMake, shared and static.
#
#   capi/tests/installed/check.sh SCRATCH BUILT
#
# SCRATCH is emptied; BUILT is the folder that cargo built into.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scratch=$1
rm -rf "$scratch"
mkdir -p "$scratch"
scratch=$(cd "$scratch" && pwd)
libdir=lib/$(cc -print-multiarch)
DESTDIR=$scratch/staged "$here/../../install.sh" --prefix /usr --libdir "$libdir" --built "$2"
if grep -rIl "$scratch" "$scratch/staged"; then
    echo "DESTDIR is in what was installed"
    exit 1
fi
mv "$scratch/staged/usr" "$scratch/elsewhere"
lib=$scratch/elsewhere/$libdir

# The link with the interface's number is the name that programs ask the loader for.
shared=$(readlink -f "$lib/libbowstring.so")
soname=$(readelf -d "$shared" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
[ "$(readlink -f "$lib/$soname")" = "$shared" ]
grep -q "IMPORTED_SONAME \"$soname\"" "$lib/cmake/bowstring/bowstringConfig.cmake"
# Before 1.0 a program does not start with the library of another minor version.
[ "$soname" = libbowstring.so.0.1 ]
# The library has no debug information, and exports only the header's functions.
if [[ $(readelf -SW "$shared") == *' .debug_'* ]]; then
    echo "$shared is not stripped"
    exit 1
fi
if nm -D --defined-only "$shared" | awk '{ print $3 }' | grep -v '^bowstring_'; then
    echo "$shared exports what is not in the header"
    exit 1
fi
echo "$(basename "$shared"): $(stat -c %s "$shared") bytes, asked for as $soname"

for kind in shared static; do
    flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --define-variable=prefix="$scratch/elsewhere" --cflags --libs bowstring)
    if [ "$kind" = static ]; then
        flags=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --define-variable=prefix="$scratch/elsewhere" --static --cflags --libs bowstring)
        flags=${flags/-lbowstring/-l:libbowstring.a}
    fi
    cc -std=c11 -o "$scratch/filter-$kind" "$here/../../examples/filter.c" $flags
done
LD_LIBRARY_PATH=$lib "$scratch/filter-shared" | tail -n 1
"$scratch/filter-static" | tail -n 1
if [[ $(readelf -d "$scratch/filter-static") == *libbowstring* ]]; then
    echo "the static program needs the shared library"
    exit 1
fi

cmake -S "$here" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/elsewhere" >"$scratch/cmake.log" ||
    { cat "$scratch/cmake.log"; exit 1; }
cmake --build "$scratch/build" >>"$scratch/cmake.log" || { cat "$scratch/cmake.log"; exit 1; }
ctest --test-dir "$scratch/build" --no-tests=error --output-on-failure | tail -n 3
# CMake does not find a different version of the interface.
mkdir "$scratch/other"
printf 'cmake_minimum_required(VERSION 3.16)\nproject(other C)\nfind_package(bowstring 0.2 REQUIRED)\n' >"$scratch/other/CMakeLists.txt"
if cmake -S "$scratch/other" -B "$scratch/other/build" -DCMAKE_PREFIX_PATH="$scratch/elsewhere" >"$scratch/other/log" 2>&1; then
    echo "find_package took a version that is not there"
    exit 1
fi
grep -q 'version: 0.1' "$scratch/other/log" || { cat "$scratch/other/log"; exit 1; }
