#!/bin/sh
# usage: coverage.sh BUILDDIR
# Prints how many lines and branches of each folder the tests have run, from what a build with --coverage left in
# BUILDDIR/obj (`make coverage`). A file that no test runs counts with all its lines and branches. A branch is a way out of a
# condition; it has run if it was taken at least once.
if [ $# -ne 1 ] || [ ! -d "$1/obj" ]; then
    echo "usage: coverage.sh BUILDDIR, of MODE=coverage" >&2
    exit 2
fi
notes=$(find "$1/obj/src" "$1/obj/analyses" -name '*.gcno' 2>/dev/null | LC_ALL=C sort)
[ -n "$notes" ] || { echo "coverage: no .gcno in $1/obj; run make coverage" >&2; exit 1; }
for note in $notes; do
    # gcov also tells of the headers that a file includes; what it cannot open it says on stderr
    source=${note#"$1/obj/"}
    "${GCOV:-gcov}" -n -b -o "$note" "${source%.gcno}.c" 2>/dev/null | awk -v file="${source%.gcno}.c" '
        /^File / { mine = $0 == "File \047" file "\047" }
        mine && /^Lines executed:/ { split($2, part, /[:%]/); lines = $NF; run = part[2] }
        mine && /^Taken at least once:/ { split($4, part, /[:%]/); print file, lines, run, $NF, part[2]; exit }
        mine && /^No branches/ { print file, lines, run, 0, 0; exit }
        mine && /^No executable lines/ { print file, 0, 0, 0, 0; exit }'
done | awk -v files="$(printf '%s\n' "$notes" | wc -l)" '
{
    folder = $1
    sub(/\/[^\/]*$/, "", folder)
    # gcov prints percent with two digits: exact for files below 5,000 lines
    lines[folder] += $2
    run[folder] += int($2 * $3 / 100 + 0.5)
    ways[folder] += $4
    taken[folder] += int($4 * $5 / 100 + 0.5)
    seen++
}
END {
    if (seen != files) {
        printf "coverage: gcov tells of %d of %d files\n", seen, files > "/dev/stderr"
        exit 1
    }
    row("folder", "lines", "run", "percent", "branches", "taken", "percent")
    for (folder in lines) {
        text[++count] = folder
        all += lines[folder]
        all_run += run[folder]
        all_ways += ways[folder]
        all_taken += taken[folder]
    }
    for (i = 2; i <= count; i++)
        for (k = i; k > 1 && text[k] < text[k - 1]; k--) { t = text[k]; text[k] = text[k - 1]; text[k - 1] = t }
    for (i = 1; i <= count; i++)
        row(text[i], lines[text[i]], run[text[i]], percent(lines[text[i]], run[text[i]]),
            ways[text[i]], taken[text[i]], percent(ways[text[i]], taken[text[i]]))
    row("all", all, all_run, percent(all, all_run), all_ways, all_taken, percent(all_ways, all_taken))
}
function percent(whole, part) {
    return whole ? sprintf("%.1f", 100 * part / whole) : "-"
}
function row(a, b, c, d, e, f, g) {
    printf "%-22s %7s %7s %8s %9s %7s %8s\n", a, b, c, d, e, f, g
}'
