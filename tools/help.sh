#!/bin/sh
# usage: help.sh BINDIR DIR
# Writes the --help output of every program and command into DIR: statrec, statrec-train, statrec-bpe-learn, statplot,
# stat-tid ...
[ $# -eq 2 ] || { echo "usage: help.sh BINDIR DIR" >&2; exit 2; }
bin=$1 out=$2
LC_ALL=C
export LC_ALL
unset STATREC_PLOTS STATREC_PRESETS STATREC_SAMPLES
mkdir -p "$out" || exit 1

# say PAGE PROGRAM [COMMAND]: stores its help.
say() {
    page=$1 program=$2
    shift 2
    case $page in statrec-train) all=all ;; *) all= ;; esac
    # shellcheck disable=SC2086 # a word or none
    "$bin/$program" "$@" --help $all >"$out/$page" || {
        echo "help: $program $* --help fails" >&2
        exit 1
    }
}

# Words of the left column of a list, "  word   text".
rows() {
    sed -n 's/^  \([a-z][a-z0-9-]*\)  *[^ ].*/\1/p' "$out/$1"
}

# Commands of a command have their own usage.
say_commands() {
    for word in $(rows "$1"); do
        "$bin/statrec" "$2" "$word" --help >"$out/more" 2>/dev/null &&
            [ "$(head -n 1 "$out/more")" != "$(head -n 1 "$out/$1")" ] && mv "$out/more" "$out/$1-$word"
    done
    rm -f "$out/more"
}

say statrec statrec
for command in $(rows statrec | grep -vx help); do
    say "statrec-$command" statrec "$command"
    say_commands "statrec-$command" "$command"
done
say statplot statplot
for program in "$bin"/stat-*; do say "$(basename "$program")" "$(basename "$program")"; done
