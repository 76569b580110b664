#!/bin/sh
# usage: completion.sh BUILDDIR >FILE
# Writes the completion for bash: completion.bash, tables of options from every program's --help (BUILDDIR/help), and
# names from statrec list.
[ $# -eq 1 ] || { echo "usage: completion.sh BUILDDIR >FILE" >&2; exit 2; }
tools=$(dirname "$0") bin=$1/bin help=$1/help
LC_ALL=C
export LC_ALL

# The case of one --help: its options, and the arguments in its usage.
options() {
    awk -v key="$1" '
        /^usage: /, /^$/ { usage = usage " " $0 }
        /^Statistics:$/ { in_statistics = 1; next }
        /^$/ { in_statistics = 0 }
        in_statistics && /^  [a-zA-Z]/ { statistics = statistics (statistics == "" ? "" : "|") $1 }
        /^  [a-z][a-z0-9-]* +[^ ]/ && !in_statistics && !n { rows = rows (rows == "" ? "" : "|") $1 }
        /^  (-[A-Za-z], )?--/ {
            keep()
            line = $0
            letter = ""
            if (match(line, /^  -[A-Za-z], /)) { letter = substr(line, 3, 2); line = "  " substr(line, 7) }
            sub(/^  /, "", line)
            n++
            flag = line ~ /^--\[no-\]/
            sub(/^--\[no-\]/, "--", line)
            name = line
            sub(/ .*/, "", name)
            value = line
            if (flag || value !~ /^[^ ]+ [^ ]+/) value = "-"
            else { sub(/^[^ ]+ /, "", value); sub(/ .*/, "", value) }
            text = $0
            next
        }
        /^                              / { text = text " " $0; next }
        { keep() }
        function keep() {
            if (name == "") return
            if (value == "WORD" && match(text, /\([^()]*\)$/)) {
                value = substr(text, RSTART + 1, RLENGTH - 2)
                sub(/;.*/, "", value)
            }
            if (sub(/,\.\.\.$/, "", value)) value = "," value
            if (value ~ /STAT$/ && statistics != "") value = "," statistics
            if (value ~ /^RUN/) value = "RUN"
            if (value ~ /=/) value = "TEXT"
            out = out " " name "=" value (letter == "" ? "" : " " letter "=" value)
            name = ""
        }
        # options that only the usage line has: [--format tsv|csv|json]
        function of_usage(    rest, word) {
            rest = usage
            while (match(rest, /--[a-z-]+ [a-z]+\|[a-z|]+/)) {
                split(substr(rest, RSTART, RLENGTH), word, " ")
                if (index(out " ", " " word[1] "=") == 0) out = out " " word[1] "=" word[2]
                rest = substr(rest, RSTART + RLENGTH)
            }
        }
        function arguments(    run, checkpoint) {
            sub(/^ *usage: /, "", usage)
            gsub(/\[?-o [^ ]*/, "", usage)
            gsub(/-c FILE[^ ]*/, "", usage)
            run = usage ~ /[A-Z0-9]\.h5/
            checkpoint = usage ~ /X\.ckpt/
            if (key == "statrec train") return ""
            if (run && checkpoint) return "RUN+CKPT"
            if (run) return "RUN"
            if (checkpoint) return "CKPT"
            return usage ~ /TEXT|HYP|PRED|FILE|< / ? "FILE" : ""
        }
        END {
            keep()
            of_usage()
            if (usage ~ /(COMMAND|WHAT|[a-z]+\|[a-z]+\|[a-z]+ \[OPTIONS\])/) out = out " words=" rows
            else if (usage ~ /statplot FIGURE/) out = out " words=FIGURE"
            what = arguments()
            if (what != "" && !(out ~ /words=[a-z]/)) out = out " args=" what
            printf "    \047%s\047) echo \047%s\047 ;;\n", key, substr(out " --version=-", 2)
        }' "$help/$2"
}

# names NAME COMMAND...: keeps the first words of its output.
names() {
    name=$1
    shift
    words=$("$@" | awk '!seen[$1]++ { printf "%s%s", n++ ? " " : "", $1 }')
    [ "$words" ] || { echo "completion: no names for $name" >&2; exit 1; }
    echo "    $name) echo '$words' ;;"
}

presets() { "$bin/statrec" list presets | awk '$2 != "-" { print $2 }'; }
statistics() { sed -n '/^Statistics:/,/^$/s/^  \([^ ]*\) .*/\1/p' "$help/stat-scalar"; }
recorded() { "$bin/statrec" list stats | awk '$2 ~ /^(scalars|vectors)$/'; }
metrics() { "$bin/statrec" list stats | awk '$2 == "evals" && $1 !~ /^(step|epoch)$/'; }
sites() { printf '%s\n' first last last-bn; }
tables() { "$bin/stat-table" --layout list | sed '/^#/d' | tail -n +2; }
published() { sed '/^#/d' "$tools/../plots/published.tsv" | tail -n +2; }
figures() { "$bin/statplot" list; echo report; echo list; }

cat "$tools/completion.bash" || exit 1
echo
echo '_statrec_options() {'
printf '    case %s in\n' "\$1"
for path in "$help"/*; do
    page=$(basename "$path")
    case $page in
    statrec-score-multi-bleu) options "statrec score multi-bleu" "$page" ;;
    statrec*) options "$(echo "$page" | tr - ' ')" "$page" ;;
    *) options "$page" "$page" ;;
    esac
done
echo '    esac'
echo '}'
echo
echo '_statrec_names() {'
printf '    case %s in\n' "\$1"
names MODEL "$bin/statrec" list models
names PRESET presets
names NORM "$bin/statrec" list norms
names DATA "$bin/statrec" list data
names STAT statistics
names NAME recorded
names METRIC metrics
names SITE sites
names TABLE tables
names PUBLISHED published
names FIGURE figures
echo '    esac'
echo '}'
echo
echo "complete -F _statrec statrec statplot $(cd "$bin" && printf '%s ' stat-* | sed 's/ $//')"
