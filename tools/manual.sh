#!/bin/sh
# usage: manual.sh BUILDDIR VERSION DATE
# Writes the manual into BUILDDIR/man. Section 1 has a page for each program and command, from its --help in
# BUILDDIR/help (help2man), and stat-analyses.1, a list of the analyses. libstatrec.3 comes from the public headers,
# with a link for each function; statrec-file.5 from statrec/format.h and a run file. Notes are in manual.txt.
[ $# -eq 3 ] || { echo "usage: manual.sh BUILDDIR VERSION DATE" >&2; exit 2; }
tools=$(dirname "$0")
include=$tools/../include/statrec
bin=$1/bin out=$1/man.new version=$2 date=$3
LC_ALL=C
export LC_ALL
unset STATREC_PLOTS STATREC_PRESETS STATREC_SAMPLES
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
help=$work/help
rm -rf "$out" && mkdir -p "$out/man1" "$out/man3" "$out/man5" "$help" || exit 1

fail() {
    echo "manual: $*" >&2
    exit 1
}

# -- output of the programs, a file for each page

cp "$1/help"/* "$help" || exit 1
"$bin/statplot" list | awk -F '\t' '
    { kind = $3 ~ /^table: / ? "Tables" : "Figures"; sub(/^table: /, "", $3) }
    kind != last { print ""; print kind ":"; last = kind }
    { print "  " $1 " " $2 "   " $3 }' >>"$help/statplot"

# The page that lists a command.
parent() {
    case $1 in
    statrec-*)
        up=${1%-*}
        while [ ! -f "$help/$up" ]; do up=${up%-*}; done
        echo "$up"
        ;;
    stat-analyses) ;;
    stat-*) echo stat-analyses ;;
    esac
}

# The line of a command in its parent's list, else the first sentence of its help.
does() {
    case $1 in
    statrec) echo "train with any normalization at any site and record its statistics" ;;
    stat-analyses) echo "tables of normalization statistics from run files" ;;
    statrec-*)
        up=$(parent "$1")
        sed -n "s/^  ${1#"$up"-}  *//p" "$help/$up"
        ;;
    *)
        awk '/^$/ { if (++blank == 2) exit; next }
            blank == 1 { text = text (text == "" ? "" : " ") $0 }
            END { if (match(text, /[.]( |$)/)) text = substr(text, 1, RSTART - 1)
                print tolower(substr(text, 1, 1)) substr(text, 2) }' "$help/$1"
        ;;
    esac
}

# As a --help: the purpose of every analysis, and the options that at least half of them describe in the same words.
analyses() {
    echo "usage: stat-NAME RUN.h5... [OPTIONS]"
    echo
    echo "The stat-* programs turn run files into tables, tab-separated, with the definition of every"
    echo "column in lines that begin with \`#\`. Each has its page; what most of them take stands below."
    echo
    echo "Programs:"
    for path in "$help"/stat-*; do
        echo "  $(basename "$path")  $(does "$(basename "$path")")"
    done
    echo
    echo "Options of most programs:"
    awk 'function keep() { if (row != "") { seen[row]++; order[++n] = row }; row = "" }
        FNR == 1 { files++ }
        /^  (-., )?--/ { keep(); row = $0; next }
        /^                              / && row != "" { row = row "\n" $0; next }
        { keep() }
        END { keep(); for (i = 1; i <= n; i++)
            if (2 * seen[order[i]] >= files) { print order[i]; seen[order[i]] = 0 } }' "$help"/stat-*
}

analyses >"$work/analyses" && mv "$work/analyses" "$help/stat-analyses"

# -- pages

command -v help2man >/dev/null || fail "help2man is not installed"
pages=$(cd "$help" && printf '%s ' *)
mkdir "$work/programs"
SOURCE_DATE_EPOCH=$(date -u -d "$date" +%s) || fail "no date: $date"
export SOURCE_DATE_EPOCH
for name in $pages; do
    awk -f "$tools/roff.awk" -f "$tools/page_notes.awk" -v name="$name" -v pages="${pages% }" \
        -v parent="$(parent "$name")" "$tools/manual.txt" "$help/$name" >"$work/notes" || fail "no notes for $name"
    # help2man runs a program of the page's name, and recognizes the synopsis by a capital
    printf '#!/bin/sh\nsed "s/^usage:/Usage:/" "%s"\n' "$help/$name" >"$work/programs/$name"
    chmod +x "$work/programs/$name"
    help2man --no-info --name="$(does "$name")" --version-string="$version" --source="statrec $version" \
        --manual="statrec manual" --include="$work/notes" "$work/programs/$name" |
        sed "/^\.TH /s/\"[A-Z][a-z]* [0-9]*\"/\"$date\"/" >"$out/man1/$name.1"
    [ -s "$out/man1/$name.1" ] || fail "no page $name"
done

awk -f "$tools/roff.awk" -f "$tools/header_page.awk" -v date="$date" -v version="$version" \
    -v names="$work/names" "$include/record.h" "$include/runfile.h" "$include/moments.h" "$include/base.h" \
    >"$out/man3/libstatrec.3" || fail "no page libstatrec"
while read -r name; do echo ".so man3/libstatrec.3" >"$out/man3/$name.3"; done <"$work/names"

"$1/tools/file_page" "$work/run.h5" >"$work/rows" || fail "no run file"
awk -f "$tools/roff.awk" -f "$tools/file_page.awk" -v date="$date" -v version="$version" \
    "$tools/manual.txt" "$include/format.h" "$work/rows" >"$out/man5/statrec-file.5" || fail "no page statrec-file"

# all pages or none
rm -rf "$1/man" && mv "$out" "$1/man"
