#!/bin/sh
# usage: citations.sh [CHECKOUT]
# Checks that references exist: pages and sections of docs/*.md that sources cite, such as
# "docs/norms.md 2, 18.1-18.3", relative links in Markdown with their anchors, and the sources of
# test programs that Markdown names. Prints one line, or one line per fault and exits with 1.
top=${1:-$(dirname "$0")/..}
cd "$top" || exit 1
pages=$(find . -maxdepth 1 -name '*.md' | sed 's|^\./||'
    find docs bench sample_runs plots tests -name '*.md' 2>/dev/null)
sources=$(find src include analyses bench examples tools tests plots sample_runs share -type f \
    \( -name '*.[ch]' -o -name '*.py' -o -name '*.sh' -o -name '*.gp' -o -name '*.conf' \) 2>/dev/null |
    grep -v '/citations\.sh$')
if [ -z "$pages" ] || [ -z "$sources" ]; then
    echo "citations: no pages or no sources in $top"
    exit 1
fi
pages=$(echo "$pages" | LC_ALL=C sort)
sources=$(echo "$sources" | LC_ALL=C sort)
# Reads pages twice: the first pass collects headings, the second follows links.
# shellcheck disable=SC2086 # file names contain no blanks
LC_ALL=C awk '
function complain(text) {
    print text
    bad++
}

function exists(path) {
    if (!(path in there)) there[path] = system("test -e \"" path "\"") == 0
    return there[path]
}

# The anchor that GitHub gives a heading.
function slug(text) {
    text = tolower(text)
    gsub(/[^a-z0-9 _-]/, "", text)
    gsub(/ /, "-", text)
    return text
}

function note_heading(page, line,    number) {
    sub(/^#+ +/, "", line)
    anchor[page "#" slug(line)] = 1
    if (match(line, /^[0-9]+(\.[0-9]+)*/)) {
        number = substr(line, 1, RLENGTH)
        if ((page " " number) in section) complain(page ": section " number " occurs twice")
        section[page " " number] = 1
    }
}

function want_section(page, number) {
    cited++
    if (!((page " " number) in section)) complain(FILENAME ":" FNR ": " page " has no section " number)
}

# Checks each section of a list such as "2, 18.1-18.3" at the start of the text.
function follow_list(page, text,    from, to, stem, last, i) {
    while (match(text, /^,? ?[0-9]+(\.[0-9]+)?(-[0-9]+(\.[0-9]+)?)?/)) {
        from = substr(text, 1, RLENGTH)
        text = substr(text, RLENGTH + 1)
        gsub(/[, ]/, "", from)
        to = from
        sub(/.*-/, "", to)
        sub(/-.*/, "", from)
        stem = from ~ /\./ ? substr(from, 1, index(from, ".")) : ""
        last = substr(to, stem == "" ? 1 : index(to, ".") + 1) + 0
        for (i = substr(from, length(stem) + 1) + 0; i <= last; i++) want_section(page, stem i)
        if (substr(from, length(stem) + 1) + 0 > last) complain(FILENAME ":" FNR ": range " from "-" to)
    }
}

function check_source(line,    page) {
    while (match(line, /(docs\/([a-z-]+\/)*)?[a-zA-Z-]+\.md/)) {
        page = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (page !~ /^docs\//) {
            if ((page != "README.md" && exists("docs/" page)) || page ~ /^(norms|models)\.md$/)
                complain(FILENAME ":" FNR ": " page " is cited without its folder, docs/")
            continue
        }
        if (!exists(page)) complain(FILENAME ":" FNR ": no page " page)
        if (line ~ /^ [0-9]/) follow_list(page, substr(line, 2))
        # the section number must be on the same line
        else if (page ~ /\/(norms|models)\.md$/ && line ~ /^($| section)/)
            complain(FILENAME ":" FNR ": " page " is cited without a section, as in \"" page " 2\"")
    }
}

function check_links(page, line,    target, folder) {
    folder = page
    if (!sub(/[^\/]*$/, "", folder)) folder = ""
    while (match(line, /\]\([^)]*\)/)) {
        target = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
        if (target ~ /^(https?|mailto):/) continue
        links++
        if (target ~ /^#/) target = page target
        else target = folder target
        while (sub(/[^\/.]+\/\.\.\//, "", target)) continue
        if (target ~ /\.md#/ ? !(target in anchor) : !exists(target))
            complain(page ":" FNR ": link to " target ", which does not exist")
    }
}

# Each test program that a page names must have a source of that name.
function check_programs(page, line,    program) {
    while (match(line, /build\/release\/tests\/[a-z0-9_\/]+/)) {
        program = substr(line, RSTART + length("build/release/"), RLENGTH - length("build/release/"))
        line = substr(line, RSTART + RLENGTH)
        if (!exists(program ".c")) complain(page ":" FNR ": no source " program ".c")
    }
}

FILENAME ~ /\.md$/ && FNR == 1 { turn[FILENAME]++; fenced = 0 }
FILENAME ~ /\.md$/ && /^```/ { fenced = !fenced; next }
FILENAME ~ /\.md$/ {
    if (fenced) next
    if (turn[FILENAME] == 2) check_links(FILENAME, $0)
    if (turn[FILENAME] == 2) check_programs(FILENAME, $0)
    else if (/^#+ /) note_heading(FILENAME, $0)
    next
}
{ check_source($0) }

END {
    if (!cited) complain("citations: sources cite no section")
    if (bad) exit 1
    print "citations: " cited " cited sections and " links " links exist"
}
' $pages $pages $sources
