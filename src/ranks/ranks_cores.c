/* ranks_cores.c -- processors for ranks and their threads.
 *
 * mpirun with one or two ranks binds each to one core, where OpenMP then has one thread; ranks that are
 * not bound would each take every core of their host. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ranks_inner.h"

/* Of this process; those of its host. */
static int own_cores(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int host_cores(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int ranks_threads(const ranks *k, int wanted) {
    if (wanted > 0) return wanted;
    const int own = own_cores(), part = own / k->neighbours;
    if (own < host_cores()) return own; /* bound: they are its own */
    return part > 0 ? part : 1;
}

/* What stands against so many threads of this rank, or "". */
static void complain(const ranks *k, int threads, char text[RANKS_TEXT]) {
    const int own = own_cores(), host = host_cores();
    *text = 0;
    if (threads > own)
        snprintf(text, RANKS_TEXT,
                 "rank %d: %d threads on %d core%s: it is bound to %s; mpirun --bind-to none, or "
                 "--map-by slot:pe=%d",
                 k->rank, threads, own, own == 1 ? "" : "s", own == 1 ? "it" : "them", threads);
    else if (own < host && k->neighbours * own < host)
        snprintf(
            text, RANKS_TEXT,
            "rank %d: bound to %d of %d cores, of which %d stay idle; mpirun --bind-to none, or "
            "--map-by slot:pe=%d",
            k->rank, own, host, host - k->neighbours * own, host / k->neighbours);
    else if (k->neighbours * threads > host)
        snprintf(text, RANKS_TEXT,
                 "rank %d: %d ranks of %d thread%s on the %d cores of its host: steps will be slow",
                 k->rank, k->neighbours, threads, threads == 1 ? "" : "s", host);
}

sr_status ranks_look_at_cores(ranks *k, int threads, char text[RANKS_TEXT], sr_failure *why) {
    *text = 0;
    if (k->count == 1) return SR_OK;
    double *all = calloc((size_t)k->count, sizeof *all);
    if (!all) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", k->count);
    char own[RANKS_TEXT];
    complain(k, threads, own);
    all[k->rank] = *own != 0;
    sr_status status = ranks_gather(k, all, 1, why);
    int first = 0;
    while (first < k->count && all[first] == 0) first++;
    free(all);
    if (status != SR_OK || first == k->count) return status;
    if (first == k->rank) snprintf(text, RANKS_TEXT, "%s", own);
    status = k->kind->broadcast(k, first, text, RANKS_TEXT, why);
    k->broken |= status != SR_OK;
    return status;
}
