#!/bin/sh
# shellcheck disable=SC2086,SC2046,SC2015,SC2317,SC2043 # lists of words; tests are chains, called by name
# usage: [MPIRUN=COMMAND] [LIMIT=SECONDS] run_mpi.sh BUILDDIR [NAME...]
# Trains in 1 to 4 processes under mpirun, and under srun if it is installed, with the statrec of
# BUILDDIR. Build that with MPI=1. MPIRUN is the mpirun of the MPI that it was built with. Each test
# is a function test_NAME below. A command that takes longer than LIMIT (60 s) hangs; its test fails.
# The script allows root to use mpirun, as containers run as root.
[ $# -ge 1 ] || { echo "usage: run_mpi.sh BUILDDIR [NAME...]" >&2; exit 2; }
TOP=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
BIN=$(cd "$1/bin" && pwd -P) || exit 1
shift
PATH=$BIN:$PATH
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive LC_ALL=C
export PATH OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMP_WAIT_POLICY LC_ALL
unset MAKEFLAGS MAKELEVEL
MPIRUN=${MPIRUN:-mpirun}
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
limit=${LIMIT:-60}

# Only Open MPI needs these options: it limits processes to its slots.
if $MPIRUN --version 2>&1 | grep -q 'Open MPI'; then openmpi=yes over="--oversubscribe --bind-to none"; else openmpi=no over=; fi

# ranks N COMMAND...: runs N processes of the command; output goes to out and err.
ranks() {
    count=$1
    shift
    # shellcheck disable=SC2086 # options
    timeout -k 5 "$limit" $MPIRUN $over -n "$count" "$@" >out 2>err
    status=$?
    [ $status -ne 124 ] || echo "$count processes hang: $*"
    return $status
}

pairs="statrec train --model transformer --embed-dim 32 --ffn-dim 64 --heads 2 --encoder-layers 1
    --decoder-layers 1 --data synth-pairs --max-tokens 600 --lr 0.01 --warmup-updates 4 --seed 3 --quiet
    --threads 1 --force"
images="statrec train --model resnet20 --data synth-images --batch-size 14 --lr 0.001 --seed 3 --quiet
    --threads 1 --force"
short="--max-steps 6 --validate-interval-updates 3"
for python in python3 /usr/bin/python3; do
    "$python" -c 'import h5py' 2>/dev/null && break
done
compare="$python $TOP/tests/compare_runs.py"

digest() { sed -n 's/^# weights_digest: //p' "$1"; }
# says TEXT: fails unless stderr contains the text.
says() { grep -qF -- "$1" err || { echo "stderr lacks: $1"; cat err; return 1; }; }
same() { [ "$1" = "$2" ] || { echo "$1 is not $2"; return 1; }; }

# -- bytes depend only on the number of shards

test_layout() {
    $pairs $short --norm bn --shards 4 --update-freq 2 -o one.h5 >one || return 1
    for n in 1 2 3 4; do
        ranks $n $pairs $short --norm bn --shards 4 --update-freq 2 -o many.h5 || return 1
        same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5 || return 1
    done
    # a method that counts calls and normalizes by running statistics
    $pairs $short --norm pn-released --shards 4 -o one.h5 >one || return 1
    ranks 2 $pairs $short --norm pn-released --shards 4 -o many.h5 && same "$(digest one)" "$(digest out)"
}
test_uneven() {
    for shares in 3 5 9; do
        $pairs $short --norm ln --shards $shares -o one.h5 >one || return 1
        for n in 2 3; do
            ranks $n $pairs $short --norm ln --shards $shares -o many.h5 || return 1
            same "$(digest one)" "$(digest out)" || return 1
        done
    done
}
# Without batch statistics the update equals the update of the undivided batch, with dropout too.
test_whole() {
    $pairs $short --norm ln --dropout 0.3 -o one.h5 >one || return 1
    ranks 3 $pairs $short --norm ln --dropout 0.3 -o many.h5 || return 1
    rows one >a && rows out >b && cmp a b
}
rows() { grep -v '^#' "$1" | cut -f 1-7; }
test_record_ranks() {
    $pairs $short --norm pn --observe batch --shards 3 --record-shards -o one.h5 >one || return 1
    ranks 2 $pairs $short --norm pn --observe batch --shards 3 --record-shards -o many.h5 &&
        $compare one.h5 many.h5
}
# Attentions, activations and pairs cover all shards on any number of ranks. With synchronized
# statistics they equal the values of one process.
of_all="--attention-stats --activations-every 2 --final-tid --final-batches 2 --pairs 5000"
test_record_of_all() {
    for norm in ln bn; do
        $pairs $short $of_all --norm $norm --dropout 0.2 --update-freq 2 --shards 4 -o one.h5 >one || return 1
        for n in 1 2 3 4; do
            ranks $n $pairs $short $of_all --norm $norm --dropout 0.2 --update-freq 2 --shards 4 -o many.h5 || return 1
            same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5 || return 1
        done
    done
    $images --norm bn --limit 29 --max-steps 3 $images_of_all --shards 9 -o one.h5 >one || return 1
    for n in 2 4; do
        ranks $n $images --norm bn --limit 29 --max-steps 3 $images_of_all --shards 9 -o many.h5 &&
            $compare one.h5 many.h5 || return 1
    done
    $pairs $short $of_all --norm bn --decoder-norm bn -o one.h5 >one || return 1
    ranks 3 $pairs $short $of_all --norm bn --decoder-norm bn --sync-norm -o many.h5 && $compare one.h5 many.h5 1e-3
}
images_of_all="--activations-every 1 --final-tid --pairs 100"

# -- synchronized statistics equal the statistics of the whole batch

test_sync() {
    for norm in bn pnv pn "rbn --rbn-scale mean" "un --norm-window 2 --norm-warmup 2 --norm-filter off" "repbn --norm-t0 4"; do
        $pairs $short --norm $norm --observe batch -o one.h5 >one || return 1
        for n in 2 4; do
            ranks $n $pairs $short --norm $norm --observe batch --sync-norm -o many.h5 &&
                $compare one.h5 many.h5 1e-3 || return 1
        done
    done
}
# The second batch has one image; three of four ranks have no rows. A pixel at the edge of a ReLU may flip, which
# changes sums of g by 1e-3 of the largest; few steps make it rare.
test_absent() {
    $images --norm bn --limit 15 --max-steps 2 -o one.h5 >one || return 1
    ranks 4 $images --norm bn --limit 15 --max-steps 2 --sync-norm -o many.h5 &&
        $compare one.h5 many.h5 2e-3 || return 1
    $images --norm bn --limit 29 --max-steps 3 --shards 4 -o one.h5 >one || return 1
    ranks 4 $images --norm bn --limit 29 --max-steps 3 -o many.h5 && same "$(digest one)" "$(digest out)"
}
test_sync_ln_observed() {
    $pairs $short --norm ln --observe batch -o one.h5 >one || return 1
    ranks 3 $pairs $short --norm ln --observe batch --sync-norm -o many.h5 && $compare one.h5 many.h5 1e-3
}

# -- failures

pid_of_rank() {
    for p in $(pgrep -f "train.* $1\$"); do
        tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null |
            grep -Eqx "(OMPI_COMM_WORLD_RANK|PMI_RANK|PMIX_RANK)=$2" && [ "$(readlink "/proc/$p/exe")" = "$BIN/statrec" ] && echo "$p"
    done
}
# steps_of FILE: the steps of the run that writes this file.
steps_of() { statrec info "$1.part" 2>/dev/null | sed -n 's/^steps *\([0-9]*\):.*/\1/p'; }
# wait_for_updates FILE N: waits until the run file has N steps.
wait_for_updates() {
    for _ in $(seq $((limit * 10 / 3))); do
        [ "$(steps_of "$1")0" -ge "${2}0" ] && return 0
        sleep 0.1
    done
    echo "$1: fewer than $2 steps after $((limit / 3)) s"
    return 1
}
long="--norm pn --max-steps 1500 --validate-interval-updates 500 --checkpoint-every 20 --flush-steps 5"
test_killed_rank() {
    $pairs $long --shards 4 -o one.h5 >one || return 1
    ranks 3 $pairs $long --shards 4 -o many.h5 &
    wait_for_updates many.h5 30 || return 1
    victim=$(pid_of_rank many.h5 2)
    kill -9 "$victim" && ! wait $! || return 1
    if [ $openmpi = yes ]; then
        says "rank 2 (process $victim) is gone" || return 1
        statrec info many.h5 | grep -q '^status *failed' || { statrec info many.h5; return 1; }
        statrec info many.h5 | grep -q "^reason *rank 2 (process $victim) is gone" || return 1
    else # MPICH's launcher kills the others at once
        statrec info many.h5.part | grep -Eq '^status *(unfinished|failed)' || return 1
    fi
    ranks 2 statrec resume many.h5 && same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5
}
# Kills a rank at a random moment, STATREC_TORTURE times (default: never; test_killed_rank kills once).
# The other ranks must end by themselves. The files must be readable. The run must resume from its
# newest checkpoint, or start again without one, and give the same weights.
test_rank_dies_anywhere() {
    places=${STATREC_TORTURE:-0}
    [ "$places" -gt 0 ] || { echo "skip: STATREC_TORTURE=N kills N ranks"; return 77; }
    torn="--norm pn --max-steps 300 --validate-interval-updates 100 --checkpoint-every 20 --flush-steps 5 --rank-timeout 20"
    ranks 3 $pairs $torn --shards 4 -o one.h5 || return 1 # fills the file cache, so that the next run times training
    began=$(date +%s%N)
    ranks 3 $pairs $torn --shards 4 -o one.h5 || return 1
    lasts=$((($(date +%s%N) - began) / 1000000))
    cp out one.out
    before=0 number=0 whole=0 resumed=0 anew=0
    while [ $number -lt "$places" ]; do
        rm -f many*
        # seconds: a random moment of the run
        pause=$(awk -v l=$lasts -v s="$number" 'BEGIN { srand(s + 1); rand(); printf "%.3f", rand() * l / 1000 }')
        rank=$((number % 3)) number=$((number + 1))
        after="after $pause s without rank $rank"
        ranks 3 $pairs $torn --shards 4 -o many.h5 &
        launcher=$!
        sleep "$pause"
        victim=$(pid_of_rank many.h5 $rank)
        if [ -n "$victim" ]; then kill -9 "$victim" 2>/dev/null && before=$((before + 1)); fi
        wait $launcher
        [ $? -ne 124 ] || { echo "$after: the others hang"; return 1; }
        look_at_left many "$after" || return 1
        if statrec check many.h5 >told 2>&1; then
            whole=$((whole + 1)) # killed before training began, or after the file was complete
        elif ls many-*.ckpt >/dev/null 2>&1; then
            ranks 2 statrec resume many.h5 || { echo "$after: does not resume from its checkpoint"; cat err; return 1; }
            resumed=$((resumed + 1))
        else
            ranks 2 $pairs $torn --shards 4 -o many.h5 || { echo "$after: does not start again"; cat err; return 1; }
            anew=$((anew + 1))
        fi
        same "$(digest one.out)" "$(statrec info many.h5 | sed -n 's/^weights *//p')" && statrec check many.h5 >told 2>&1 &&
            $compare one.h5 many.h5 >>told 2>&1 || { echo "$after: gives another result"; cat told; return 1; }
    done
    echo "$before of $places ranks were killed: $whole runs were complete, $resumed runs resumed from a checkpoint, $anew started again"
}
# look_at_left RUN WHEN: checks that the run file and checkpoints that a killed run left are readable.
look_at_left() {
    for left in "$1.h5" "$1.h5.part"; do
        [ -e "$left" ] || continue
        statrec info "$left" >told 2>&1 || grep -q 'nothing to read' told || { echo "$2: info:"; cat told; return 1; }
        statrec check "$left" >told 2>&1 || grep -Eq 'nothing to read|(unfinished|failed|interrupted), [0-9]+ steps readable' told &&
            [ "$(grep -c '^statrec: ' told)" -le 2 ] || { echo "$2: check:"; cat told; return 1; }
    done
    for left in "$1"-*.ckpt; do
        [ ! -e "$left" ] || statrec check "$left" >told 2>&1 || { echo "$2: check:"; cat told; return 1; }
    done
}
test_stopped_run() {
    $pairs $long --shards 2 -o one.h5 >one || return 1
    ranks 2 $pairs $long --shards 2 -o many.h5 &
    wait_for_updates many.h5 30 || return 1
    kill -TERM "$(pid_of_rank many.h5 0)"
    wait $!
    statrec info many.h5 | grep -q '^status *interrupted' || { statrec info many.h5; return 1; }
    statrec resume many.h5 >out 2>err && same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5
}
test_silent_rank() {
    ranks 2 $pairs $long --rank-timeout 2 -o many.h5 &
    wait_for_updates many.h5 20 || return 1
    kill -STOP "$(pid_of_rank many.h5 1)"
    ! wait $! && statrec check many.h5 2>&1 | grep -q 'failed, .* steps readable' &&
        statrec info many.h5 | grep -q '^reason .*no answer from the other ranks within 2 s' || return 1
    # MPICH's launcher may exit before it forwards the message
    [ $openmpi = no ] || says "no answer from the other ranks within 2 s"
}
brief="--norm pn --max-steps 500 --validate-interval-updates 200 --checkpoint-every 20 --flush-steps 5"
# A rank that is stopped for some seconds delays the others, and nothing else.
test_paused_rank() {
    $pairs $brief --shards 2 -o one.h5 >one || return 1
    for rank in 0 1; do
        rm -f many*
        ranks 2 $pairs $brief --shards 2 -o many.h5 &
        wait_for_updates many.h5 30 || return 1
        paused=$(pid_of_rank many.h5 $rank)
        kill -STOP "$paused" || return 1
        sleep 2 # messages in transit arrive
        before=$(steps_of many.h5)
        sleep 2
        same "$before" "$(steps_of many.h5)" && kill -CONT "$paused" && wait $! || return 1
        same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5 || return 1
    done
}
# A rank that is stopped for good: SIGTERM to mpirun ends all of them, and the run resumes.
test_stopped_rank() {
    $pairs $long --shards 2 -o one.h5 >one || return 1
    for rank in 0 1; do
        rm -f many*
        timeout -k 5 "$limit" $MPIRUN $over -n 2 $pairs $long --shards 2 -o many.h5 >out 2>err &
        launcher=$!
        wait_for_updates many.h5 60 || return 1
        stopped=$(pid_of_rank many.h5 $rank) other=$(pid_of_rank many.h5 $((1 - rank)))
        kill -STOP "$stopped" && sleep 1 && kill -TERM $launcher || return 1 # timeout sends it on
        ! wait $launcher 2>/dev/null || return 1
        for process in "$stopped" "$other"; do
            for _ in 1 2 3 4 5; do kill -0 "$process" 2>/dev/null && sleep 1; done # the launcher may end first
            ! kill -0 "$process" 2>/dev/null || { echo "rank $rank was stopped: process $process is there"; return 1; }
        done
        statrec check many.h5 >told 2>&1
        grep -Eq '(interrupted|failed|unfinished), [0-9]+ steps readable' told || { cat told err; return 1; }
        ranks 2 statrec resume many.h5 && same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5 || return 1
    done
}
# Rank 0 alone writes. Its full disk ends all ranks with one line, or costs rows alone.
test_full_disk() {
    some="$brief --max-steps 100 --shards 2"
    $pairs $some -o one.h5 >one || return 1
    # calls on the files until then: after the first checkpoint
    for place in .h5.part:1200 .ckpt.part:300; do
        rm -f many*
        on_full_disk $place $pairs $some -o many.h5
        same $status 1 && same "$(grep -c '^statrec' err)" 1 && says "No space left on device" || { cat err; return 1; }
        ! statrec check many.h5 >told 2>&1 || { echo "$place: check calls it complete"; return 1; }
        ranks 2 statrec resume many.h5 && same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5 || { cat err; return 1; }
        rm -f many*
        on_full_disk $place $pairs $some --on-write-error continue -o many.h5
        same $status 1 && same "$(digest one)" "$(digest out)" && says "No space left on device" || { cat err; return 1; }
    done
}
# on_full_disk FILES:CALL COMMAND...: two ranks; files with this ending have no space from this call on.
on_full_disk() {
    place=$1
    shift
    STATREC_FAULT_FILES=${place%:*} STATREC_FAULT=full:${place#*:} PATH=$BIN/../faulty:$PATH ranks 2 "$@"
}
test_resume_with_more() {
    ranks 2 $pairs $long --max-steps 40 -o many.h5 || return 1
    ! ranks 3 statrec resume many.h5 --max-steps 60 && says "3 ranks, but batches of 2 shards" || return 1
    ranks 3 statrec resume many.h5 --max-steps 60 --shards 3 || return 1
    ranks 2 $pairs $long --max-steps 40 --sync-norm -o many.h5 || return 1
    ranks 3 statrec resume many.h5 --max-steps 60
}

# -- rejected options and data

test_refused() {
    ! ranks 2 $pairs --norm mabn --sync-norm -o x.h5 &&
        says "--sync-norm: mabn of site encoder.0.norm1 cannot be synchronized" || return 1
    ! ranks 3 $pairs --shards 2 -o x.h5 && says "3 ranks, but batches of 2 shards" || return 1
    ! ranks 2 $pairs --no-such-option -o x.h5 && says "unknown option" || return 1
    [ "$(grep -c 'unknown option' err)" -eq 1 ] || { echo "every rank printed it"; return 1; }
    ! ranks 2 $pairs -o /nowhere/x.h5 && says "/nowhere/x.h5" || return 1
    [ ! -e x.h5 ] && [ ! -e x.h5.part ]
}
test_other_options() {
    # shellcheck disable=SC2016 # for the shell of each rank
    ! ranks 2 sh -c 'exec "$@" --seed $((3 + ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}))' sh $pairs -o x.h5 &&
        says "rank 1 has other options than rank 0"
}
other_data() {
    # shellcheck disable=SC2016
    ! ranks 2 sh -c 'cd "rank${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"' sh $pairs --data tabbed \
        --data-file text.tsv --columns en,de --source en --target de -o x.h5 &&
        says "rank 1 has other data than rank 0"
}
test_other_data() {
    for r in 0 1; do
        mkdir -p "rank$r"
        awk -v r=$r 'BEGIN { for (i = 0; i < 400; i++) printf "w%d x%d\tv%d y%d\n", i % 7, i % (5 + r), i % 7, i % 3 }' >"rank$r/text.tsv"
    done
    other_data || return 1
    # the same lines, some in another order
    { tail -n 10 rank0/text.tsv | tac && head -n 390 rank0/text.tsv; } >rank1/text.tsv
    tail -n 10 rank0/text.tsv >rank0/text && head -n 390 rank0/text.tsv >>rank0/text && mv rank0/text rank0/text.tsv
    other_data
}
# More threads than the cores that a rank is bound to.
test_binding() {
    [ $openmpi = yes ] && [ "$(nproc)" -ge 2 ] || { echo "skip: not Open MPI, or one core only"; return 77; }
    timeout -k 5 $limit $MPIRUN --oversubscribe -n 1 --bind-to core true >/dev/null 2>&1 ||
        { echo "skip: mpirun cannot bind processes to cores here"; return 77; }
    timeout -k 5 $limit $MPIRUN --oversubscribe -n 2 --bind-to core sh -c 'exec "$@" --threads 2' sh $pairs $short -o x.h5 >out 2>err
    says "2 threads on 1 core: it is bound to it; mpirun --bind-to none" || return 1
    timeout -k 5 $limit $MPIRUN -n 1 --bind-to core sh -c 'exec "$@" --threads 2' sh $pairs $short -o x.h5 >out 2>err
    says "2 threads on 1 core: it is bound to it; mpirun --bind-to none" || return 1
    timeout -k 5 $limit $MPIRUN -n 1 --bind-to none sh -c 'exec "$@" --threads 2' sh $pairs $short -o x.h5 >out 2>err
    [ ! -s err ] || { cat err; return 1; }
}

# -- srun, if Slurm is running and can start two tasks; on one node, or on NODES (slurm_nodes.sh)

nodes_of() { [ "$1" -lt "${NODES:-1}" ] && echo "$1" || echo "${NODES:-1}"; }
# tasks N OPTION... COMMAND...: runs N tasks of the command, even on fewer cores.
tasks() {
    count=$1
    shift
    timeout -k 5 "$limit" srun --quiet --overcommit --immediate=20 -N "$(nodes_of "$count")" -n "$count" "$@" >out 2>err
    status=$?
    [ $status -ne 124 ] || echo "$count tasks hang: $*"
    return $status
}
slurm_is_here() {
    timeout 10 sinfo -h >/dev/null 2>&1 || { echo "skip: Slurm does not answer"; return 77; }
    tasks 2 true || { echo "skip: srun cannot start two tasks: $(cat err)"; return 77; }
}
slurm_has_pmix() {
    slurm_is_here || return 77
    [ $openmpi = yes ] && srun --mpi=list 2>&1 | grep -q pmix || { echo "skip: no srun --mpi=pmix for this MPI"; return 77; }
}
test_srun() {
    slurm_has_pmix || return 77
    $pairs $short --norm bn --shards 4 -o one.h5 >one && ranks 2 $pairs $short --norm bn --shards 4 -o run.h5 || return 1
    for n in 1 2 3; do
        tasks $n --mpi=pmix $pairs $short --norm bn --shards 4 -o many.h5 || { cat err; return 1; }
        same "$(digest one)" "$(digest out)" && $compare one.h5 many.h5 && $compare run.h5 many.h5 || return 1
    done
    tasks 2 --mpi=pmix $pairs $short --norm bn --sync-norm --observe batch -o many.h5 || return 1
    $pairs $short --norm bn --observe batch -o one.h5 >one && $compare one.h5 many.h5 1e-3 || return 1
    tasks 2 --mpi=pmix env OMPI_MCA_mpi_show_mca_params=enviro $pairs $short -o x.h5
    cat out err | grep -q 'mpi_yield_when_idle=' || { echo "Open MPI spins"; cat err; return 1; }
}
test_srun_killed_rank() {
    slurm_has_pmix || return 77
    $pairs $long --shards 4 -o one.h5 >one || return 1
    tasks 2 --mpi=pmix --kill-on-bad-exit=1 $pairs $long --shards 4 -o many.h5 &
    wait_for_updates many.h5 30 || return 1
    victim=$(pid_of_rank many.h5 1)
    kill -9 "$victim" && ! wait $! || return 1
    if [ "${NODES:-1}" = 1 ]; then # a rank on another node cannot be checked; srun ends both
        says "rank 1 (process $victim) is gone" || return 1
        statrec info many.h5 | grep -q "^reason *rank 1 (process $victim) is gone" || return 1
    fi
    resumed_by_srun many
}
resumed_by_srun() {
    tasks 2 --mpi=pmix statrec resume "$1.h5" && same "$(digest one)" "$(digest out)" && $compare one.h5 "$1.h5"
}
# The cable of a node: rank 0 waits for --rank-timeout.
test_srun_lost_node() {
    slurm_has_pmix || return 77
    [ "${NODES:-1}" = 2 ] || { echo "skip: needs the two nodes of slurm_nodes.sh"; return 77; }
    $pairs $long --shards 4 -o one.h5 >one || return 1
    tasks 2 --mpi=pmix $pairs $long --shards 4 --rank-timeout 3 -o many.h5 &
    wait_for_updates many.h5 30 || return 1
    ip netns exec statrec-2 ip link set joined down
    ! wait $! || return 1
    ip netns exec statrec-2 ip link set joined up
    says "rank 0: no answer from the other ranks within 3 s" || return 1
    statrec info many.h5 | grep -q "^status *failed" || return 1
    resumed_by_srun many
}
# As examples/scaling.sbatch: a requeued job resumes from its newest checkpoint. Slurm starts it after two minutes.
test_sbatch_requeued() {
    slurm_has_pmix || return 77
    $pairs $long --shards 4 -o one.h5 >one || return 1
    set -- $pairs $long --shards 4 -o many.h5 # words, without the ends of lines
    begins="$*"
    cat >job.sh <<END
#!/bin/sh
if ls many-*.ckpt >/dev/null 2>&1; then set -- resume many.h5; else set -- ${begins#statrec}; fi
exec srun --mpi=pmix --overcommit statrec "\$@"
END
    job=$(sbatch --parsable --requeue --nodes="${NODES:-1}" --ntasks=2 --overcommit --open-mode=append --output=out job.sh) || return 1
    wait_for_updates many.h5 30 && scontrol requeue "$job" || return 1
    for _ in $(seq 600); do
        [ "$(squeue -h -j "$job" -o %T 2>/dev/null)" ] || break
        sleep 0.5
    done
    grep -q "CANCELLED.*REQUEUE" out || { echo "the job was not requeued"; cat out; return 1; }
    same "$(digest one)" "$(digest out | tail -n 1)" && $compare one.h5 many.h5
}
# Without PMI each task would treat itself as the only one and write the file.
test_srun_alone() {
    slurm_is_here || return 77
    ! tasks 2 --mpi=none $pairs $short -o x.h5 || return 1
    says "srun started 2 processes, MPI found only this one" && says "srun --mpi=pmix" || return 1
    [ ! -e x.h5 ] && [ ! -e x.h5.part ] || return 1
    [ "$(grep -c 'srun started' err)" -eq 1 ] || { echo "every task printed it"; return 1; }
    tasks 1 --mpi=none $pairs $short -o x.h5
}

passed=0 failed=0 skipped=0
[ $# -gt 0 ] || set -- $(sed -n 's/^test_\([a-z_]*\)().*/\1/p' "$TOP/tests/run_mpi.sh")
for name; do
    rm -rf ./* # else wait_for_updates could read the run of the test before
    found=$("test_$name" 2>&1)
    case $? in
    0) passed=$((passed + 1)) && [ -z "$found" ] || printf '%s: %s\n' "$name" "$found" ;;
    77) skipped=$((skipped + 1)) && printf '%s: %s\n' "$name" "$found" ;;
    *) failed=$((failed + 1)) && printf 'FAILED %s\n%s\n' "$name" "$found" ;;
    esac
done
echo "mpi: $passed passed, $failed failed, $skipped skipped ($($MPIRUN --version 2>&1 | sed -n "s,^ *Version: *,MPICH ,p; /Open MPI/p"))"
[ $failed -eq 0 ]
