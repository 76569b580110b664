/* ranks_cores.c -- processors for ranks and their threads.
 *
 * mpirun binds one or two ranks to one core each, where OpenMP has one thread. Ranks without
 * binding would each take every core of the host. On a shared host Slurm gives this job some cores.
 * By its configuration, it binds processes to them or not. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ranks/ranks_private.h"

enum { ASK_TEXT = 80 };

/* Cores of the host; then those granted to this run. */
static int online_cores(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static int host_cores(void) {
    const int online = online_cores(), granted = ranks_granted_cores();
    return granted > 0 && granted < online ? granted : online;
}

/* Cores of this process. */
static int own_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int ranks_threads(const ranks *k, int wanted) {
    if (wanted > 0) return wanted;
    const int own = own_cores(), host = host_cores(), part = host / k->neighbours;
    if (own < host) return own; /* bound to them */
    return part > 0 ? part : 1;
}

/* Options that give each rank this number of cores. */
static void ask_for(const ranks *k, int cores, char text[ASK_TEXT]) {
    if (strcmp(k->launcher, "srun") == 0)
        snprintf(text, ASK_TEXT, "srun --cpus-per-task=%d", cores);
    else
        snprintf(text, ASK_TEXT, "mpirun --bind-to none, or --map-by slot:pe=%d", cores);
}

/* A warning about this number of threads, or "". */
static void complain(const ranks *k, int threads, char text[RANKS_TEXT]) {
    const int own = own_cores(), online = online_cores(), host = host_cores();
    char ask[ASK_TEXT];
    *text = 0;
    if (threads > own && own < online) {
        ask_for(k, threads, ask);
        snprintf(text, RANKS_TEXT, "rank %d: %d threads on %d core%s: it is bound to %s; %s",
                 k->rank, threads, own, own == 1 ? "" : "s", own == 1 ? "it" : "them", ask);
    } else if (own < host && k->neighbours * own < host) {
        ask_for(k, host / k->neighbours, ask);
        snprintf(text, RANKS_TEXT, "rank %d: bound to %d of %d cores, of which %d stay idle; %s",
                 k->rank, own, host, host - k->neighbours * own, ask);
    } else if (k->neighbours * threads > host) {
        snprintf(text, RANKS_TEXT,
                 "rank %d: %d rank%s of %d thread%s on the %d core%s %s: steps will be slow",
                 k->rank, k->neighbours, k->neighbours == 1 ? "" : "s", threads,
                 threads == 1 ? "" : "s", host, host == 1 ? "" : "s",
                 host < online ? "that Slurm gave on its host" : "of its host");
    }
}

sr_status ranks_look_at_cores(ranks *k, int threads, char text[RANKS_TEXT], sr_failure *why) {
    *text = 0;
    if (k->count == 1 && !*k->launcher) return SR_OK;
    double *all = calloc((size_t)k->count, sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", k->count);
    char own[RANKS_TEXT];
    complain(k, threads, own);
    all[k->rank] = *own != 0;
    sr_status status = ranks_allgather(k, all, 1, why);
    int first = 0;
    while (first < k->count && all[first] == 0) first++;
    free(all);
    if (status != SR_OK || first == k->count) return status;
    if (first == k->rank) snprintf(text, RANKS_TEXT, "%s", own);
    status = k->kind->broadcast(k, first, text, RANKS_TEXT, why);
    k->broken |= status != SR_OK;
    return status;
}
