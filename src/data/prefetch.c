/* prefetch.c -- makes the next training batch in a thread, one batch ahead.
 *
 * The caller's batch is in the buffers of slot `held`, the prefetched one in the other slot.
 * Returning the prefetched batch swaps them. The caller itself makes batches of other splits in
 * `held`, so an evaluation keeps the prefetched batch. A batch is a function of its place, so
 * prefetching does not change it. If no thread can be created, nothing is prefetched.
 */
#include "data/prefetch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef enum { IDLE, WANTED, READY, ENDING } ahead_state;

struct prefetch {
    batch_make *make;
    void *self;
    int held;
    bool running, refused; /* the thread */
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    ahead_state state;
    batch_place place;
    int slot;
    batch made;
    sr_status status;
    sr_failure failure;
};

prefetch *prefetch_create(batch_make *make, void *self) {
    prefetch *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->make = make, p->self = self;
    const bool locked = pthread_mutex_init(&p->lock, NULL) == 0;
    if (locked && pthread_cond_init(&p->changed, NULL) == 0) return p;
    if (locked) pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

static void *run_thread(void *context) {
    prefetch *p = context;
    pthread_mutex_lock(&p->lock);
    while (p->state != ENDING) {
        if (p->state != WANTED) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        const batch_place place = p->place;
        const int slot = p->slot;
        batch made = {0};
        sr_failure failure = {0};
        pthread_mutex_unlock(&p->lock);
        sr_status status = p->make(p->self, slot, place, &made, &failure);
        pthread_mutex_lock(&p->lock);
        p->made = made, p->status = status, p->failure = failure;
        if (p->state == WANTED) p->state = READY;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void prefetch_free(prefetch *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->state = ENDING;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->running) pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Waits for the prefetched batch and takes it if its place is `at`; else drops it. */
static bool take_ahead(prefetch *p, batch_place at, batch *b, sr_status *status,
                       sr_failure *failure) {
    pthread_mutex_lock(&p->lock);
    while (p->state == WANTED) pthread_cond_wait(&p->changed, &p->lock);
    const bool hit = p->state == READY && p->place.split == at.split &&
                     p->place.epoch == at.epoch && p->place.index == at.index;
    if (hit) {
        *b = p->made, *status = p->status, *failure = p->failure;
        p->held = p->slot;
    }
    p->state = IDLE;
    pthread_mutex_unlock(&p->lock);
    return hit;
}

sr_status prefetch_get(prefetch *p, batch_place at, const batch_place *next, batch *b,
                       sr_failure *why) {
    sr_status status = SR_OK;
    sr_failure failure = {0};
    if (!next || !take_ahead(p, at, b, &status, &failure))
        status = p->make(p->self, p->held, at, b, &failure);
    if (status != SR_OK) {
        sr_fail(why, status, "%s", failure.text);
        sr_hint(why, "%s", failure.hint);
        return status;
    }
    if (!next) return SR_OK;
    if (!p->running && !p->refused) { /* without signals, which the main thread handles */
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        p->running = pthread_create(&p->thread, NULL, run_thread, p) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        p->refused = !p->running;
    }
    if (!p->running) return SR_OK;
    pthread_mutex_lock(&p->lock);
    p->place = *next, p->slot = 1 - p->held;
    p->state = WANTED;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return SR_OK;
}
