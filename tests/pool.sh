# shellcheck shell=sh
# pool.sh -- sourced by the runners of tests: a command for each of many items, JOBS at once.
#
# run_pool DIRECTORY COMMAND ITEM...: runs COMMAND (words) with each item; item I, from 0, leaves its output in
# DIRECTORY/I.log, the output of `times` in DIRECTORY/I.times and its exit status in DIRECTORY/I.status. Prints I when
# the items up to I have ended, so that the caller reports in the given order. At the end it prints the slowest items on
# standard error.
run_pool() {
    pool=$1 pool_command=$2
    shift 2
    pool_item=0
    # shellcheck disable=SC2016 # the inner shell expands these
    for item in "$@"; do
        printf '%s\n%s\n' "$pool_item" "$item"
        pool_item=$((pool_item + 1))
    done | xargs -d '\n' -n 2 -P "${JOBS:-$(nproc 2>/dev/null || echo 1)}" sh -c '
        $2 "$4" >"$1/$3.log" 2>&1 </dev/null
        echo $? >"$1/$3.ended"
        times >"$1/$3.times"
        mv "$1/$3.ended" "$1/$3.status"
        echo "$3"' run "$pool" "$pool_command" | {
        reported=0
        while read -r _; do
            while [ -f "$pool/$reported.status" ]; do
                echo "$reported"
                reported=$((reported + 1))
            done
        done
        slowest "$@" >&2
    }
}

# slowest ITEM...: one line with the ten items of the pool that took most processor seconds, user and system, if all of
# them together took more than a minute.
slowest() {
    pool_item=0
    for item in "$@"; do
        printf '%s %s\n' "${item##*/}" "$(tail -n 1 "$pool/$pool_item.times" | sed 's/[ms]/ /g')"
        pool_item=$((pool_item + 1))
    done | awk '{ print 60 * $2 + $3 + 60 * $4 + $5, $1 }' | sort -rn | awk '
        { all += $1; if (NR <= 10) most = most sprintf("%s %.0f, ", $2, $1) }
        END { if (all > 60) printf "seconds of a processor: %s%.0f in all\n", most, all }'
}
