#!/bin/sh
# usage: symbols.sh BUILDDIR
# The recorder has one caller in training: by the symbols of the object files, only src/observe asks for
# what the record room defines. Programs that read run files (src/cli, analyses, plot) do too; the
# engine, its data, tasks and the loop do not. And no two files of src/ need each other, directly or
# through others. A line for each when all is well.
[ $# -eq 1 ] || { echo "usage: symbols.sh BUILDDIR" >&2; exit 2; }
names() { sort -u | sed '/^$/d'; }
# the objects of a room's sources, not of files that are gone
objects() { (cd "$top" && ls src/"$2"/*.c) | sed "s|^|$1/obj/|; s|c\$|o|"; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# array_file.c stands there for its HDF5 alone; checkpoints are made of it
objects "$1" record | grep -v '/array_file\.o$' | xargs nm | awk 'NF == 3 && $2 ~ /[TDRB]/ { print $3 }' | names >"$work/defined"
[ -s "$work/defined" ] || { echo "symbols: nothing is built in $1"; exit 1; }
# what a room asks for of the record room
asked() { objects "$1" "$2" | xargs nm -u | awk '{ print $2 }' | names | comm -12 - "$work/defined"; }
bad=0
for room in base text score parse engine norm nets decode data task train; do
    for name in $(asked "$1" $room); do
        echo "src/$room calls $name, which is the recorder's: only src/observe may"
        bad=$((bad + 1))
    done
done
[ -n "$(asked "$1" observe)" ] || { echo "symbols: src/observe does not call the recorder"; bad=1; }
[ $bad -eq 0 ] || exit 1
echo "symbols: in training only src/observe calls the recorder"

# what the library shows of itself is what the headers promise, all of it with their prefix
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
for path in "$top"/src/*/*.c; do
    room=$(basename "$(dirname "$path")") file=$(basename "$path" .c)
    nm "$1/obj/src/$room/$file.o" | awk -v file="$room/$file" '
        NF == 3 && $2 ~ /[TDRBC]/ && $3 != "main" { print "defines", $3, file }
        NF == 2 && $1 == "U" { print "asks", $2, file }'
done >"$work/all"
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
