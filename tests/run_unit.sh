#!/bin/sh
# usage: [RUN_WITH=COMMAND] run_unit.sh PROGRAM...
# Runs test programs (appended to COMMAND), JOBS at once (default: one for each core), and reports them in the given
# order: one line each, the whole log of one that fails, and a closing count of tests that passed, failed and were
# skipped.
[ $# -gt 0 ] || { echo "run_unit: no test program given"; exit 1; }
# shellcheck source=tests/pool.sh
. "$(dirname "$0")/pool.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# passive: threads that wait do not take the core from those that work, on machines with other load
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
failed=0 passed=0 skipped=0

# Tests of a log with the mark $1, from the lines of the run, not of the summary that names them again.
count() {
    sed '/^\[==========\] .* test(s) run/,$d' "$log" | grep -c "^\[ *$1 *\]"
}

# report I PROGRAM: its line, and its log if it failed.
report() {
    log=$work/$1.log
    status=$(cat "$work/$1.status")
    shift
    p=$(count OK) s=$(count SKIPPED) f=$(count FAILED)
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ "$status" -eq 0 ] && f=0
    passed=$((passed + p)) skipped=$((skipped + s)) failed=$((failed + f))
    printf '%-44s %3d passed, %d failed, %d skipped\n' "${1#build/}" "$p" "$f" "$s"
    grep '^skipped' "$log" | sort -u | sed 's/^/    /'
    [ "$status" -eq 0 ] && return
    printf -- '---- %s (exit status %d)\n' "$1" "$status"
    cat "$log"
}

run_pool "$work" "${RUN_WITH:-}" "$@" | {
    while read -r i; do
        report "$i" "$1"
        shift
    done
    for program in "$@"; do
        printf -- '---- %s did not run\n' "$program"
        failed=$((failed + 1))
    done
    printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
    [ $failed -eq 0 ]
}
