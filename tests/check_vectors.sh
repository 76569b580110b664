#!/bin/sh
# usage: check_vectors.sh DIRECTORY PROGRAM...
# Runs every program on each .h5 file of the directory, in a separate process, so that a crash on one file leaves the
# others checked. A program skips files of other kinds. Prints their output, with one closing count of cases instead of
# theirs. Exit status 0 only if nothing failed. Without a directory (the empty word) it runs their own tests, with the
# shared files.
[ $# -ge 2 ] || { echo "usage: check_vectors.sh DIRECTORY PROGRAM..." >&2; exit 2; }
directory=$1
shift
[ -n "$directory" ] || exec sh "$(dirname "$0")/run_unit.sh" "$@"
for file in "$directory"/*.h5; do
    if [ ! -e "$file" ]; then
        echo "$directory: no .h5 files"
        echo "0 passed, 1 failed, 0 skipped"
        break
    fi
    for program in "$@"; do
        "$program" "$file"
        echo "exit status $? of ${program##*/} at ${file##*/}"
    done
done 2>&1 | awk '
    /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ {
        passed += $1; failed += $3; skipped += $5; wrong = $3 > 0
        next
    }
    /^exit status [0-9]+ of / {
        if ($3 && !wrong) {
            failed++
            file = $0
            sub(/^exit status [0-9]+ of [^ ]+ at /, "", file)
            print file ": " $5 " ended with exit status " $3
        }
        wrong = 0
        next
    }
    { print }
    END {
        print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"
        exit failed > 0
    }'
