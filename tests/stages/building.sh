# shellcheck shell=bash
# The build of the library that all stages but the sanitizers use, and the tests in a build.

plain=$build/plain

configure() { # FOLDER MESON-OPTION...
    local folder=$1
    shift
    if [ -f "$folder/build.ninja" ]; then meson setup --reconfigure "$folder" "$@"; else meson setup "$folder" "$@"; fi
}
compile() { ninja --quiet -C "$1" "${@:2}"; }

# Files that include less than they use are found by the build of the Rust crate, which has no precompiled header and
# builds each source by itself.
build_library() {
    local tests=disabled
    wants library && tests=enabled
    need "configure" configure "$plain" -Dwerror=true -Ddefault_library=both -Db_pch=true -Dtests=$tests \
        --prefix "$build/installed" --libdir lib
    need "build" compile "$plain"
    need "install" meson install -C "$plain" --quiet --no-rebuild
    export PKG_CONFIG_PATH=$build/installed/lib/pkgconfig
}

# meson_tests NAME FOLDER SUITE...: runs suites and adds up what they count; "-SUITE" leaves one out.
meson_tests() {
    local name=$1 folder=$2 start=$SECONDS suite suites=()
    shift 2
    for suite in "$@"; do
        case $suite in
            -*) suites+=(--no-suite "${suite#-}") ;;
            *) suites+=(--suite "$suite") ;;
        esac
    done
    meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 4 "${suites[@]}" \
        >"$output" 2>&1
    local status=$? ok bad
    ok=$(sed -n 's/^Ok: *\([0-9]*\).*/\1/p' "$output" | tail -n 1)
    bad=$(sed -n -e 's/^Fail: *\([0-9]*\).*/\1/p' -e 's/^Timeout: *\([0-9]*\).*/\1/p' \
        -e 's/^Unexpected Pass: *\([0-9]*\).*/\1/p' "$output" | awk '{n += $1} END {print n + 0}')
    count "$name" "$start" "$status" "$ok" "$bad" '^ *[0-9]*/[0-9]* .* OK '
}
