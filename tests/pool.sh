# shellcheck shell=sh
# pool.sh -- sourced by the runners of tests: a command for each of many items, JOBS at once.
#
# run_pool DIRECTORY COMMAND ITEM...: runs COMMAND (words) with each item; item I, from 0, leaves its output
# in DIRECTORY/I.log and its exit status in DIRECTORY/I.status. Prints I when the items up to I have ended,
# so that the caller reports in the given order.
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
        echo $? >"$1/$3.ended" && mv "$1/$3.ended" "$1/$3.status"
        echo "$3"' run "$pool" "$pool_command" | {
        reported=0
        while read -r _; do
            while [ -f "$pool/$reported.status" ]; do
                echo "$reported"
                reported=$((reported + 1))
            done
        done
    }
}
