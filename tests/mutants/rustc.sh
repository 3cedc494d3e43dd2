#!/bin/sh
# Stands in for rustc (`RUSTC_WRAPPER`): compiles the changed copy of host/ where cargo asks for host/, all else as it is.
rustc=$1
shift
for argument; do
    shift
    [ "$argument" = host/lib.rs ] && argument=$BOWSTRING_MUTANTS_HOST/lib.rs
    set -- "$@" "$argument"
done
exec "$rustc" "$@"
