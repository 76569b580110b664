#!/bin/sh
# usage: manual.sh BINDIR OUTDIR VERSION DATE
# Writes the pages of section 1 into OUTDIR: one for each program and each command, from what it prints
# for --help, and stat-analyses.1, which lists the analyses.
[ $# -eq 4 ] || { echo "usage: manual.sh BINDIR OUTDIR VERSION DATE" >&2; exit 2; }
tools=$(dirname "$0") bin=$1 out=$2 version=$3 date=$4
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" || exit 1

# help PAGE COMMAND...: keeps what it says.
help() {
    page=$1 program=$2
    shift 2
    "$bin/$program" "$@" --help >"$work/$page" || { echo "manual: $program $* --help failed" >&2; exit 1; }
}

# Words of the left column of a list, "  word   text".
rows() {
    sed -n 's/^  \([a-z][a-z0-9-]*\)  *[^ ].*/\1/p' "$1"
}

first_line() {
    sed -n 's/^usage: *//p' "$1"
}

help statrec statrec
help statplot statplot
"$bin/statplot" list | awk -F '\t' '
    { kind = $3 ~ /^table: / ? "Tables" : "Figures"; sub(/^table: /, "", $3) }
    kind != last { print ""; print kind ":"; last = kind }
    { print "  " $1 " " $2 "   " $3 }' >>"$work/statplot"
for command in $(rows "$work/statrec" | grep -vx help); do
    help "statrec-$command" statrec "$command"
    for word in $(rows "$work/statrec-$command"); do
        "$bin/statrec" "$command" "$word" --help >"$work/more" 2>/dev/null || continue
        [ "$(first_line "$work/more")" = "$(first_line "$work/statrec-$command")" ] ||
            mv "$work/more" "$work/statrec-$command-$word"
    done
    rm -f "$work/more"
done
for program in "$bin"/stat-*; do help "$(basename "$program")" "$(basename "$program")"; done
pages=$(cd "$work" && printf '%s ' *)

# The page that lists a command.
parent() {
    case $1 in
    statrec-*) up=${1%-*}
        while [ ! -f "$work/$up" ]; do up=${up%-*}; done
        echo "$up" ;;
    stat-*) echo stat-analyses ;;
    esac
}

# The line of a command in its parent's list, else the first sentence of the help.
does() {
    case $1 in
    statrec) echo "train with any normalization at any site and record its statistics" ;;
    statrec-*)
        up=$(parent "$1")
        sed -n "s/^  ${1#"$up"-}  *//p" "$work/$up" ;;
    *)
        awk '/^$/ { if (++blank == 2) exit; next }
            blank == 1 { text = text (text == "" ? "" : " ") $0 }
            END { if (match(text, /[.]( |$)/)) text = substr(text, 1, RSTART - 1)
                print tolower(substr(text, 1, 1)) substr(text, 2) }' "$work/$1" ;;
    esac
}

page() {
    awk -f "$tools/roff.awk" -f "$tools/help_page.awk" -v name="$1" -v does="$(does "$1")" -v date="$date" \
        -v version="$version" -v pages="${pages}stat-analyses" -v parent="$(parent "$1")" \
        "$tools/manual.txt" "$2" >"$out/$1.1" || exit 1
}

# As a --help: what every analysis does, and the options that at least half of them have in the same words.
analyses() {
    echo "usage: stat-NAME RUN.h5... [OPTIONS]"
    echo
    echo "The stat-* programs turn run files into tables, tab-separated, with the definition of every"
    echo "column in lines that begin with \`#\`. Each has its page; what most of them take stands below."
    echo
    echo "Programs:"
    for program in "$work"/stat-*; do
        echo "  $(basename "$program")  $(does "$(basename "$program")")"
    done
    echo
    awk -v half="$(printf '%s\n' "$work"/stat-* | awk 'END { print NR / 2 }')" '
        function keep() { if (row != "" && ++seen[row] >= half && !said[row]++) text[++n] = row; row = "" }
        /^  (-., )?--/ { keep(); row = $0; next }
        /^                              / && row != "" { row = row "\n" $0; next }
        { keep() }
        END { keep(); print "Options of most programs:"; for (i = 1; i <= n; i++) print text[i] }' "$work"/stat-*
}

for name in $pages; do page "$name" "$work/$name"; done
analyses >"$work/analyses.help"
does() { echo "tables of normalization statistics from run files"; }
page stat-analyses "$work/analyses.help"
