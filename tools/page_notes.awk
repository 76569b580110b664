# page_notes.awk -- contents of a section 1 page besides --help, as an include file for help2man.
# usage: awk -f roff.awk -f page_notes.awk -v name=PAGE -v pages="ALL PAGES" -v parent=PAGE PROSE HELP
# PROSE is manual.txt; pages lists every page of section 1 as "statrec-train statplot ...". SEE ALSO are the pages that
# HELP mentions.

FNR == 1 { file++ }

# manual.txt: "@ PAGES SECTION" and below it rows "term | text", or paragraphs
file == 1 {
    if (/^#/ || /^$/) next
    if (/^@ /) {
        wanted = page_matches($2)
        section = $0
        sub(/^@ [^ ]+ /, "", section)
    } else if (wanted) {
        if (!(section in notes)) order[++sections] = section
        bar = index($0, " | ")
        notes[section] = notes[section] (bar ? tagged(bold(plain(substr($0, 1, bar - 1))), prose(substr($0, bar + 3))) : \
            ".PP\n" fill(prose($0)))
    }
    next
}

{ text = text " " $0 }

function page_matches(patterns,    word, n, i) {
    n = split(patterns, word, /,/)
    for (i = 1; i <= n; i++)
        if (name ~ ("^" word[i] "$")) return 1
    return 0
}

# "statrec list presets" and "stat-table" mention pages; a page lists its commands' pages, too.
function is_mentioned(page,    spaced) {
    spaced = page
    if (page !~ /^stat-|^statplot/) gsub(/-/, " ", spaced)
    return page == parent || (name !~ /-/ && page ~ /^(statrec|statplot|stat-analyses)$/) || \
        text " " ~ (spaced "[^a-z-]") || (index(page, name "-") == 1 && page !~ ("^" name "-.*-"))
}

END {
    for (i = 1; i <= sections; i++) print "[" tolower(order[i]) "]\n" notes[order[i]]
    print "[see also]"
    n = split(pages, word, / /)
    for (i = 1; i <= n; i++)
        if (word[i] != name && is_mentioned(word[i])) print ".BR " plain(word[i]) " (1),"
    print ".BR statrec\\-file (5)"
}
