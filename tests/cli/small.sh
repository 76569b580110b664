# small.sh -- sourced by the cases that train: a model of some thousand weights on generated pairs,
# a few hundredths of a second per run.
small="--model transformer --preset mini --embed-dim 16 --ffn-dim 16 --heads 2 --encoder-layers 1
       --decoder-layers 1 --data synth-pairs --max-tokens 256 --threads 1 --quiet"

# train OPTIONS...: a quiet small run; prints the exit status when it is not 0.
train() {
    # shellcheck disable=SC2086 # a list of words
    statrec train $small --max-steps 4 "$@" >train.out
    result=$?
    [ $result -eq 0 ] || echo "exit $result"
    return $result
}

# start FILE OPTIONS...: a run without end in the background, past its second evaluation when this
# returns; its process is $run.
start() {
    file=$1
    shift
    : >run.out # the loop below may read it before the background process creates it
    # A shell starts background programs with SIGINT ignored, and so may the program that runs the tests, as nohup does
    # with SIGHUP. A case that wants a signal ignored sets $signals.
    # shellcheck disable=SC2086 # lists of words
    env ${signals:---default-signal=INT,TERM,HUP} statrec train $small --max-steps 100000000 --epochs 1000000 \
        --record scalars --flush-steps 8 --validate-interval-updates 20 -o "$file" "$@" >>run.out 2>run.err &
    run=$!
    tries=0
    until [ "$(grep -c '^[0-9]' run.out)" -ge 2 ]; do
        tries=$((tries + 1))
        if [ $tries -gt 600 ] || ! kill -0 "$run" 2>/dev/null; then
            echo "the run does not get going:"
            cat run.err
            kill -9 $run 2>/dev/null
            exit 1
        fi
        sleep 0.1
    done
}

# limit_files BLOCKS: limits the size of files. Coverage data of a program that ends are discarded: truncated, they
# would corrupt other processes' data.
limit_files() {
    export GCOV_PREFIX=/dev/null GCOV_ERROR_FILE=/dev/null
    ulimit -f "$1"
}

# A python that has h5py, or the case is skipped.
find_python() {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import h5py' 2>/dev/null && return
    done
    echo "skip: no python3 with h5py"
    exit 77
}

# until_there PATTERN: waits for a file of this name, which the process $run makes. A run keeps only its last
# checkpoints, so a case waits for any of them: until_there 'run-*.ckpt'.
until_there() {
    tries=0
    # shellcheck disable=SC2086 # a pattern
    until ls $1 >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -gt 3000 ] || ! kill -0 "$run" 2>/dev/null; then
            echo "$1 does not come"
            return 1
        fi
        sleep 0.01
    done
}
