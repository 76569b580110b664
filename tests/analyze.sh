#!/bin/sh
# usage: analyze.sh FLAG...
# clang's static analyser, with the compiler flags given, over the modules of src/ that read untrusted files
# (src/MODULES). Exit status 1 after a finding: fix it, or add the missing fact, with a comment, to
# tests/testing/analyze.h. Skips with a message if clang is missing.
cd "$(dirname "$0")/.." || exit 1
command -v clang >/dev/null || { echo "analyze: skipped: clang is not installed"; exit 0; }
findings=$(mktemp) || exit 1
trap 'rm -f "$findings"' EXIT
# status.c defines functions that analyze.h replaces by macros; its headers also come before tool.c asks for X/Open
modules=$(awk -F '[ \t]*[|][ \t]*' '$1 !~ /^[ \t]*[#<"]/ && (" " $4 " ") ~ / untrusted / {print $1}' src/MODULES)
files=$(for module in $modules; do find "src/$module" -name '*.c'; done | LC_ALL=C sort -u | grep -v '^src/base/status.c$')
printf '%s\n' "$files" |
    LC_ALL=C xargs -P "${JOBS:-$(nproc 2>/dev/null || echo 1)}" -n 1 \
        clang --analyze -D_XOPEN_SOURCE=700 -D_GNU_SOURCE= -include tests/testing/analyze.h -Xclang -analyzer-output=text -o /dev/null "$@" 2>"$findings"
ran=$?
count=$(grep -c ': warning: ' "$findings")
status=$((ran != 0 || count != 0))
[ $status -eq 0 ] || cat "$findings"
echo "analyze: $(printf '%s\n' "$files" | wc -l) files, $count findings"
exit $status
