/* piped_ranks.c -- see piped_ranks.h.
 *
 * Collectives go from rank to rank in order. Pieces and sums have separate pipes. A rank writes at
 * once and reads when it waits, so the data of a test must fit into a pipe. A rank that has ended
 * closes its pipes; the others read end of file. */
#define _GNU_SOURCE 1 /* F_SETPIPE_SZ */
#include "testing/piped_ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/check.h"

enum { PIPE_BYTES = 1 << 20, QUEUED = 64, LONGEST = 300 /* s; one that hangs ends */ };
typedef enum { ALL, THERE, BACK, CHANNELS } channel;

/* Transfers whose rows have not been read, the first ones first. */
typedef struct queue {
    ranks_transfer *item[QUEUED];
    int count;
} queue;

typedef struct piped {
    int in[CHANNELS][PIPED_MOST], out[CHANNELS][PIPED_MOST]; /* by the other rank */
    queue waiting[CHANNELS];
    long exchanges, fails_at;
} piped;

typedef struct trip {
    bool asked, arrived, returning, returned;
    real *to;
} trip;

static piped *piped_of(const ranks *k) {
    return k->own;
}

long piped_exchanges(const ranks *k) {
    return piped_of(k)->exchanges;
}

static sr_status count_exchange(const ranks *k, sr_failure *why) {
    piped *p = piped_of(k);
    if (++p->exchanges != p->fails_at) return SR_OK;
    return sr_fail(why, SR_LIBRARY, "exchange %ld was made to fail", p->exchanges);
}

/* -- bytes ------------------------------------------------------------------------------------- */

static sr_status put(const ranks *k, channel c, int to, const void *data, size_t bytes,
                     sr_failure *why) {
    const char *at = data;
    while (bytes > 0) {
        const ssize_t n = write(piped_of(k)->out[c][to], at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return sr_fail(why, SR_STATE, "rank %d is gone", to);
        at += n, bytes -= (size_t)n;
    }
    return SR_OK;
}

static sr_status get(const ranks *k, channel c, int from, void *data, size_t bytes,
                     sr_failure *why) {
    char *at = data;
    while (bytes > 0) {
        const ssize_t n = read(piped_of(k)->in[c][from], at, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return sr_fail(why, SR_STATE, "rank %d is gone", from);
        at += n, bytes -= (size_t)n;
    }
    return SR_OK;
}

/* -- collectives ------------------------------------------------------------------------------- */

static sr_status spread(ranks *k, int from, void *data, size_t bytes, sr_failure *why) {
    if (from != k->rank) return get(k, ALL, from, data, bytes, why);
    sr_status status = SR_OK;
    for (int r = 0; r < k->count && status == SR_OK; r++)
        if (r != from) status = put(k, ALL, r, data, bytes, why);
    return status;
}

static sr_status broadcast(ranks *k, int from, void *data, size_t bytes, sr_failure *why) {
    const sr_status status = count_exchange(k, why);
    return status == SR_OK ? spread(k, from, data, bytes, why) : status;
}

static sr_status gather(ranks *k, double *all, int64_t width, sr_failure *why) {
    sr_status status = count_exchange(k, why);
    for (int r = 0; r < k->count && status == SR_OK; r++)
        status = spread(k, r, all + r * width, (size_t)width * sizeof *all, why);
    return status;
}

/* -- transfers --------------------------------------------------------------------------------- */

static void enqueue(ranks_transfer *t, channel c) {
    queue *q = &piped_of(t->ranks)->waiting[c];
    if (q->count == QUEUED) abort();
    q->item[q->count++] = t;
}

static sr_status send(ranks_transfer *t, real *const *own, sr_failure *why) {
    const ranks *k = t->ranks;
    t->own = calloc(1, sizeof(trip));
    if (!t->own) return sr_fail(why, SR_MEMORY, "out of memory for a trip");
    sr_status status = count_exchange(k, why);
    for (int r = 0, before = 0; r < k->count; before += t->parts[r++]) {
        const int64_t first = piece_begins(t, r), width = piece_begins(t, r + 1) - first;
        for (int i = 0; i < t->parts[k->rank] && status == SR_OK; i++)
            if (r == k->rank)
                memcpy(t->piece + (before + i) * width, own[i] + first,
                       (size_t)width * sizeof(real));
            else
                status = put(k, THERE, r, own[i] + first, (size_t)width * sizeof(real), why);
    }
    enqueue(t, THERE);
    return status;
}

static sr_status receive_pieces(ranks_transfer *t, sr_failure *why) {
    const ranks *k = t->ranks;
    sr_status status = SR_OK;
    for (int r = 0, before = 0; r < k->count; before += t->parts[r++])
        if (r != k->rank && status == SR_OK)
            status = get(k, THERE, r, t->piece + before * t->width,
                         (size_t)(t->parts[r] * t->width) * sizeof(real), why);
    ((trip *)t->own)->arrived = status == SR_OK;
    return status;
}

static sr_status receive_sums(ranks_transfer *t, sr_failure *why) {
    const ranks *k = t->ranks;
    trip *own = t->own;
    sr_status status = SR_OK;
    for (int r = 0; r < k->count && status == SR_OK; r++) {
        const int64_t first = piece_begins(t, r), width = piece_begins(t, r + 1) - first;
        if (r != k->rank)
            status = get(k, BACK, r, own->to + first, (size_t)width * sizeof(real), why);
    }
    own->returned = status == SR_OK;
    return status;
}

/* Reads the transfers up to this one. */
static sr_status settle(ranks_transfer *t, channel c, sr_failure *why) {
    queue *q = &piped_of(t->ranks)->waiting[c];
    const trip *own = t->own;
    sr_status status = SR_OK;
    while (status == SR_OK && !(c == THERE ? own->arrived : own->returned)) {
        if (q->count == 0) return sr_fail(why, SR_STATE, "a rank is gone"); /* read before */
        ranks_transfer *next = q->item[0];
        memmove(q->item, q->item + 1, (size_t)--q->count * sizeof *q->item);
        status = c == THERE ? receive_pieces(next, why) : receive_sums(next, why);
    }
    return status;
}

/* False at the first call. finish reports a failure. */
static bool here(ranks_transfer *t) {
    trip *own = t->own;
    const bool asked = own->asked;
    own->asked = true;
    return asked && settle(t, THERE, NULL) == SR_OK;
}

static sr_status finish(ranks_transfer *t, sr_failure *why) {
    const sr_status status = count_exchange(t->ranks, why);
    if (status != SR_OK) return status;
    return settle(t, ((const trip *)t->own)->returning ? BACK : THERE, why);
}

static sr_status give_back(ranks_transfer *t, real *to, sr_failure *why) {
    const ranks *k = t->ranks;
    trip *own = t->own;
    sr_status status = count_exchange(k, why);
    if (status == SR_OK) status = settle(t, THERE, why);
    own->returning = true, own->to = to;
    memcpy(to + piece_begins(t, k->rank), t->piece, (size_t)t->width * sizeof(real));
    for (int r = 0; r < k->count && status == SR_OK; r++)
        if (r != k->rank) status = put(k, BACK, r, t->piece, (size_t)t->width * sizeof(real), why);
    enqueue(t, BACK);
    return status;
}

static void forget(ranks_transfer *t) {
    free(t->own);
}

static void close_piped(ranks *k, const sr_failure *failure) {
    (void)failure;
    for (int c = 0; c < CHANNELS; c++)
        for (int r = 0; r < k->count; r++)
            if (r != k->rank) close(piped_of(k)->in[c][r]), close(piped_of(k)->out[c][r]);
    free(k->own);
}

static const ranks_kind ranks_piped = {gather,    broadcast, send,   here,
                                       give_back, finish,    forget, close_piped};

/* -- processes --------------------------------------------------------------------------------- */

/* [channel][from][to]: both ends. */
typedef int ends[CHANNELS][PIPED_MOST][PIPED_MOST][2];

/* The ends of other ranks are closed. */
static void take_ends(piped *p, ends pipe_of, int count, int rank) {
    for (int c = 0; c < CHANNELS; c++)
        for (int from = 0; from < count; from++)
            for (int to = 0; to < count; to++) {
                const int *end = pipe_of[c][from][to];
                if (from == to) continue;
                if (to == rank)
                    p->in[c][from] = end[0];
                else
                    close(end[0]);
                if (from == rank)
                    p->out[c][to] = end[1];
                else
                    close(end[1]);
            }
}

static void run_rank(ends pipe_of, int count, int rank, const piped_fault *fault,
                     int (*body)(ranks *k)) {
    piped *p = calloc(1, sizeof *p);
    ranks *k = ranks_open_one(NULL);
    if (!p || !k) _exit(2);
    signal(SIGPIPE, SIG_IGN);
    alarm(LONGEST);
    take_ends(p, pipe_of, count, rank);
    if (fault && fault->rank == rank) p->fails_at = fault->at;
    k->kind = &ranks_piped, k->rank = rank, k->own = p;
    k->count = k->neighbours = count;
    snprintf(k->text, sizeof k->text, "%d ranks, by pipes", count);
    const int status = body(k);
    ranks_close(k, NULL);
    fflush(NULL);
    _exit(status);
}

int piped_run(int count, const piped_fault *fault, int (*body)(ranks *k)) {
    ends pipe_of;
    pid_t child[PIPED_MOST];
    int failed = 0;
    fflush(NULL);
    for (int c = 0; c < CHANNELS; c++)
        for (int from = 0; from < count; from++)
            for (int to = 0; to < count; to++) {
                if (from == to) continue;
                assert_int_equal(pipe(pipe_of[c][from][to]), 0);
                fcntl(pipe_of[c][from][to][1], F_SETPIPE_SZ, PIPE_BYTES);
            }
    for (int r = 0; r < count; r++) {
        child[r] = fork();
        assert_true(child[r] >= 0);
        if (child[r] == 0) run_rank(pipe_of, count, r, fault, body);
    }
    piped none;
    take_ends(&none, pipe_of, count, -1);
    for (int r = 0; r < count; r++) {
        int status;
        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        if (WIFSIGNALED(status)) fprintf(stderr, "rank %d: signal %d\n", r, WTERMSIG(status));
        failed += status != 0;
    }
    return failed;
}
