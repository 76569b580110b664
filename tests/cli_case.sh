#!/bin/sh
# usage: cli_case.sh NAME
# Runs the case tests/cli/NAME; exit status 0 if it passes, 77 if it is skipped. run_cli.sh starts it and sets its
# environment; its head lists the files of a case.
case=$TOP/tests/cli/$1
[ -f "$case/cmd" ] || { echo "---- $1 has no cmd"; exit 1; }
version=$(statrec --version | sed 's/^statrec //; s/\./\\./g')
work=$(mktemp -d) && work=$(cd "$work" && pwd -P) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The output in a form that does not depend on the place or the version.
normalize() {
    sed -e "s|$work/tmp|TMP|g" -e "s|$BIN|BIN|g" -e "s|$TOP|TOP|g" -e "s/$version/VERSION/g" "$1" >"$1.seen"
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

mkdir "$work/tmp" || exit 1
if [ -e "$case/slow" ]; then seconds=1800; else seconds=600; fi
case $BIN in */coverage/bin) seconds=$((3 * seconds)) ;; esac # each branch is counted
(cd "$work/tmp" && TMPDIR=$work/tmp exec timeout $seconds sh "$case/cmd") >"$work/stdout" 2>"$work/stderr"
status=$?
if [ $status -eq 77 ]; then
    echo "$1: $(grep '^skip' "$work/stdout" || echo 'skip: no reason given')"
    exit 77
fi
normalize "$work/stdout"
normalize "$work/stderr"
[ -n "$UPDATE" ] && update
{
    compare "$case/stdout" "$work/stdout.seen"
    differs=$?
    compare "$case/stderr" "$work/stderr.seen" || differs=1
    wanted=$(cat "$case/exit" 2>/dev/null || echo 0)
    [ "$status" -eq "$wanted" ] || { echo "exit status $status instead of $wanted" && differs=1; }
} >"$work/report"
[ $differs -eq 0 ] && exit
echo "---- $1 failed"
head -n 60 "$work/report"
exit 1
