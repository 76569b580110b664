#!/bin/sh
# usage: check_manual.sh BUILDDIR
# Checks the pages that `make man` wrote. mandoc and groff find no fault. Each --help option, command, figure and
# analysis is in its page, and so is each public function, dataset of format.h and environment variable. Referenced
# pages exist. Prints one line, or one line per fault.
[ $# -eq 1 ] || { echo "usage: check_manual.sh BUILDDIR" >&2; exit 2; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
build=$(cd "$1" && pwd -P) || exit 1
man=$build/man
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL
bad=0 looked=0

fault() {
    echo "manual: $*"
    bad=$((bad + 1))
}

# The page as text: what roff obeys taken away.
text() {
    sed 's/\\f[BIR]//g; s/\\-/-/g; s/\\(aq/'"'"'/g; s/\\(ha/^/g; s/\\(ti/~/g; s/\\(ga/`/g; s/\\[&:]//g; s/\\e/\\/g' "$1" |
        tr '\n' ' '
}

# wants PAGE KIND: each line of standard input must be in the page.
wants() {
    text "$man/$1" >"$work/text"
    while IFS= read -r words; do
        looked=$((looked + 1))
        grep -qF -e "$words" "$work/text" || fault "$1: no $2 $words"
    done
}

# help_of PAGE: what the page is made of; "statrec-bpe-learn" is statrec bpe learn.
help_of() {
    case $1 in
    statrec-score-multi-bleu) "$build/bin/statrec" score multi-bleu --help ;;
    statrec*)
        # shellcheck disable=SC2046 # words of a command
        set -- $(echo "$1" | tr - ' ')
        shift
        [ "$*" = train ] && set -- train --help all
        "$build/bin/statrec" "$@" --help
        ;;
    *) "$build/bin/$1" --help ;;
    esac
}

check_options() {
    for page in "$man"/man1/*.1; do
        name=$(basename "$page" .1)
        [ "$name" = stat-analyses ] && continue
        help_of "$name" >"$work/help" || fault "$name --help fails"
        sed -n 's/^  \(-[A-Za-z], \)\{0,1\}\(--[^ ]*\( [^ ]*\)\{0,1\}\)\(  .*\)\{0,1\}$/\2/p' "$work/help" |
            grep -v ': *$' >"$work/options"
        wants "man1/$name.1" option <"$work/options"
    done
    [ "$looked" -gt 300 ] || fault "only $looked options are in all --help together"
    "$build/bin/statrec" list options | sed 's/^\([^ ]*\).*/\1/' >"$work/options"
    wants man1/statrec-train.1 option <"$work/options"
    "$build/bin/statrec" train --help all | sed -n '/^Parameters.*--norm/,/^$/s/^  \([^ ]*\) .*/\1/p' >"$work/params"
    [ -s "$work/params" ] || fault "statrec train --help all has no parameters of normalizations"
    wants man1/statrec-train.1 parameter <"$work/params"
}

check_names() {
    sed -n 's/^    {"\([a-z]*\)", cmd_.*/.BR statrec-\1 (1)/p' "$top/src/cli/statrec.c" >"$work/names"
    [ -s "$work/names" ] || fault "src/cli/statrec.c has no commands"
    wants man1/statrec.1 command <"$work/names"
    (cd "$top/analyses" && printf '%s\n' stat-*.c) | sed 's/^/.BR /; s/[.]c$/ (1)/' >"$work/names"
    wants man1/stat-analyses.1 analysis <"$work/names"
    "$build/bin/statplot" list | cut -f 1 >"$work/names"
    wants man1/statplot.1 figure <"$work/names"
    sed -n '/^typedef/d; s/^[a-z].*[ *]\(sr_[a-z_0-9]*\)(.*/\1/p' "$top"/include/statrec/*.h >"$work/functions"
    sed 's/$/(/' "$work/functions" >"$work/names"
    wants man3/libstatrec.3 function <"$work/names"
    while read -r name; do
        [ -f "$man/man3/$name.3" ] || fault "no man3/$name.3"
    done <"$work/functions"
    sed -n 's/^    X(\([A-Za-z_0-9]*\), .*/\1  /p; s/^ *X([A-Z]*, \([a-z]*\), .*/\1/p' \
        "$top/include/statrec/format.h" | grep -v '^[A-Z]*  $' >"$work/names"
    wants man5/statrec-file.5 dataset <"$work/names"
}

# Variables of the environment, LD_PRELOAD excepted, which is valgrind's.
check_variables() {
    cat "$man"/man1/*.1 >"$man/all"
    (cd "$top" && grep -rhoE '(getenv|screen_size|install_files_(find|directory))\("[A-Z_]+"' src analyses) |
        sed 's/.*"\(.*\)"/\1/' | sort -u | grep -vx LD_PRELOAD >"$work/names"
    [ "$(wc -l <"$work/names")" -gt 5 ] || fault "programs read too few variables to be true"
    wants all variable <"$work/names"
    rm -f "$man/all"
}

check_references() {
    for page in "$man"/man[135]/*.[135]; do
        sed -n 's/\\//g; s/^[.]BR \([^ ]*\) (\([135]\)).*/man\2\/\1.\2/p; s/^[.]so //p' "$page" >"$work/names"
        while read -r name; do
            looked=$((looked + 1))
            [ -f "$man/$name" ] || fault "$(basename "$page") refers to $name, which is not there"
        done <"$work/names"
    done
}

# lint TOOL COMMAND...: the command must print nothing for any page.
lint() {
    command -v "$1" >/dev/null || { echo "manual: skipped: $1 is not installed"; return; }
    for page in "$man"/man1/*.1 "$man/man3/libstatrec.3" "$man/man5/statrec-file.5"; do
        looked=$((looked + 1))
        "$@" "$page" >"$work/said" 2>&1
        [ -s "$work/said" ] || continue
        fault "$1 of $(basename "$page"):"
        head -n 3 "$work/said"
    done
}

check_options
check_names
check_variables
check_references
lint mandoc -T lint -W warning
lint groff -ww -W break -z -man -Kutf8
[ $bad -eq 0 ] || exit 1
echo "manual: $looked looks at $(find "$man/man1" "$man/man5" -type f | wc -l) pages and libstatrec(3) found no fault"
