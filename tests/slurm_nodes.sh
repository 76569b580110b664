#!/bin/sh
# usage: slurm_nodes.sh COMMAND...
# Makes a Slurm cluster of two nodes on this machine, and runs the command on the first one, with NODES=2. The nodes are
# network and process namespaces with separate names, joined by a pair of virtual adapters. They share files, and each
# declares four CPUs. slurmctld runs on the first one.
#     slurm_nodes.sh sh tests/run_mpi.sh build/release-mpi srun srun_killed_rank srun_lost_node sbatch_requeued srun_alone
# Needs root, iproute2, and Debian's slurm-wlm and munge; without them it skips with a message (exit status 77).
set -u
[ $# -ge 1 ] || { echo "usage: slurm_nodes.sh COMMAND..." >&2; exit 2; }
PATH=$PATH:/usr/sbin:/sbin
for program in ip slurmctld slurmd munged mungekey srun; do
    command -v $program >/dev/null || { echo "slurm_nodes: skipped: no $program (apt-get install slurm-wlm munge iproute2)"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "slurm_nodes: skipped: network namespaces need root"; exit 77; }

work=$(mktemp -d) && chmod 755 "$work" || exit 1
pids=
remove_links() { for node in statrec-1 statrec-2; do ip netns delete $node 2>/dev/null; done; }
end() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$pids" ] || { kill -9 $pids; wait $pids; } 2>/dev/null
    remove_links
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# on NODE COMMAND...: with the node's network, name and /etc/hosts.
# shellcheck disable=SC2016 # the inner shell expands them
on() {
    node=$1
    shift
    exec nsenter --net=/run/netns/"$node" unshare --uts --mount sh -c 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"' \
        sh "$node" "$work/hosts" "$@"
}
make_nodes() {
    remove_links # removes the leftovers of a killed call
    ip netns add statrec-1 && ip netns add statrec-2 || return 1
    ip link add joined netns statrec-1 type veth peer name joined netns statrec-2 || return 1
    for number in 1 2; do
        ip netns exec statrec-$number ip address add 10.98.0.$number/24 dev joined || return 1
        for adapter in lo joined; do ip netns exec statrec-$number ip link set $adapter up || return 1; done
        echo "10.98.0.$number statrec-$number"
    done >"$work/hosts"
    echo "127.0.0.1 localhost" >>"$work/hosts"
}
write_configuration() {
    cat >"$work/slurm.conf" <<END
ClusterName=statrec
SlurmctldHost=statrec-1
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work
SlurmdSpoolDir=$work/%n
TmpFS=$work/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/%n.log
ProctrackType=proctrack/linuxproc
SlurmdParameters=config_overrides
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=statrec-[1-2] CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
}
# The daemons stay in the foreground, so that they end with this script.
start_daemons() {
    mkdir "$work/statrec-1" "$work/statrec-2" && mungekey --create --keyfile "$work/munge.key" || return 1
    munged --foreground --force --key-file "$work/munge.key" --socket "$work/munge.socket" --pid-file "$work/munge.pid" \
        --log-file "$work/munge.log" --seed-file "$work/munge.seed" 2>/dev/null &
    pids=$!
    until [ -S "$work/munge.socket" ]; do kill -0 $! || return 1; sleep 0.1; done
    (on statrec-1 slurmctld -D -c) >/dev/null 2>&1 &
    pids="$pids $!"
    for node in statrec-1 statrec-2; do # own processes: ranks of different nodes cannot signal each other
        (on $node unshare --pid --fork --kill-child --mount-proc slurmd -D) >/dev/null 2>&1 &
        pids="$pids $!"
    done
}
# say_why MESSAGE: with the last lines of the daemons.
say_why() {
    echo "slurm_nodes: $1" >&2
    tail -n 5 "$work"/*.log >&2
    exit 1
}

export SLURM_CONF="$work/slurm.conf" NODES=2
export OMPI_MCA_btl_tcp_if_include=10.98.0.0/24 # not the loopback device, which both nodes have
{ make_nodes && write_configuration && start_daemons; } || say_why "the nodes do not start"
for _ in $(seq 300); do
    [ "$( (on statrec-1 sinfo -h -t idle -o %D) 2>/dev/null)" = 2 ] && ready=yes && break
    sleep 0.1
done
[ "${ready-}" = yes ] || say_why "no two idle nodes after 30 s"
(on statrec-1 "$@")
