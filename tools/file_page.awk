# file_page.awk -- makes statrec-file(5) from the output of file_page for a run file, and from format.h.
# usage: awk -f roff.awk -f file_page.awk -v date=DATE -v version=VERSION PROSE FORMAT.H ROWS
# Types, shapes, units and definitions come from the file. An object without a definition there must have a row in PROSE
# (manual.txt, "@ statrec-file"), and every such row must describe an object in the file.

function fail(text) {
    print "file_page: " text | "cat 1>&2"
    failed = 1
}

FNR == 1 { file++ }

# -- manual.txt

file == 1 && /^@ / {
    section = $2 == "statrec-file" ? substr($0, length("@ statrec-file ") + 1) : ""
    next
}
file == 1 {
    if (section == "" || /^#/ || /^$/) next
    if (section == "OBJECTS") told[substr($0, 1, index($0, " | ") - 1)] = substr($0, index($0, " | ") + 3)
    else if (section == "DESCRIPTION") description = description ".PP\n" fill(prose($0))
    else fail("manual.txt: " section " is no section of statrec-file")
    next
}

# -- format.h: the letters, and the comment that precedes a table, after the sentence of its type

file == 2 && /^#define SR_FORMAT_VERSION / { format_version = $3 }
file == 2 && /^\/\*/ { comment = ""; in_comment = 1 }
file == 2 && in_comment {
    last = /\*\/ *$/
    text = $0
    sub(/ *\*\/ *$/, "", text)
    sub(/^(\/\*| \*) ?/, "", text)
    comment = comment (comment == "" ? "" : " ") text
    if (last) in_comment = 0
    if (last && match(comment, /S sites, T steps.*/)) letters = substr(comment, RSTART)
    next
}
file == 2 && /^#define SR_[A-Z_]*\(X\)/ {
    if (match(comment, /\/[a-z]+/)) {
        group = substr(comment, RSTART, RLENGTH)
        if (i = index(comment, ". ")) note[group] = note[group] " " substr(comment, i + 2)
    }
    comment = ""
    next
}
file == 2 { next }

# -- rows of file_page

{ split($0, f, "\t") }
f[1] == "group" { groups[++group_count] = f[2] }
f[1] == "attribute" {
    if (f[2] == "/" || (f[2] in is_group)) say(f[2], f[3], f[4], attribute_text(f[2], f[3], f[5]))
    else if (f[3] !~ /^(unit|definition|definition_id)$/) {
        split(f[2], part, "/")
        convention("/" part[2], f[3], f[4], f[5])
    }
}
f[1] == "group" { is_group[f[2]] = 1; described[f[2]] = tell(f[2]) }
f[1] == "dataset" {
    name = group = f[2]
    sub(/.*\//, "", name)
    sub(/\/[^\/]*$/, "", group)
    if (f[4] ~ /[?]/ || f[3] == "other") fail(f[2] ": a shape or type without a name: " f[3] " " f[4])
    definition = f[6] != "" ? f[6] : tell(f[2])
    unit = f[5] != "" && f[5] != "1" ? " (" f[5] ")" : ""
    say(group, name, f[3] (f[4] == "" ? "" : " " f[4]), definition unit)
}
f[1] == "link" { links = links tagged(bold(plain(f[2])), "second name of " plain(f[3])) }
f[1] == "family" { families = families tagged(bold(plain(f[2])), prose(f[3])) }

function tell(object) {
    if (!(object in told)) fail(object " has no definition and no row in manual.txt")
    used[object] = 1
    return told[object]
}

function attribute_text(object, name, value) {
    return tell((object == "/" ? "" : object) "@" name) (name == "format" ? ": " value : "")
}

function say(group, name, type, text) {
    rows[group] = rows[group] tagged(bold(plain(name)) "  " italic(plain(type)), prose(text))
}

# Attributes that datasets of a group have alike.
function convention(group, name, type, value) {
    if ((group, name) in seen) return
    seen[group, name] = 1
    if (value == "" || group == "/evals") value = tell(group "/*@" name)
    conventions[group] = conventions[group] tagged(bold(plain(name)) "  " italic(plain(type)), prose(value))
}

END {
    for (object in told)
        if (!(object in used)) fail("manual.txt: nothing in the file is called " object)
    if (letters == "" || format_version == "" || !group_count) fail("format.h or the rows are empty")
    if (failed) exit 1
    printf "%s", page_head("statrec-file", 5, date, version)
    printf "%sstatrec\\-file \\- the run file of statrec, format version %d\n", title(".SH", "NAME"), format_version
    sub(/^[.]PP\n/, "", description)
    printf "%s%s", title(".SH", "DESCRIPTION"), description
    printf ".PP\n%s", fill(prose(letters))
    printf "%s%s", title(".SH", "ATTRIBUTES OF /"), rows["/"]
    printf "%s", title(".SH", "GROUPS AND DATASETS")
    for (i = 1; i <= group_count; i++) {
        group = groups[i]
        printf "%s%s", title(".SS", group), fill(prose(described[group] note[group]))
        printf "%s", rows[group]
        if (conventions[group] != "") printf ".PP\nAttributes of these datasets:\n%s", conventions[group]
    }
    printf "%s%s", title(".SH", "FAMILIES"), fill(prose(tell_families())) families
    printf "%s%s", title(".SH", "DIMENSION SCALES"), links
    printf "%s.BR statrec (1),\n.BR statrec\\-info (1),\n.BR statrec\\-check (1),\n.BR statrec\\-recover (1),\n" \
        ".BR libstatrec (3)\n", title(".SH", "SEE ALSO")
}

function tell_families() { return "What /sites/family says: which formulas hold for the parts of dx at a site." }
