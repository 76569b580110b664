#!/bin/sh
# usage: torture.sh BUILDDIR [NAME...]
# The tests that have a few places to try in `make check`, with many: each row of the table below is a
# test program, how many places STATREC_TORTURE gives it, and after how many seconds it is stopped.
# TORTURE_PLACES=N gives every row N. A program that does not ask for its places (check_places) fails. A line
# each, the end of the log of one that fails, and exit status 1 then.
#
#   name         program                    places  seconds
rows='
    training     tests/train/test_torture     1000    14400
    checkpoints  tests/train/test_torture_checkpoints 1000 5400
    faults       tests/record/test_faults     1000     3600
    flips        tests/record/test_flips     10000     3600
    power        tests/record/test_power      1000     3600
    cut          tests/record/test_cut        1000     1800
    damage       tests/record/test_damage     5000     3600
'
[ $# -ge 1 ] || { echo "usage: torture.sh BUILDDIR [NAME...]" >&2; exit 2; }
build=$1
shift
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}
export OMP_NUM_THREADS OMP_WAIT_POLICY STATREC_TORTURE
failed=0 ran=0

wanted() {
    name=$1
    shift
    [ $# -eq 0 ] && return
    case " $* " in *" $name "*) ;; *) return 1 ;; esac
}

while read -r name program places seconds; do
    [ -n "$name" ] || continue
    wanted "$name" "$@" || continue
    ran=$((ran + 1)) began=$(date +%s)
    STATREC_TORTURE=${TORTURE_PLACES:-$places}
    timeout --kill-after=10 "$seconds" "$build/$program" >"$log" 2>&1 </dev/null
    status=$?
    if [ $status -eq 0 ] && ! grep -q "^places: $STATREC_TORTURE\$" "$log"; then
        echo "$program does not ask how many places" >>"$log"
        status=125
    fi
    printf '%-12s %6d places, %5d s: ' "$name" "$STATREC_TORTURE" $(($(date +%s) - began))
    if [ $status -eq 0 ]; then echo passed; else
        failed=$((failed + 1))
        [ $status -eq 124 ] && echo "stopped after $seconds s" || echo "FAILED, exit status $status"
    fi
    # what the tests counted; of one that failed all that it said last
    if [ $status -eq 0 ]; then grep -v '^\[' "$log" | sort -u | head -n 40 | sed 's/^/    /'; else tail -n 60 "$log"; fi
done <<END
$rows
END
[ $ran -gt 0 ] || { echo "torture: no row is called so: $*" >&2; exit 2; }
echo "torture: $((ran - failed)) of $ran passed"
[ $failed -eq 0 ]
