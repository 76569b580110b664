/* thread_ranks.c -- see thread_ranks.h. */
#include "thread_ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"

enum {
    SECONDS = 60
}; /* ranks in different exchanges would wait forever: the signal ends the program */

typedef struct meeting {
    pthread_barrier_t barrier;
    int ranks;
    double *all; /* the current exchange's */
    int64_t width;
    bool fits; /* every rank passed the same width */
} meeting;

typedef struct member {
    meeting *meeting;
    run_exchange exchange;
    thread_ranks_fn *call;
    void *process;
    sr_status status;
    sr_failure why;
} member;

/* All ranks meet in the first one's memory. */
static sr_status gather(void *context, double *all, int64_t width) {
    const member *m = context;
    meeting *at = m->meeting;
    const int rank = m->exchange.rank;
    if (rank == 0) at->all = all, at->width = width;
    pthread_barrier_wait(&at->barrier);
    if (width != at->width) at->fits = false;
    if (rank > 0 && width == at->width)
        memcpy(at->all + rank * width, all + rank * width, (size_t)width * sizeof *all);
    pthread_barrier_wait(&at->barrier);
    if (rank > 0 && at->fits) memcpy(all, at->all, (size_t)(at->ranks * width) * sizeof *all);
    pthread_barrier_wait(&at->barrier);
    return at->fits ? SR_OK : SR_STATE;
}

static void *run(void *context) {
    member *m = context;
    m->status = m->call(m->process, &m->exchange, &m->why);
    return NULL;
}

void thread_ranks_call(int ranks, const int *first, thread_ranks_fn *call, void *const *process) {
    member m[THREAD_RANKS_MAX];
    pthread_t thread[THREAD_RANKS_MAX];
    meeting at = {.ranks = ranks, .fits = true};
    assert_in_range(ranks, 1, THREAD_RANKS_MAX);
    alarm(SECONDS);
    assert_int_equal(pthread_barrier_init(&at.barrier, NULL, (unsigned)ranks), 0);
    for (int k = 0; k < ranks; k++) {
        m[k] = (member){.meeting = &at, .call = call, .process = process[k]};
        m[k].exchange = (run_exchange){gather, &m[k], k, ranks, first};
    }
    for (int k = 0; k < ranks; k++)
        assert_int_equal(pthread_create(&thread[k], NULL, run, &m[k]), 0);
    for (int k = 0; k < ranks; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
    for (int k = 0; k < ranks; k++) check_ok(m[k].status, &m[k].why);
    pthread_barrier_destroy(&at.barrier);
    alarm(0);
}
