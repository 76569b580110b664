/* ranks_mpi.c -- processes connected by MPI.
 *
 * Every collective starts without waiting; settle waits for it. So the wait ends with the name of a
 * rank that died, failed or does not answer. Four communicators. One for collectives of all ranks;
 * one for shards to their owners; one for shards back, whose order differs between ranks. One for
 * failures, which any rank may send at any time.
 *
 * kill with signal 0 detects dead ranks of the same host; the launcher or the timeout detects
 * others.
 */
#ifdef USE_MPI
#include <errno.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/containers/hash.h"
#include "base/program/progress.h"
#include "ranks/ranks_private.h"

enum { TELL_TAG = 1, TELL_SIZE = 512, HOST_TEXT = 256 };
/* Seconds: between checks for dead ranks; without sleep; with short sleeps. */
static const double look_every = 0.05, look_for = 1e-3, nap_briefly = 0.1;

/* A rank's host (and process namespace) as a number, and its process. */
typedef struct peer {
    int64_t host, process;
} peer;

typedef struct joined {
    MPI_Comm all, there, back, tell;
    peer *peer; /* [count] */
} joined;

static joined *joined_of(const ranks *k) {
    return k->own;
}

static sr_status mpi_failed(int code, const char *what, sr_failure *why) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS) return SR_OK;
    MPI_Error_string(code, text, &length);
    return sr_fail(why, SR_LIBRARY, "MPI: %s: %.300s", what, text);
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* Receives the failure of another rank, if any. */
static sr_status receive_failure(const ranks *k, sr_failure *why) {
    char text[TELL_SIZE];
    int there = 0;
    MPI_Status from;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TELL_TAG, joined_of(k)->tell, &there, &from) != MPI_SUCCESS ||
        !there)
        return SR_OK;
    MPI_Recv(text, sizeof text, MPI_CHAR, from.MPI_SOURCE, TELL_TAG, joined_of(k)->tell,
             MPI_STATUS_IGNORE);
    return sr_fail(why, SR_STATE, "rank %d: %s", from.MPI_SOURCE, text);
}

/* Only for ranks of this host. */
static bool is_gone(const ranks *k, int rank) {
    const peer *p = joined_of(k)->peer + rank;
    return p->host == joined_of(k)->peer[k->rank].host && kill((pid_t)p->process, 0) != 0 &&
           errno == ESRCH;
}

/* Pauses after `waited` seconds. It sleeps late: a TCP message takes 30 to 100 us, a sleep of 20 us
 * lasts 70. MPI moves data only when it is called. Before, it yields the core. */
static void pause_for(double waited) {
    if (waited < look_for) {
        sched_yield();
        return;
    }
    const struct timespec nap = {0, waited < nap_briefly ? 20000 : 500000};
    nanosleep(&nap, NULL);
}

static sr_status settle(ranks *k, MPI_Request *request, bool patient, sr_failure *why) {
    const double began = progress_clock();
    double looked = began;
    for (double now = began;; now = progress_clock()) {
        int done = 0;
        sr_status status = mpi_failed(MPI_Test(request, &done, MPI_STATUS_IGNORE),
                                      "an exchange of the ranks", why);
        if (done || status != SR_OK) return status;
        pause_for(now - began);
        if (now - looked < look_every) continue;
        looked = now;
        if (receive_failure(k, why) != SR_OK) return SR_STATE;
        for (int r = 0; r < k->count; r++)
            if (is_gone(k, r))
                return sr_fail(why, SR_STATE, "rank %d (process %lld) is gone", r,
                               (long long)joined_of(k)->peer[r].process);
        if (!patient && k->seconds > 0 && now - began > k->seconds)
            return sr_fail(why, SR_STATE, "rank %d: no answer from the other ranks within %g s",
                           k->rank, k->seconds);
    }
}

/* -- collectives ------------------------------------------------------------------------------- */

static sr_status gather(ranks *k, double *all, int64_t width, sr_failure *why) {
    MPI_Request request;
    sr_status status =
        mpi_failed(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)width, MPI_DOUBLE,
                                  joined_of(k)->all, &request),
                   "gather", why);
    return status == SR_OK ? settle(k, &request, false, why) : status;
}

static sr_status broadcast(ranks *k, int from, void *data, size_t bytes, sr_failure *why) {
    MPI_Request request;
    sr_status status =
        mpi_failed(MPI_Ibcast(data, (int)bytes, MPI_BYTE, from, joined_of(k)->all, &request),
                   "broadcast", why);
    return status == SR_OK ? settle(k, &request, true, why) : status;
}

/* -- transfers --------------------------------------------------------------------------------- */

/* Lists for MPI_Ialltoallv and MPI_Iallgatherv, [count] each; they must stay until the end. */
typedef struct route {
    int *sent, *sent_from, *got, *got_to;
    MPI_Request request;
} route;

typedef struct journey {
    int routes; /* one per row of the rank with most, and one for the way back */
    route *route;
    int *number; /* the lists' */
    bool returning;
} journey;

static MPI_Datatype real_type(void) {
    return sizeof(real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
}

static journey *make_journey(const ranks_transfer *t) {
    const int count = t->ranks->count;
    int most = 0;
    for (int r = 0; r < count; r++) most = t->parts[r] > most ? t->parts[r] : most;
    journey *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->routes = most;
    j->route = calloc((size_t)most + 1, sizeof *j->route);
    j->number = calloc(4 * (size_t)count * ((size_t)most + 1), sizeof *j->number);
    for (int i = 0; j->route && j->number && i <= most; i++) {
        int *at = j->number + 4 * (size_t)count * (size_t)i;
        j->route[i] = (route){at, at + count, at + 2 * count, at + 3 * count, MPI_REQUEST_NULL};
    }
    return j;
}

static sr_status send(ranks_transfer *t, real *const *own, sr_failure *why) {
    journey *j = t->own = make_journey(t);
    sr_status status = SR_OK;
    if (!j || !j->route || !j->number)
        return sr_fail(why, SR_MEMORY, "out of memory for the lists of %d ranks", t->ranks->count);
    for (int i = 0; i < j->routes && status == SR_OK; i++) {
        route *w = &j->route[i];
        for (int r = 0, before = 0; r < t->ranks->count; before += t->parts[r++]) {
            const int64_t first = piece_begins(t, r), end = piece_begins(t, r + 1);
            w->sent[r] = i < t->parts[t->ranks->rank] ? (int)(end - first) : 0;
            w->sent_from[r] = (int)first;
            w->got[r] = i < t->parts[r] ? (int)t->width : 0;
            w->got_to[r] = (int)((before + i) * t->width);
        }
        const real *row = own[i < t->parts[t->ranks->rank] ? i : 0]; /* any if none is sent */
        status = mpi_failed(MPI_Ialltoallv(row, w->sent, w->sent_from, real_type(), t->piece,
                                           w->got, w->got_to, real_type(),
                                           joined_of(t->ranks)->there, &w->request),
                            "pieces of gradients", why);
    }
    return status;
}

/* A failure stays in its request: ranks_finish reports it. */
static bool here(ranks_transfer *t) {
    const journey *j = t->own;
    int all = 1;
    for (int i = 0; i < j->routes && all; i++)
        MPI_Request_get_status(j->route[i].request, &all, MPI_STATUS_IGNORE);
    return all;
}

static sr_status finish(ranks_transfer *t, sr_failure *why) {
    journey *j = t->own;
    sr_status status = SR_OK;
    const int first = j->returning ? j->routes : 0, end = j->returning ? j->routes + 1 : j->routes;
    for (int i = first; i < end && status == SR_OK; i++)
        status = settle(t->ranks, &j->route[i].request, false, why);
    return status;
}

static sr_status give_back(ranks_transfer *t, real *to, sr_failure *why) {
    journey *j = t->own;
    route *w = &j->route[j->routes];
    sr_status status = finish(t, why);
    if (status != SR_OK) return status;
    for (int r = 0; r < t->ranks->count; r++) {
        w->got_to[r] = (int)piece_begins(t, r);
        w->got[r] = (int)piece_begins(t, r + 1) - w->got_to[r];
    }
    j->returning = true;
    return mpi_failed(MPI_Iallgatherv(t->piece, (int)t->width, real_type(), to, w->got, w->got_to,
                                      real_type(), joined_of(t->ranks)->back, &w->request),
                      "sums of gradients", why);
}

/* Memory of an exchange that did not end belongs to MPI: it stays. */
static void forget(ranks_transfer *t) {
    journey *j = t->own;
    if (!j) return;
    if (t->ranks->broken) {
        t->piece = NULL;
        return;
    }
    free(j->route);
    free(j->number);
    free(j);
}

/* -- the end ----------------------------------------------------------------------------------- */

static void tell(const ranks *k, const sr_failure *failure) {
    char text[TELL_SIZE] = "";
    snprintf(text, sizeof text, "%.500s", failure->text);
    for (int r = 0; r < k->count; r++) {
        MPI_Request request;
        if (r == k->rank) continue;
        MPI_Isend(text, sizeof text, MPI_CHAR, r, TELL_TAG, joined_of(k)->tell, &request);
        MPI_Request_free(&request); /* the text is short enough to go at once */
    }
}

static void close_joined(ranks *k, const sr_failure *failure) {
    joined *j = k->own;
    if (!k->broken && (!failure || k->all_know)) {
        MPI_Finalize();
    } else {
        if (!k->broken && failure) tell(k, failure);
        /* The first rank finishes its files before it ends the others. They wait without an MPI
         * call, as the buffers of an unfinished collective are gone. */
        const double began = progress_clock(), limit = k->seconds > 0 ? k->seconds : 600;
        while (k->rank != 0 && progress_clock() - began < limit && !is_gone(k, 0))
            pause_for(INT64_MAX);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(j->peer);
    free(j);
}

static const ranks_kind ranks_joined = {gather,    broadcast, send,   here,
                                        give_back, finish,    forget, close_joined};

/* -- opening ----------------------------------------------------------------------------------- */

/* Exchanges hosts and processes. Equal host numbers: same boot, same process namespace. */
static sr_status meet(ranks *k, joined *j, sr_failure *why) {
    char text[HOST_TEXT] = "";
    size_t used = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f) used = fread(text, 1, 64, f), fclose(f);
    const ssize_t length = readlink("/proc/self/ns/pid", text + used, sizeof text - used);
    const uint64_t host = hash_bytes(text, used + (size_t)(length > 0 ? length : 0));
    peer own = {(int64_t)(host >> 1), (int64_t)getpid()};
    j->peer = calloc((size_t)k->count, sizeof *j->peer);
    if (!j->peer) return sr_fail(why, SR_MEMORY, "out of memory for %d ranks", k->count);
    sr_status status = mpi_failed(
        MPI_Allgather(&own, 2, MPI_INT64_T, j->peer, 2, MPI_INT64_T, j->all), "meeting", why);
    k->neighbours = 0;
    for (int r = 0; r < k->count; r++) k->neighbours += j->peer[r].host == own.host;
    return status;
}

static int count_hosts(const ranks *k) {
    const peer *p = joined_of(k)->peer;
    int hosts = 0;
    for (int r = 0; r < k->count; r++) {
        int first = 0;
        while (p[first].host != p[r].host) first++;
        hosts += first == r;
    }
    return hosts;
}

static void describe(ranks *k) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0; /* "Open MPI v4.1.4, package: ..." */
    const int hosts = count_hosts(k);
    snprintf(k->text, sizeof k->text, "%d ranks on %d host%s, %.80s", k->count, hosts,
             hosts == 1 ? "" : "s", version);
}

static sr_status join(ranks *k, sr_failure *why) {
    joined *j = k->own = calloc(1, sizeof *j);
    MPI_Comm *const to[] = {&j->all, &j->there, &j->back, &j->tell};
    if (!j) return sr_fail(why, SR_MEMORY, "out of memory for the ranks");
    MPI_Comm_rank(MPI_COMM_WORLD, &k->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &k->count);
    for (int i = 0; i < 4; i++) {
        sr_status status = mpi_failed(MPI_Comm_dup(MPI_COMM_WORLD, to[i]), "communicator", why);
        if (status != SR_OK) return status;
        MPI_Comm_set_errhandler(*to[i], MPI_ERRORS_RETURN);
    }
    k->kind = &ranks_joined;
    sr_status status = meet(k, j, why);
    if (status == SR_OK) describe(k);
    return status;
}

sr_status ranks_mpi_open(ranks *k, sr_failure *why) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK",
                                            "PMIX_RANK"};
    int got;
    bool launched = false; /* one process needs no MPI, which may be missing */
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        launched = launched || getenv(variables[i]);
    if (!launched) return SR_OK;
    /* Open MPI spins in its own waits (begin, end). Only mpirun informs it that cores are short. */
    if (strcmp(k->launcher, "srun") == 0) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &got) != MPI_SUCCESS)
        return sr_fail(why, SR_LIBRARY, "MPI: it cannot start");
    if (got < MPI_THREAD_FUNNELED)
        return sr_fail(why, SR_LIBRARY,
                       "MPI: it allows no other threads (MPI_THREAD_FUNNELED is wanted)");
    return join(k, why);
}
#endif
