#!/bin/sh
# usage: symbols.sh BUILDDIR
# The recorder has one caller in training: by the symbols of the object files, only src/observe uses src/record. A
# module links only modules that src/MODULES lets it include, and no two files of src/ need each other, directly or
# through others. Prints a line for each check that passes.
[ $# -eq 1 ] || { echo "usage: symbols.sh BUILDDIR" >&2; exit 2; }
names() { sort -u | sed '/^$/d'; }
# objects BUILD FOLDER: objects of a folder's existing sources
objects() { (cd "$top" && find src/"$2" -name '*.c') | sed "s|^|$1/obj/|; s|c\$|o|"; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
objects "$1" record | xargs nm | awk 'NF == 3 && $2 ~ /[TDRB]/ { print $3 }' | names >"$work/defined"
[ -s "$work/defined" ] || { echo "symbols: nothing is built in $1"; exit 1; }
# asked BUILD FOLDER: symbols of src/record that the folder uses
asked() { objects "$1" "$2" | xargs nm -u | awk '{ print $2 }' | names | comm -12 - "$work/defined"; }
bad=0
for module in base batch ranks text score parse engine norm nets decode data task train; do
    for name in $(asked "$1" $module); do
        echo "src/$module calls $name, which is the recorder's: only src/observe may"
        bad=$((bad + 1))
    done
done
[ -n "$(asked "$1" observe)" ] || { echo "symbols: src/observe does not call the recorder"; bad=1; }
[ $bad -eq 0 ] || exit 1
echo "symbols: in training only src/observe calls the recorder"

# the library exports exactly the functions that the headers declare, all with their prefix
lib=$1/lib/libstatrec.so
if [ -f "$lib" ]; then
    nm -D --defined-only "$lib" | awk '{ print $3 }' | names >"$work/shown"
    cat "$top"/include/statrec/*.h | tr -d '\n' | grep -o 'sr_[a-z0-9_]* *([^()]*\(([^()]*)[^()]*\)*) *[;_]' |
        sed 's/[ (].*//; /_fn$/d' | names >"$work/promised"
    grep -v '^sr_' "$work/shown" && { echo "symbols: $lib shows names without sr_"; bad=1; }
    missing=$(comm -13 "$work/shown" "$work/promised" | tr '\n' ' ')
    [ -z "$missing" ] || { echo "symbols: $lib lacks $missing"; bad=1; }
    [ $bad -eq 0 ] || exit 1
    echo "symbols: libstatrec.so shows $(wc -l <"$work/shown") names, all of them sr_*"
fi

# edges "user definer" between object files
objects "$1" . | xargs nm -A | sed "s|^$1/obj/||; s|\.o:| |" | awk '
    NF == 4 && $3 ~ /[TDRBC]/ && $4 != "main" { print "defines", $4, $1 }
    NF == 3 && $2 == "U" { print "asks", $3, $1 }' >"$work/all"
awk '$1 == "defines" { of[$2] = $3 } $1 == "asks" { asked[NR] = $2; by[NR] = $3 }
    END { for (i in asked) if (asked[i] in of && of[asked[i]] != by[i]) print by[i], of[asked[i]] }' \
    "$work/all" | sort -u >"$work/edges"
[ -s "$work/edges" ] || { echo "symbols: no file asks for another"; exit 1; }
if ! tsort "$work/edges" >/dev/null 2>"$work/loops"; then
    echo "symbols: files that need each other:"
    sed -n 's/^tsort: \([a-z].*\/.*\)/    \1/p' "$work/loops"
    exit 1
fi
echo "symbols: no circles among $(cut -d ' ' -f 1 "$work/edges" | sort -u | wc -l) files"
