# help_page.awk -- a page of the manual from what a program prints for --help.
# usage: awk -f roff.awk -f help_page.awk -v name=PAGE -v does=LINE -v date=DATE -v version=VERSION
#            -v pages="ALL PAGES" -v parent=PAGE PROSE HELP
# PROSE is manual.txt; pages lists every page of section 1 as "statrec-train statplot ...". A line of
# HELP that is none of the forms below is an error: a page must not lose what --help says.
#
#   usage: and lines indented as far as its text        SYNOPSIS
#   Heading:                                            .SS, of options or of a list
#     -o, --output FILE    help (details)               an option; goes on in lines indented to 30
#     word    text                                      a row of a list
#   Exit status: 0 done, 1 failed                       EXIT STATUS
#   Environment: ...                                    ENVIRONMENT
#   anything else that is not indented                  a paragraph

function fail(text) {
    print "help_page: " name ": " text | "cat 1>&2"
    failed = 1
    exit 1
}

FNR == 1 { file++ }

# -- manual.txt: "@ PAGES SECTION" and below it rows "term | text", or paragraphs

file == 1 {
    if (/^#/ || /^$/) next
    if (/^@ /) {
        wanted = page_matches($2)
        section = $0
        sub(/^@ [^ ]+ /, "", section)
    } else if (wanted && index($0, " | ")) {
        more[section] = more[section] tagged(bold(plain(substr($0, 1, index($0, " | ") - 1))), \
            prose(substr($0, index($0, " | ") + 3)))
    } else if (wanted) {
        more[section] = more[section] ".PP\n" fill(prose($0))
    }
    next
}

function page_matches(patterns,    word, n, i) {
    n = split(patterns, word, /,/)
    for (i = 1; i <= n; i++)
        if (name ~ ("^" word[i] "$")) return 1
    return 0
}

# -- help

{ line[++lines] = $0 }

END {
    if (failed) exit 1
    at = 1
    if (line[1] !~ /^usage: /) fail("no usage in the first line")
    for (; line[at] != ""; at++) synopsis(line[at])
    where = "DESCRIPTION"
    for (; at <= lines; at++) block()
    end_paragraph()
    print_page()
}

function synopsis(text,    program) {
    if (text ~ /^        +[^ ]/) { # goes on
        sub(/^ +/, "", text)
        body["SYNOPSIS"] = body["SYNOPSIS"] fill(usage(text))
        return
    }
    if (text !~ /^(usage: |       [^ ])/) fail("line of usage: " text)
    text = substr(text, 8)
    match(text, /^[^ ]+( [a-z][a-z-]*)*( |$)/)
    program = substr(text, 1, RLENGTH)
    sub(/ $/, "", program)
    text = substr(text, RLENGTH + 1)
    body["SYNOPSIS"] = body["SYNOPSIS"] (body["SYNOPSIS"] == "" ? "" : ".br\n") \
        fill(bold(plain(program)) " " usage(text))
}

function say(text) { body[where] = body[where] text }

function is_heading(i) { return line[i] ~ /^[A-Z].*:$/ && line[i - 1] == "" && line[i + 1] ~ /^  [^ ]/ }

function is_option(text) { return text ~ /^  (-[A-Za-z], )?--(\[no-\])?[a-z0-9-]+( [^ ]+)?(  |$)/ }

function block() {
    if (line[at] == "") end_paragraph()
    else if (is_heading(at)) heading(line[at])
    else if (is_option(line[at])) option()
    else if (line[at] ~ /^  [^ ]/) row(substr(line[at], 3))
    else if (line[at] ~ /^[^ ]/) paragraph = paragraph (paragraph == "" ? "" : " ") line[at]
    else fail("a line of no known form: " line[at])
}

function heading(text) {
    end_paragraph()
    if (where == "DESCRIPTION" && body[where] == "" && !is_option(line[at + 1])) {
        say(fill(prose(text)))
        return
    }
    sub(/:$/, "", text)
    if (is_option(line[at + 1])) where = "OPTIONS"
    else if (where == "OPTIONS") {
        if (match(text, / \(.*\)$/)) {
            where = toupper(substr(text, 1, RSTART - 1))
            order[++orders] = where
            say(fill(prose(toupper(substr(text, RSTART + 2, 1)) substr(text, RSTART + 3, RLENGTH - 4) ".")))
        } else order[++orders] = where = toupper(text)
        return
    }
    say(title(".SS", text))
}

function end_paragraph(    i) {
    if (paragraph == "") return
    i = index(paragraph, "Exit status: ")
    if (i) {
        exit_status(substr(paragraph, i + 13))
        paragraph = substr(paragraph, 1, i - 1)
    }
    if (paragraph ~ /^Environment: /)
        body["ENVIRONMENT"] = body["ENVIRONMENT"] fill(prose(substr(paragraph, 14)))
    else if (paragraph != "") say(".PP\n" fill(prose(paragraph)))
    paragraph = ""
}

function option(    text, tag, letter, help) {
    end_paragraph()
    if (where != "OPTIONS") where = "OPTIONS"
    text = substr(line[at], 3)
    help = ""
    if (match(text, /  +/)) {
        help = substr(text, RSTART + RLENGTH)
        text = substr(text, 1, RSTART - 1)
    }
    while (line[at + 1] ~ /^                              [^ ]/) {
        at++
        help = help " " substr(line[at], 31)
    }
    letter = ""
    if (match(text, /^-[A-Za-z], /)) {
        letter = bold(plain(substr(text, 1, 2))) ", "
        text = substr(text, 5)
    }
    match(text, /^[^ ]+/)
    tag = letter bold(plain(substr(text, 1, RLENGTH)))
    if (RLENGTH < length(text)) tag = tag " " italic(plain(substr(text, RLENGTH + 2)))
    say(tagged(tag, prose(help)))
}

# "word    text"; where there is no gap, a tag of one word ("name [shape]" has no text).
function row(text,    tag, rest) {
    end_paragraph()
    if (match(text, /  +/) || (match(text, / /) && text !~ /^[^ ]+ \[[A-Z, ]*\]$/)) {
        tag = substr(text, 1, RSTART - 1)
        rest = substr(text, RSTART + RLENGTH)
    } else {
        tag = text
        rest = ""
    }
    say(tagged(list_tag(tag), prose(rest)))
}

# A page where the word has one; else the first word as it stands, and what it takes.
function list_tag(tag,    first) {
    if (has_page(name "-" tag)) return bold(plain(name "-" tag)) "(1)"
    if (has_page(tag)) return bold(plain(tag)) "(1)"
    first = tag
    sub(/ .*/, "", first)
    return bold(plain(first)) usage(substr(tag, length(first) + 1))
}

# "0 done, 1 failed; 128+n after signal n."
function exit_status(text,    rest) {
    sub(/[.]$/, "", text)
    if (text !~ /^0 /) {
        body["EXIT STATUS"] = fill(prose(toupper(substr(text, 1, 1)) substr(text, 2) "."))
        return
    }
    while (text != "") {
        rest = ""
        if (match(text, /[,;] (1|2|3|128[+]n) /)) {
            rest = substr(text, RSTART + 2)
            text = substr(text, 1, RSTART - 1)
        }
        match(text, / /)
        body["EXIT STATUS"] = body["EXIT STATUS"] \
            tagged(bold(plain(substr(text, 1, RSTART - 1))), prose(substr(text, RSTART + 1)))
        text = rest
    }
}

# -- the page

function has_page(page) { return index(" " pages " ", " " page " ") > 0 }

# Pages that the text speaks of: "statrec list presets", "stat-table".
function see_also(    n, word, i, page, spaced, text, out) {
    for (i = 1; i <= lines; i++) text = text " " line[i]
    n = split(pages, word, / /)
    for (i = 1; i <= n; i++) {
        page = spaced = word[i]
        gsub(/-/, " ", spaced)
        if (page ~ /^stat-|^statplot/) spaced = page
        if (page == name) continue
        if (page == parent || (name !~ /-/ && page ~ /^(statrec|statplot|stat-analyses)$/) || text " " ~ (spaced "[^a-z-]") || \
            (index(page, name "-") == 1 && page !~ ("^" name "-.*-")))
            out = out (out == "" ? "" : ",\n") ".BR " plain(page) " (1)"
    }
    if (name !~ /^statrec-(bpe|score|dictionary|list)/)
        out = out (out == "" ? "" : ",\n") ".BR statrec\\-file (5)"
    gsub(/\(1\),/, "(1),", out)
    return out
}

# A paragraph begins behind a heading anyway.
function section_of(key, text) {
    sub(/^[.]PP\n/, "", text)
    if (text != "") printf "%s%s", title(".SH", key), text
}

function print_page(    i, also, ref, n) {
    printf "%s", page_head(name, 1, date, version)
    section_of("NAME", fill(plain(name) " \\- " plain(does)))
    section_of("SYNOPSIS", body["SYNOPSIS"])
    section_of("DESCRIPTION", body["DESCRIPTION"] more["DESCRIPTION"])
    section_of("OPTIONS", body["OPTIONS"])
    for (i = 1; i <= orders; i++) section_of(order[i], body[order[i]])
    section_of("EXIT STATUS", body["EXIT STATUS"] == "" ? more["EXIT STATUS"] : body["EXIT STATUS"])
    section_of("ENVIRONMENT", body["ENVIRONMENT"] more["ENVIRONMENT"])
    section_of("FILES", more["FILES"])
    section_of("EXAMPLES", more["EXAMPLES"])
    also = see_also()
    gsub(/,\n/, " ,\n", also)
    n = split(also, ref, /\n/)
    also = ""
    for (i = 1; i <= n; i++) {
        sub(/ \(1\) ,$/, " (1),", ref[i])
        also = also ref[i] "\n"
    }
    section_of("SEE ALSO", also)
}
