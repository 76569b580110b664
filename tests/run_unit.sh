#!/bin/sh
# Runs the test programs named as arguments. cmocka prints to the log; here one line each, the whole log
# of a program that fails, and a closing count of tests that ran, failed and were skipped.
failed=0 passed=0 skipped=0 programs=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
for program in "$@"; do
    programs=$((programs + 1))
    # passive: threads that wait do not take the core from those that work, on machines with other load
    OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} "$program" >"$log" 2>&1
    status=$?
    # the lines of the run, not of the summary that names them again
    count() { sed '/^\[==========\] .* test(s) run/,$d' "$log" | grep -c "^\[ *$1 *\]"; }
    p=$(count OK) s=$(count SKIPPED) f=$(count FAILED)
    [ $status -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ $status -eq 0 ] && f=0
    passed=$((passed + p)) skipped=$((skipped + s)) failed=$((failed + f))
    printf '%-44s %3d passed, %d failed, %d skipped\n' "${program#build/}" "$p" "$f" "$s"
    grep '^skipped' "$log" | sort -u | sed 's/^/    /'
    [ $status -eq 0 ] || { printf -- '---- %s (exit status %d)\n' "$program" $status; cat "$log"; }
done
[ $programs -gt 0 ] || { echo "run_unit: no test program given"; exit 1; }
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed -eq 0 ]
