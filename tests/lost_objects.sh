#!/bin/sh
# usage: lost_objects.sh
# Deletes some objects and the lists of their headers, but not the library and the other objects. If then a header of
# only the deleted ones changes, make must build it into the library. Uses a copy of a small module.
top=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
module=parse
cp -R "$top/Makefile" "$top/include" "$top/tools" "$work" && cp -R "$top/src" "$work" || exit 1
cd "$work" || exit 1
library=build/lib$module/lib/lib$module.a
build() {
    env -u MAKEFLAGS -u MAKELEVEL "${MAKE:-make}" -s BUILD="build/lib$module" "$library" >log 2>&1 ||
        { cat log; echo 'lost objects: make fails'; exit 1; }
}
shows() { nm "$library" | grep -q " $1\$"; }
build
shows header_of_now && { echo 'lost objects: the mark is there before it is set'; exit 1; }
header=tree_lines.h
users=$(grep -l "\"$module/$header\"" src/$module/*.c)
[ -n "$users" ] || { echo "lost objects: nobody includes $header"; exit 1; }
for source in $users; do rm "build/lib$module/obj/${source%.c}".[od] || exit 1; done
printf '\n__attribute__((weak)) int header_of_now;\n' >>"src/$module/$header" || exit 1
build
shows header_of_now || { echo "lost objects: $header changed, $library did not: objects are gone and make does not miss them"; exit 1; }
echo 'lost objects: make misses them'
