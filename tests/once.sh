#!/bin/sh
# usage: once.sh FOLDER [COMMAND...] ITEM
# Runs ITEM, a test program or, as the last word of COMMAND, a case of tests/cli. Keeps its output in FOLDER if it
# passed. A later call prints the kept output instead, so that an interrupted run of many items resumes. ITEM runs again
# if its program or a file of its case is newer. `make coverage` runs each item so.
[ $# -ge 2 ] || { echo "usage: once.sh FOLDER [COMMAND...] ITEM" >&2; exit 2; }
folder=$1
shift
for item; do :; done
kept=$folder/$(echo "${item##*/tests/}" | tr / -)
files=$item
[ -e "$files" ] || files=tests/cli/$item
if [ -e "$kept" ] && [ -e "$files" ] && [ -z "$(find "$files" -newer "$kept" 2>/dev/null)" ]; then
    cat "$kept"
    exit 0
fi
rm -f "$kept"
mkdir -p "$folder" || exit 1
: >"$kept.began" # files changed while it runs are newer than its output
"$@" >"$kept.out" 2>&1
status=$?
cat "$kept.out"
if [ $status -eq 0 ]; then touch -r "$kept.began" "$kept.out" && mv "$kept.out" "$kept"; fi
rm -f "$kept.out" "$kept.began"
exit $status
