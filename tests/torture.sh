#!/bin/sh
# usage: torture.sh BUILDDIR [NAME...]
# Runs the fault-injection tests with many places; `make check` runs them with a few. Each row of
# the table names a test program, one of its tests (or a pattern), the number of places
# (STATREC_TORTURE) and the time limit in seconds. A place is one call, byte or moment where the
# test injects a fault. NAME selects the rows of a group, or one test. TORTURE_PLACES=N gives
# every row N places. JOBS=N runs N rows at once (default: one per processor). A row fails if its
# test ignores the number of places (check_places). Prints one line per row. If a row fails,
# prints the end of its log and exits with 1. Logs stay in BUILDDIR/torture.
#
#   group        program                    test                   places  seconds
rows='
    training     train/test_torture         test_kill_at_calls       1000    10800
    training     train/test_torture         test_torn_writes         1000    10800
    training     train/test_torture         test_kill_at_times       1000    10800
    training     train/test_torture         test_failing_calls       1000    10800
    training     train/test_torture         test_full_disk           1000    10800
    training     train/test_torture         test_allocations         1000    10800
    checkpoints  train/test_torture_checkpoints test_killed          1000     3600
    checkpoints  train/test_torture_checkpoints test_torn            1000     3600
    checkpoints  train/test_torture_checkpoints test_failing         1000     3600
    checkpoints  train/test_torture_checkpoints test_full_disk       1000     3600
    checkpoints  train/test_torture_checkpoints test_flipped         1000     3600
    checkpoints  train/test_torture_checkpoints test_cut             1000     3600
    sizes        train/test_checkpoint_sizes test_variations     1200     3600
    faults       runfile/test_faults        test_allocations        10000     3600
    flips        runfile/test_flips         test_flips              10000     3600
    power        runfile/test_power         test_power               1000     3600
    power        runfile/test_power         test_torn                1000     3600
    cut          runfile/test_cut           test_rows_left           1000     1800
    cut          runfile/test_cut           test_few_questions       1000     1800
    damage       runfile/test_damage        test_*                   5000     3600
'
[ $# -ge 1 ] || { echo "usage: torture.sh BUILDDIR [NAME...]" >&2; exit 2; }
build=$1
shift
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export OMP_NUM_THREADS OMP_WAIT_POLICY STATREC_TORTURE STATREC_TEST

# row GROUP PROGRAM TEST PLACES SECONDS
row() {
    began=$(date +%s) log=$build/torture/$1-$(echo "$3" | tr -d '*').log
    STATREC_TORTURE=${TORTURE_PLACES:-$4} STATREC_TEST=$3
    timeout --kill-after=10 "$5" "$build/tests/$2" >"$log" 2>&1 </dev/null
    status=$?
    if [ $status -eq 0 ] && ! grep -q "^places: $STATREC_TORTURE\$" "$log"; then
        echo "$2 $3 ignores the number of places" >>"$log"
        status=125
    elif [ $status -eq 0 ] && grep -qF ' 0 test(s) run' "$log"; then
        echo "$2 has no test $3" >>"$log"
        status=126
    fi
    case $status in
        0) end=passed ;;
        124) end="stopped after $5 s" ;;
        *) end="FAILED, exit status $status" ;;
    esac
    # the counts that the test prints; the end of the log if it failed
    report=$(if [ $status -eq 0 ]; then grep -v -e '^\[' -e '^places: ' "$log" | sort -u | head -n 40 | sed 's/^/    /'; else tail -n 60 "$log"; fi)
    printf '%-12s %-25s %6d places, %5d s: %s\n%s\n' "$1" "$3" "$STATREC_TORTURE" $(($(date +%s) - began)) "$end" "$report"
    return $((status != 0))
}

if [ "${1-}" = --row ]; then
    shift
    row "$@"
    exit
fi

wanted=$(echo "$rows" | awk -v names="$*" '
    BEGIN {n = split(names, name, " ")}
    NF {take = !n; for (i in name) if (name[i] == $1 || name[i] == $3) take = 1; if (take) print}')
[ -n "$wanted" ] || { echo "torture: no row has this name: $*" >&2; exit 2; }
mkdir -p "$build/torture" || exit 1
if echo "$wanted" | xargs -P "${JOBS:-$(nproc)}" -L 1 sh "$0" "$build" --row; then
    echo "torture: all $(echo "$wanted" | wc -l) rows passed"
else
    echo "torture: some of $(echo "$wanted" | wc -l) rows failed"
    exit 1
fi
