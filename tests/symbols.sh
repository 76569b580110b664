#!/bin/sh
# usage: symbols.sh BUILDDIR
# The recorder has one caller in training: by the symbols of the object files, only src/observe asks for
# what the record room defines. Programs that read run files (src/cli, analyses, plot) do too; the
# engine, its data, tasks and the loop do not. One line when all is well.
[ $# -eq 1 ] || { echo "usage: symbols.sh BUILDDIR" >&2; exit 2; }
names() { sort -u | sed '/^$/d'; }
# the objects of a room's sources, not of files that are gone
objects() { (cd "$top" && ls src/"$2"/*.c) | sed "s|^|$1/obj/|; s|c\$|o|"; }
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
objects "$1" record | xargs nm | awk 'NF == 3 && $2 ~ /[TDRB]/ { print $3 }' | names >"$work/defined"
[ -s "$work/defined" ] || { echo "symbols: nothing is built in $1"; exit 1; }
# what a room asks for of the record room
asked() { objects "$1" "$2" | xargs nm -u | awk '{ print $2 }' | names | comm -12 - "$work/defined"; }
bad=0
for room in base engine norm nets data task train; do
    for name in $(asked "$1" $room); do
        echo "src/$room calls $name, which is the recorder's: only src/observe may"
        bad=$((bad + 1))
    done
done
[ -n "$(asked "$1" observe)" ] || { echo "symbols: src/observe does not call the recorder"; bad=1; }
[ $bad -eq 0 ] || exit 1
echo "symbols: in training only src/observe calls the recorder"
