#!/usr/bin/env bash
# Installs the C library: header, shared and static library, files for pkg-config and CMake.
#
#   cargo rustc --profile dist -p bowstring-capi --lib --crate-type cdylib,staticlib
#   capi/install.sh [--prefix PREFIX] [--libdir LIBDIR] [--built BUILT]
#   capi/install.sh [PREFIX [BUILT]]
#
# `cargo build` would build a Rust library as well, which prevents optimising the library as a whole. PREFIX
# defaults to /usr/local. LIBDIR, inside PREFIX, defaults to lib (Debian's packages use lib/x86_64-linux-gnu).
# BUILT is the folder that cargo built into (target/dist). DESTDIR, if set, is put before every path that is
# written to, and appears in no installed file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=/usr/local libdir=lib built=$here/../target/dist
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; }
plain=()
while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --libdir | --built)
        [ $# -ge 2 ] || { echo "$1 takes a folder" >&2; exit 2; }
        printf -v "${1#--}" %s "$2"
        shift 2 ;;
    --prefix=* | --libdir=* | --built=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    -h | --help) usage; exit ;;
    -*) echo "install.sh: no option $1" >&2; usage >&2; exit 2 ;;
    *) plain+=("$1"); shift ;;
    esac
done
prefix=${plain[0]:-$prefix}
built=${plain[1]:-$built}
[ ${#plain[@]} -le 2 ] || { usage >&2; exit 2; }
for library in libbowstring_c.so libbowstring_c.a; do
    [ -e "$built/$library" ] || { echo "$built has no $library: build it first (--help says how)" >&2; exit 1; }
done

# In the workspace the version is the workspace's; in a published package, the package's.
version=$(cat "$here/Cargo.toml" "$here/../Cargo.toml" 2>/dev/null | sed -n 's/^version = "\(.*\)"/\1/p' | head -n 1 || true)
[ -n "$version" ] || { echo "install.sh: no version in $here/Cargo.toml" >&2; exit 1; }
major=${version%%.*}
# The number in the name that programs ask the loader for: see build.rs.
interface=$major
[ "$major" != 0 ] || interface=0.$(cut -d. -f2 <<<"$version")
root=${DESTDIR:-}$prefix
lib=$root/$libdir
# The system libraries that Rust's standard library needs when it is linked statically.
private='-lpthread -ldl -lm -lgcc_s'
# The path from a folder two levels below LIBDIR back to PREFIX, so that the installation can be moved.
up=../../$(sed -E 's|[^/]+|..|g' <<<"$libdir")
fill() {
    sed -e "s|@prefix@|$prefix|g" -e "s|@libdir@|$libdir|g" -e "s|@version@|$version|g" -e "s|@major@|$major|g" \
        -e "s|@interface@|$interface|g" \
        -e "s|@private@|$private|g" -e "s|@up@|$up|g" "$here/$1" >"$2"
}

install -d "$lib/pkgconfig" "$lib/cmake/bowstring" "$root/include"
install -m 644 "$here/include/bowstring.h" "$root/include/"
install -s -m 755 "$built/libbowstring_c.so" "$lib/libbowstring.so.$version"
ln -sf "libbowstring.so.$version" "$lib/libbowstring.so.$interface"
ln -sf "libbowstring.so.$interface" "$lib/libbowstring.so"
install -m 644 "$built/libbowstring_c.a" "$lib/libbowstring.a"
strip --strip-debug "$lib/libbowstring.a"
fill bowstring.pc.in "$lib/pkgconfig/bowstring.pc"
fill bowstringConfig.cmake.in "$lib/cmake/bowstring/bowstringConfig.cmake"
fill bowstringConfigVersion.cmake.in "$lib/cmake/bowstring/bowstringConfigVersion.cmake"
echo "installed bowstring $version to $root"
