#!/bin/sh
# usage: [RUN_WITH=COMMAND] run_cli.sh BUILDDIR [NAME...]
#        run_cli.sh --list [NAME...]
# Runs the cases tests/cli/NAME/ against the programs in BUILDDIR/bin, or prints their names. NAME may be a glob:
# 'train_*'. JOBS cases run at once (default: one for each core), slow ones first, appended to COMMAND. Files of a case:
#   cmd      sh script, run in a fresh directory with the programs on PATH and BIN, TOP (checkout) and
#            SHARED (shared data) set; exit 77 after printing "skip: reason" skips the case
#   stdout, stderr   what it must print; no file: nothing. The directory is written as TMP, the version
#            as VERSION. With stdout.re or stderr.re instead: one extended regular expression per line
#   exit     the exit status; no file: 0
#   slow     an empty file: the case takes a minute or more, and starts before the others. It is stopped after
#            30 minutes, others after 10; in a build for coverage after three times as long
# UPDATE=1 rewrites the expectations (not the .re files) from what came out; read them before committing.
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
TOP=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
# shellcheck source=tests/pool.sh
. "$TOP/tests/pool.sh"

# Names of the cases that match one of the patterns; all of them without a pattern.
select_cases() {
    for directory in "$TOP"/tests/cli/*/; do
        directory=${directory%/}
        name=${directory##*/}
        [ $# -gt 0 ] || echo "$name"
        for pattern in "$@"; do
            # shellcheck disable=SC2254 # a glob
            case $name in $pattern) echo "$name" && break ;; esac
        done
    done
}

builddir=$1
shift
for pattern in "$@"; do
    [ -n "$(select_cases "$pattern")" ] || { echo "run_cli: no case $pattern" >&2; exit 1; }
done
if [ "$builddir" = --list ]; then select_cases "$@"; exit; fi
BIN=$(cd "$builddir/bin" && pwd -P) || exit 1
SHARED=${STATREC_SHARED:-$TOP/../shared}
case $SHARED in /*) ;; *) SHARED=$PWD/$SHARED ;; esac
PATH=$BIN:$PATH
LC_ALL=C OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} TERM=dumb
OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # as in run_unit.sh
run_with=${RUN_WITH:-} # of these cases, not of the cases that one of them runs
unset COLUMNS MAKEFLAGS MAKELEVEL RUN_WITH
[ -d "$BIN/../../../share/presets" ] || export STATREC_PRESETS="$TOP/share/presets" # a build outside the checkout
statrec --version >/dev/null || { echo "run_cli: $BIN/statrec does not run" >&2; exit 1; }
export TOP BIN SHARED PATH LC_ALL OMP_NUM_THREADS OMP_WAIT_POLICY TERM
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# slow_first: reads names, prints slow cases first.
slow_first() {
    while read -r name; do
        if [ -e "$TOP/tests/cli/$name/slow" ]; then echo "0 $name"; else echo "1 $name"; fi
    done | sort -s -k 1,1 | cut -d ' ' -f 2
}

# shellcheck disable=SC2046 # names without blanks
set -- $(select_cases "$@" | slow_first)
cd "$TOP" || exit 1
run_pool "$work" "$run_with sh tests/cli_case.sh" "$@" | {
    passed=0 failed=0 skipped=0
    while read -r i; do
        shift
        cat "$work/$i.log"
        case $(cat "$work/$i.status") in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
        esac
    done
    for name in "$@"; do
        echo "---- $name did not run"
        failed=$((failed + 1))
    done
    echo "command line: $passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ] && [ $passed -gt 0 ]
}
