#!/bin/sh
# usage: run_cli.sh BUILDDIR [NAME...]
# Runs the cases tests/cli/NAME/ against the programs in BUILDDIR/bin. Of a case:
#   cmd      sh script, run in a fresh directory with the programs on PATH and BIN, TOP (checkout) and
#            SHARED (shared data) set; exit 77 after printing "skip: reason" skips the case
#   stdout, stderr   what it must print; no file: nothing. The directory is written as TMP, the version
#            as VERSION. With stdout.re or stderr.re instead: one extended regular expression per line
#   exit     the exit status; no file: 0
# UPDATE=1 rewrites the expectations (not the .re files) from what came out; read them before committing.
[ $# -ge 1 ] || { echo "usage: run_cli.sh BUILDDIR [NAME...]" >&2; exit 2; }
TOP=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
BIN=$(cd "$1/bin" && pwd -P) || exit 1
SHARED=${STATREC_SHARED:-$TOP/../shared}
case $SHARED in /*) ;; *) SHARED=$PWD/$SHARED ;; esac
shift
PATH=$BIN:$PATH
LC_ALL=C OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} TERM=dumb
OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # as in run_unit.sh
export TOP BIN SHARED PATH LC_ALL OMP_NUM_THREADS OMP_WAIT_POLICY TERM
unset COLUMNS MAKEFLAGS MAKELEVEL
work=$(mktemp -d) && work=$(cd "$work" && pwd -P) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
version=$(statrec --version | sed 's/^statrec //; s/\./\\./g')
[ -n "$version" ] || { echo "run_cli: $BIN/statrec does not run" >&2; exit 1; }
passed=0 failed=0 skipped=0

# The output in a form that does not depend on the place or the version.
normalise() {
    sed -e "s|$work/tmp|TMP|g" -e "s|$TOP|TOP|g" -e "s/$version/VERSION/g" "$1" >"$1.seen"
}

# Compares one output with its file of regular expressions; prints the lines that differ.
match_lines() {
    [ "$(wc -l <"$2")" -eq "$(wc -l <"$1")" ] || {
        echo "$(wc -l <"$2") lines instead of $(wc -l <"$1"):"
        cat "$2"
        return 1
    }
    same=0
    exec 3<"$1" 4<"$2"
    while IFS= read -r expression <&3 && IFS= read -r line <&4; do
        printf '%s\n' "$line" | grep -Eqx -e "$expression" && continue
        printf 'expected: %s\n     got: %s\n' "$expression" "$line"
        same=1
    done
    exec 3<&- 4<&-
    return $same
}

# expectation SEEN: prints the difference.
compare() {
    if [ -f "$1.re" ]; then match_lines "$1.re" "$2"
    elif [ -f "$1" ]; then diff -u "$1" "$2"
    else diff -u /dev/null "$2"
    fi
}

update() {
    for stream in stdout stderr; do
        [ -f "$case/$stream.re" ] && continue
        if [ -s "$work/$stream.seen" ]; then cp "$work/$stream.seen" "$case/$stream"
        else rm -f "$case/$stream"
        fi
    done
    if [ "$status" -ne 0 ]; then echo "$status" >"$case/exit"; else rm -f "$case/exit"; fi
}

run_case() {
    case=$1 name=${1##*/}
    rm -rf "$work/tmp" && mkdir "$work/tmp" || exit 1
    (cd "$work/tmp" && TMPDIR=$work/tmp exec timeout 300 sh "$case/cmd") \
        >"$work/stdout" 2>"$work/stderr" </dev/null
    status=$?
    if [ $status -eq 77 ]; then
        skipped=$((skipped + 1))
        echo "$name: $(grep '^skip' "$work/stdout" || echo 'skip: no reason given')"
        return
    fi
    normalise "$work/stdout"
    normalise "$work/stderr"
    [ -n "$UPDATE" ] && update
    {
        compare "$case/stdout" "$work/stdout.seen"
        differs=$?
        compare "$case/stderr" "$work/stderr.seen" || differs=1
        wanted=$(cat "$case/exit" 2>/dev/null || echo 0)
        [ "$status" -eq "$wanted" ] || { echo "exit status $status instead of $wanted" && differs=1; }
    } >"$work/report"
    if [ $differs -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "---- $name failed"
        head -n 60 "$work/report"
    fi
}

if [ $# -eq 0 ]; then set -- "$TOP"/tests/cli/*/; else
    for name in "$@"; do
        set -- "$@" "$TOP/tests/cli/$name/"
        shift
    done
fi
for directory in "$@"; do
    if [ -f "${directory}cmd" ]; then run_case "${directory%/}"
    else
        echo "---- $directory has no cmd"
        failed=$((failed + 1))
    fi
done
echo "command line: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
