#!/bin/sh
# usage: threads.sh BUILD             times of steps, in three minutes
#        threads.sh BUILD digests     the same bytes with 1 to 64 threads, all seven cases
# Measures steps of the mini Transformer and of ResNet20, everything recorded, by operation, in three interleaved
# rounds. Uses 1, 2, 4, 8, ... threads up to the cores of this machine (the last: all cores). Then prints the steps that
# bench_step --schedule predicts for 2 to 64 threads, with the memory bandwidth of all cores (bench_limits, triad).
# Rows: model, op, threads, measured or predicted, milliseconds (forward and backward together; the median of rounds),
# ratio to one thread. Run it without other work. PYTHON=one with torch: steps of PyTorch's three variants too. digests:
# exit status 1 if a case has two digests. It needs no cores: more threads than cores take turns.
set -eu
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "$0"; exit 2; }
here=$(dirname "$0")
step=$1/bench/bench_step
[ -x "$step" ] || { echo "threads.sh: no $step: make $step"; exit 1; }

if [ "${2:-}" = digests ]; then
    status=0
    for case in resnet20 resnet18 transformer transformer-ln lm tensorized iwslt; do
        "$step" --digests 2,3,5,8,16,64 $case 1 || status=1
    done
    exit $status
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cores=$(getconf _NPROCESSORS_ONLN)
counts=1
more=2
while [ $more -lt "$cores" ]; do
    counts="$counts $more"
    more=$((2 * more))
done
[ "$cores" -eq 1 ] || counts="$counts $cores"

for round in 1 2 3; do
    for threads in $counts; do
        for case in transformer resnet20; do
            "$step" $case "$threads" 3 "$work/run.h5" 5 > "$work/$case.$threads.$round"
            awk -F '\t' -v threads="$threads" '
                /^# median:/ { split($0, word, " "); step = word[3] }
                /^#/ || $1 == "model" { next }
                { model = $1; print $1 "\t" $2 "\t" threads "\tmeasured\t" $3 + $4 }
                END { print model "\tstep\t" threads "\tmeasured\t" step }' \
                "$work/$case.$threads.$round" >> "$work/rows"
        done
    done
done

"$1/bench/bench_limits" "$cores" 5 > "$work/limits"
bandwidth=$(awk -F '\t' '$1 == "triad" { most = $3 } END { print most }' "$work/limits")
for case in transformer resnet20; do
    "$step" --schedule 2,4,8,16,32,64 $case 3 "$bandwidth" > "$work/schedule"
    awk -F '\t' '
        /^#/ { next }
        $1 == "model" { for (i = 5; i <= NF; i++) if ($i ~ /^predicted/) threads[i] = substr($i, 11); next }
        { for (i in threads) sum[$1 "\t" $2 "\t" threads[i]] += $i }
        END { for (key in sum) print key "\tpredicted\t" sum[key] }' "$work/schedule" >> "$work/rows"
done

if [ -n "${PYTHON:-}" ]; then
    for case in transformer resnet20; do
        for threads in $counts; do
            for variant in plain fused compiled; do
                "$PYTHON" "$here/bench_torch.py" $case --variant $variant --threads "$threads" --rounds 3 |
                    awk -v model="$case" -v variant="$variant" -v threads="$threads" '
                        /^torch/ { print model "\tPyTorch, " variant "\t" threads "\tmeasured\t" $3 }' >> "$work/rows"
            done
        done
    done
fi

printf '# %s\n# cores: %s, memory: %s GB/s; load before: %s\n' "$(sed -n 's/^model name[^:]*: *//p;T;q' /proc/cpuinfo)" \
    "$cores" "$bandwidth" "$(cut -d ' ' -f 1 /proc/loadavg)"
printf 'model\top\tthreads\twhich\tms\tof one thread\n'
sort -t '	' -k 1,1 -k 2,2 -k 4,4 -k 3,3n -k 5,5n "$work/rows" | awk -F '\t' '
    function flush(    middle) {
        if (!n) return
        middle = (value[int((n + 1) / 2)] + value[int(n / 2) + 1]) / 2
        if (threads == 1) one[base] = middle
        printf("%s\t%d\t%s\t%.2f\t%s\n", base_op, threads, which, middle,
            (one[base] > 0) ? sprintf("%.2f", middle / one[base]) : "-")
        n = 0
    }
    { now = $1 "\t" $2 "\t" $3 "\t" $4 }
    now != last { flush(); last = now; base_op = $1 "\t" $2; base = base_op $4; threads = $3; which = $4 }
    { value[++n] = $5 }
    END { flush() }'
