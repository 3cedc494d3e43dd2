# Checks of the device images, of the interpreters that run them, of what is predicted from them, and of
# the packages.

check images "the archives of device images are what their manifests say, and not too large"
check_images() {
    python3 -m unittest discover -s ptx
    python3 ptx/images.py check
}

check authority "the AMD interpreter against tinygrad's decoder, AMD's pseudo-code and LLVM, in BOWSTRING_AMD_CASES waves"
check_authority() {
    if ! concerned lab/amd lab/races; then
        echo "not run: tools/check authority runs it"
        return
    fi
    command -v llvm-mc-22 >/dev/null || packages llvm-22
    once venv
    pip -r lab/amd/authority/requirements.txt
    cargo build --locked --example amdi
    "$work/venv/bin/python" -m unittest discover -s lab/amd/authority 2>&1 | tee "$work/authority.log"
}

check report "the report of a bench and of peers with tiny inputs, whose figures mean nothing; the report's own tests"
check_report() {
    once standins
    once package
    pip -r benches/requirements.txt
    "$work/venv/bin/python" -m unittest discover -s benches
    rm -rf "$work/criterion" "$work/report"
    BOWSTRING_BENCH=tiny CRITERION_HOME=$work/criterion LD_LIBRARY_PATH=$work/both \
        cargo test --locked --bench filter -- --bench >"$work/benches.log" 2>&1 ||
        { tail -n 40 "$work/benches.log"; exit 1; }
    BOWSTRING_BENCH=tiny "$work/venv/bin/python" benches/peers/cpu.py >"$work/criterion/peers-cpu.jsonl"
    "$work/venv/bin/python" benches/report.py --criterion "$work/criterion" --out "$work/report" --machine ci
}

# The packed crates form a workspace with our profiles, Cargo.lock and target folder. Tests and the Python
# package turn features of dependencies on here, so the Python package is a member there, too, and no
# dependency is compiled again.
check publish "the crates that are published, all but the upload: their packages alone compile, with all that uses them"
check_publish() {
    rm -rf target/package
    cargo publish --dry-run --locked --allow-dirty --no-verify --workspace 2>&1 | grep -E '^ *(Packaged|Uploading|error)'
    cargo metadata --locked --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    asked = ["description", "license", "readme", "keywords", "categories", "rust_version"]
    if package["publish"] is None and (missing := [what for what in asked if not package[what]]):
        sys.exit(package["name"] + " lacks " + ", ".join(missing))
'
    local packed=$work/packages crate folder
    rm -rf "$packed"
    mkdir -p "$packed/python" "$packed/docs"
    # -m: packed files have one old time, by which cargo would not see what changed since another run.
    for crate in target/package/tmp-crate/*.crate; do tar xzmf "$crate" -C "$packed"; done
    cp -r python/src "$packed/python"
    cp -r examples "$packed"
    cp -r docs/programs "$packed/docs"
    sed -i -E 's/\{ path = "\.\.(|\/doctor)" \}/"0.1.0"/' "$packed/examples/Cargo.toml"
    sed -E 's/path = "\.\.(|\/doctor)", //' python/Cargo.toml >"$packed/python/Cargo.toml"
    {
        printf '[workspace]\nmembers = ["bowstring-*", "python", "examples"]\nresolver = "3"\n\n[patch.crates-io]\n'
        for crate in "$packed"/bowstring-*; do
            folder=${crate##*/}
            echo "${folder%-*} = { path = \"$folder\" }"
        done
        echo
        sed -nE '/^\[(workspace\.(package|lints)|profile\.dev[].])/,/^$/p' Cargo.toml
    } >"$packed/Cargo.toml"
    cp Cargo.lock "$packed"
    export CARGO_TARGET_DIR=$PWD/target
    # The compiler reads every file that a crate includes. Code of the same sources has run in other checks.
    cargo check --offline --manifest-path "$packed/Cargo.toml" --workspace --lib --examples
    unset CARGO_TARGET_DIR
    rm -rf target/package "$packed"
}

check predictions "the predictions for a GPU follow from the tables of what the kernels cost"
check_predictions() {
    python3 benches/predict.py --check || { echo "the predictions are stale: tools/bless predictions"; exit 1; }
}

# The checked-in images must be those that the sources give. Their bytes depend on the compiler, which the
# manifests name; another compiler is no failure of the change. Only the archives' contents are compared,
# because another version of the compressor makes other archives. In CI (RECENT=1) only of the families that
# changed lately and a sample, for some of the architectures each day: ptx/recent.py.
check rebuild "the device images, built anew and compared with those that are checked in; FAMILIES restricts it"
check_rebuild() {
    # A developer may have a nightly compiler instead: ptx/build.sh looks for it.
    if [ "${CI:-}" = true ] && ! /usr/bin/rustc --version 2>/dev/null | grep -q 'rustc 1\.9[6-9]'; then
        packages rustc-web cargo-web rust-web-src rust-web-llvm lld-22
    fi
    local rebuilt=$work/images families declared family
    rm -rf "$rebuilt"
    declared=$(python3 ptx/images.py families)
    [ "$declared" = "$(basename -s .manifest ptx/images/*.manifest | LC_ALL=C sort)" ] ||
        { echo "ptx/images has other families than kernels/src: tools/bless images"; exit 1; }
    families=${FAMILIES:-$declared}
    if [ "${RECENT:-}" = 1 ]; then
        families=$(python3 ptx/recent.py families)
        ARCHES=$(parts_of_today "sm_75 gfx11-generic" "gfx90a gfx12-generic" "gfx942 gfx9-4-generic gfx10-3-generic")
        export ARCHES
        # Those of another day are not of this build.
        rm -rf target/device/images
    fi
    FAMILIES=$families ptx/build.sh "$rebuilt"
    compilers() { (cd "$1" && sed -n 's/^compiler //p' $(printf '%s.manifest ' $families) | sort -u); }
    if [ "$(compilers ptx/images)" = "$(compilers "$rebuilt")" ]; then
        for family in $families; do
            # All lines but those of images that were not built.
            awk -v built="${ARCHES:-}" '$1 != "image" || built == "" || index(" " built " ", " " $4 " ")' \
                "ptx/images/$family.manifest" | cmp - "$rebuilt/$family.manifest" ||
                { echo "$family is stale: tools/bless images"; exit 1; }
        done
        echo "every image${ARCHES:+ for $ARCHES} is byte for byte what its source gives, of: "$families
    else
        echo "not compared: built by $(compilers "$rebuilt"), checked in from $(compilers ptx/images)"
    fi
}

check device-code "no image has what a kernel must not have; the table of each entry's costs is right"
check_device-code() {
    if ! concerned ptx/check.sh ptx/static.py ptx/STATIC.md lab/amd; then
        echo "not run: tools/check device-code runs it"
        return
    fi
    command -v llvm-objdump-22 >/dev/null || packages llvm-22
    ptx/check.sh
}
