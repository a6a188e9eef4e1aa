# shellcheck shell=bash
# What a check is, how it is counted, and how groups of them run beside each other.

passed=0 failed=0
output=$build/output     # of the command that runs
failures=$build/failures # what failed, in a few lines: the end of a long output is what one sees
: >"$failures"

# report STATUS NAME START: a line, and what a check that failed has printed.
report() {
    local took=$((SECONDS - $3))
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok     $2 ($took s)"
    else
        failed=$((failed + 1))
        { echo "FAILED $2 ($took s)" && tail -n 100 "$output" | sed 's/^/    /'; } >"$output.report"
        cat "$output.report"
        echo "FAILED $2" >>"$failures"
    fi
}

# check NAME COMMAND...: one test; its output is shown when it fails.
check() {
    local name=$1 start=$SECONDS
    shift
    "$@" >"$output" 2>&1
    report $? "$name" "$start"
}

# need NAME COMMAND...: without it nothing below makes sense.
need() {
    local before=$failed
    check "$@"
    [ "$failed" -eq "$before" ] || finish
}

# count NAME START STATUS OK BAD [PATTERN]: adds up what a test runner counts. What it printed is shown when
# something failed, without the lines that match PATTERN. The names of failed tests are in OUTPUT.failures, or in the
# output, as the runners of Meson, GoogleTest and Cargo write them.
count() {
    local name=$1 start=$2 status=$3 ok=${4:-0} bad=${5:-0}
    if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; }; then bad=1; fi # it ran nothing
    passed=$((passed + ok))
    failed=$((failed + bad))
    echo "$name: $ok ok, $bad failed ($((SECONDS - start)) s)"
    [ "$bad" -eq 0 ] && return
    grep -av "${6:-^$}" "$output" | tail -n 200 | sed 's/^/    /'
    {
        echo "FAILED $name: $bad"
        cat "$output.failures" 2>/dev/null ||
            grep -aE '^ *[0-9]+/[0-9]+ .* (FAIL|TIMEOUT) |^\[  FAILED  \] |^test .* FAILED$|SUMMARY: .*Sanitizer' "$output" | sort -u
    } | cut -c 1-160 | head -n 20 | sed '2,$s/^/    /' >>"$failures"
}

# aside NAME FUNCTION: runs checks beside those that follow. join NAME waits for them and counts them.
declare -A asides
aside() {
    (
        output=$build/output-$1 passed=0 failed=0
        rm -f "$output.counts"
        trap 'echo "$passed $failed" >"$output.counts"' EXIT
        "$2"
    ) &
    asides[$1]=$!
}
join() {
    local ok=0 bad=1
    [ -n "${asides[$1]:-}" ] || return 0
    wait "${asides[$1]}" 2>/dev/null # of one that ended long ago bash may know nothing any more
    unset "asides[$1]"
    read -r ok bad <"$build/output-$1.counts"
    passed=$((passed + ok))
    failed=$((failed + bad))
    [ "$bad" -eq 0 ]
}
# go_last [NICENESS]: what compiles for long runs beside tests. These have priority: some of them have time limits.
go_last() { renice -n "${1:-15}" "$BASHPID" >/dev/null; }

finish() {
    local name
    for name in "${!asides[@]}"; do join "$name"; done
    cat "$failures"
    echo "$passed passed, $failed failed"
    exit $((failed > 0))
}
