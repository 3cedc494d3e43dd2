#!/bin/sh
# Stands in for rustc (`RUSTC_WRAPPER`): compiles the changed copies of host/ and kernels/src when cargo asks
# for these folders, and all else unchanged.
rustc=$1
shift
for argument; do
    shift
    case $argument in
        host/lib.rs | kernels/src/lib.rs) argument=$BOWSTRING_MUTANTS/$argument ;;
    esac
    set -- "$@" "$argument"
done
exec "$rustc" "$@"
