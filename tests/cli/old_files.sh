# old_files.sh -- sourced by the cases that read tests/files: unpacks all of it into the directory of the case.
for packed in "$TOP"/tests/files/*.gz; do
    name=${packed##*/}
    gzip -dc "$packed" >"${name%.gz}" || exit
done
ln -s "$TOP/tests/files/text" text
# shellcheck disable=SC2034 # the cases use it
runs=$(echo *.h5 *.h5.part)

# digest_table COMMAND...: prints the exit status, the number of rows and of finite numbers of the command's table, and
# one number. That is the last one with a fraction in the first row that has one: rounded, with site, statistic and
# column.
digest_table() {
    "$@" >table.tsv 2>messages
    status=$?
    [ $status -eq 0 ] || { echo "$1 $status" && return; }
    printf '%s 0:' "$1"
    awk -F '\t' '
        function is_number(text) { return text ~ /^-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?$/ }
        /^#/ { next }
        !columns { columns = NF; for (i = 1; i <= NF; i++) name[i] = $i; next }
        {
            rows++
            for (i = 1; i <= NF; i++) if (is_number($i)) numbers++
            for (i = NF; i > 0 && !shown; i--) if (is_number($i) && $i ~ /\./) {
                for (j = 1; j < i; j++)
                    if (name[j] ~ /^(site|statistic|metric|question)$/) shown = shown " " $j
                shown = shown " " name[i] " " sprintf("%.3g", $i)
            }
        }
        END { printf " %d rows, %d numbers%s\n", rows, numbers, shown ? "," shown : "" }' table.tsv
}

# numbers: the whole numbers of a text, in a line. These cases do not compare the words of messages.
numbers() { tr -cs '0-9' ' '; }
