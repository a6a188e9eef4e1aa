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

# failed_tests FOLDER: the names of those that failed in the last run of Meson, if they are few, none crashed, and no
# sanitizer found anything.
failed_tests() {
    grep -aqE 'Sanitizer|runtime error:' "$output" || python3 - "$1/meson-logs/testlog.json" <<'PY'
import json
import sys

with open(sys.argv[1]) as log:
    tests = [json.loads(line) for line in log]
bad = [test for test in tests if test["result"] not in ("OK", "SKIP")]
crashed = any(test["result"] != "TIMEOUT" and test["returncode"] < 0 for test in bad)
print(*([] if crashed or len(bad) > 5 else [test["name"].rpartition(" / ")[2] for test in bad]))
PY
}

# meson_tests NAME FOLDER SUITE...: runs suites and adds up what they count; "-SUITE" leaves one out. Tests that fail,
# and pass three times alone, are counted and named as in pytests.py.
meson_tests() {
    local name=$1 folder=$2 start=$SECONDS suite suites=() again
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
    again=$([ "$bad" -eq 0 ] || failed_tests "$folder")
    # shellcheck disable=SC2086
    if [ -n "$again" ] && meson test -C "$folder" --no-rebuild --timeout-multiplier 4 --repeat 3 \
        "${suites[@]}" $again >"$output.alone" 2>&1; then
        status=0 ok=$((ok + bad)) bad=0
        echo "    UNSTEADY $again"
        tail -n 80 "$output" | sed 's/^/    /'
    fi
    count "$name" "$start" "$status" "$ok" "$bad" '^ *[0-9]*/[0-9]* .* OK '
}
