#!/usr/bin/env bash
# Installs the C library: header, shared and static library, pkg-config file.
#
#   cargo rustc --profile dist -p bowstring-capi --lib --crate-type cdylib,staticlib
#   capi/install.sh [PREFIX [BUILT]]
#
# `cargo build` would make Rust's own kind of library too, and that cannot be optimised as a whole.
# PREFIX is /usr/local unless said otherwise, BUILT the folder that cargo built into (target/dist). DESTDIR, if set,
# goes before every path that is written to, but not into the pkg-config file.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-/usr/local}
built=${2:-$here/../target/dist}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml" | head -n 1)
lib=${DESTDIR:-}$prefix/lib
include=${DESTDIR:-}$prefix/include

install -d "$lib/pkgconfig" "$include"
install -m 644 "$here/include/bowstring.h" "$include/"
install -s -m 755 "$built/libbowstring_c.so" "$lib/libbowstring.so.$version"
ln -sf "libbowstring.so.$version" "$lib/libbowstring.so.${version%%.*}"
ln -sf "libbowstring.so.$version" "$lib/libbowstring.so"
install -m 644 "$built/libbowstring_c.a" "$lib/libbowstring.a"
# What Rust's standard library needs of the system where it is linked statically.
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" -e 's|@private@|-lpthread -ldl -lm -lgcc_s|' \
    "$here/bowstring.pc.in" >"$lib/pkgconfig/bowstring.pc"
echo "installed bowstring $version to $prefix"
