#!/bin/sh
# usage: [RUN_WITH=COMMAND] run_unit.sh PROGRAM...
# Runs test programs (as words behind COMMAND), JOBS at once (default: one for each core), and tells of them in the given order:
# one line each, the whole log of one that fails, and a closing count of tests that passed, failed and
# were skipped.
[ $# -gt 0 ] || { echo "run_unit: no test program given"; exit 1; }
jobs=${JOBS:-$(nproc 2>/dev/null || echo 1)}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# passive: threads that wait do not take the core from those that work, on machines with other load
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-2}" OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"
failed=0 passed=0 skipped=0 told=0

# Tests of a log with the mark $1, from the lines of the run, not of the summary that names them again.
count() {
    sed '/^\[==========\] .* test(s) run/,$d' "$log" | grep -c "^\[ *$1 *\]"
}

# tell PROGRAM: its line, and its log if it failed.
tell() {
    log=$work/$told.log
    status=$(cat "$work/$told.status")
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

# One line on standard output, whenever a program has ended.
run_all() {
    i=0
    # shellcheck disable=SC2016 # the inner shell expands these
    for program in "$@"; do
        printf '%s\n%s\n' "$i" "$program"
        i=$((i + 1))
    done | xargs -d '\n' -n 2 -P "$jobs" sh -c '
        ${RUN_WITH:-} "$3" >"$1/$2.log" 2>&1 </dev/null
        echo $? >"$1/$2.ended" && mv "$1/$2.ended" "$1/$2.status"
        echo "$2"' run "$work"
}

run_all "$@" | {
    while read -r _; do
        while [ -f "$work/$told.status" ]; do
            tell "$1"
            told=$((told + 1))
            shift
        done
    done
    for program in "$@"; do
        printf -- '---- %s did not run\n' "$program"
        failed=$((failed + 1))
    done
    printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
    [ $failed -eq 0 ]
}
