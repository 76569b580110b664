/* translate.c -- sentences of any number and length through a model: batches under a bound of
 * memory, results in the order of the sources. A translation does not depend on its batch (beam.h),
 * so batches are filled from the longest source to the shortest.
 *
 * With enough batches, each thread translates its own: the matrices of a step are too small to
 * share. These are POSIX threads. Inside an OpenMP thread every operation would create a team, with
 * memory, a lock and system calls.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "decode/translate.h"

enum { SOURCE_MAX = 1024 };

typedef struct translator {
    const translate_options *o;
    model *m;
    const model_source *source;
    int64_t count;
    int64_t *order; /* [count] numbers of the sources, the longest first */
    int64_t *begin; /* [batches + 1] of each batch in the order */
    int64_t batches, next;
    int64_t failed;   /* the first batch that failed, or batches */
    translation *out; /* [count] */
    translate_report *report;
    sr_failure *why;
} translator;

/* One decoder and its thread. */
typedef struct worker {
    translator *t;
    void *decoder;
    int threads;
    bool stopped;
    pthread_t thread;
} worker;

translate_options translate_options_default(void) {
    return (translate_options){.beam = beam_options_default(), .max_tokens = 16384, .threads = 1};
}

/* -- checks */

/* Positions that a sentence may take (translate.h). */
static int64_t positions_of(const translate_options *o, int64_t length) {
    return length + o->beam.beam * (beam_longest(&o->beam, length) + 1);
}

static sr_status check_source(const translator *t, int64_t number, sr_failure *why) {
    const model_source *s = &t->source[number];
    const int64_t most = t->o->max_source ? t->o->max_source : SOURCE_MAX;
    const int64_t vocabulary = t->m->embedding->dim[0];
    if (s->length < 1 || s->token[s->length - 1] != TOKEN_EOS)
        return sr_fail(why, SR_USAGE, "no </s> at the end");
    if (s->length > most)
        return sr_fail(why, SR_USAGE, "%lld words with </s>, more than %lld", (long long)s->length,
                       (long long)most);
    for (int64_t i = 0; i < s->length; i++)
        if (s->token[i] < 0 || s->token[i] >= vocabulary || s->token[i] == TOKEN_PAD)
            return sr_fail(why, SR_USAGE, "word %lld is token %d of %lld", (long long)i,
                           s->token[i], (long long)vocabulary);
    if (beam_longest(&t->o->beam, s->length) < t->o->beam.min_len)
        return sr_fail(why, SR_USAGE, "a translation of at least %lld words and at most %lld",
                       (long long)t->o->beam.min_len,
                       (long long)beam_longest(&t->o->beam, s->length));
    const int64_t positions = positions_of(t->o, s->length);
    if (positions <= t->o->max_tokens) return SR_OK;
    sr_fail(why, SR_USAGE, "%lld words with </s> may take %lld positions, max-tokens is %lld",
            (long long)s->length, (long long)positions, (long long)t->o->max_tokens);
    sr_hint(why, "--max-tokens %lld, or a smaller --beam or --max-len-b", (long long)positions);
    return SR_USAGE;
}

/* Writes the number of a rejected source to *refused. */
static sr_status check(const translator *t, int64_t *refused, sr_failure *why) {
    const translate_options *o = t->o;
    if (!t->m->row->decoder || !t->m->embedding || !t->m->target_embedding)
        return sr_fail(why, SR_USAGE, "model %s writes no sentences", t->m->row->name);
    if (o->max_tokens < 1 || o->max_sentences < 0 || o->max_source < 0)
        return sr_fail(
            why, SR_USAGE, "batches of %lld positions and %lld sentences, sources of %lld words",
            (long long)o->max_tokens, (long long)o->max_sentences, (long long)o->max_source);
    sr_status status = beam_options_check(&o->beam, why);
    for (int64_t i = 0; i < t->count && status == SR_OK; i++) {
        status = check_source(t, i, why);
        if (status != SR_OK) *refused = i;
    }
    return status;
}

/* -- batches */

typedef struct sentence_length {
    int64_t length, number;
} sentence_length;

static int longer_first(const void *a, const void *b) {
    const sentence_length *x = a, *y = b;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Orders the sources and cuts batches: as many sentences as fit. */
static sr_status make_batches(translator *t, sr_failure *why) {
    const int64_t n = t->count, most = t->o->max_sentences ? t->o->max_sentences : INT64_MAX;
    sentence_length *p = malloc((size_t)n * sizeof *p);
    t->order = malloc((size_t)n * sizeof *t->order);
    t->begin = malloc((size_t)(n + 1) * sizeof *t->begin);
    if (!p || !t->order || !t->begin) {
        free(p);
        return sr_fail(why, SR_MEMORY, "out of memory for %lld sentences", (long long)n);
    }
    for (int64_t i = 0; i < n; i++) p[i] = (sentence_length){t->source[i].length, i};
    qsort(p, (size_t)n, sizeof *p, longer_first);
    int64_t count = 0, positions = 0;
    for (int64_t i = 0; i < n; i++, count++) {
        t->order[i] = p[i].number;
        positions += positions_of(t->o, p[i].length);
        if (i > 0 && count < most && positions <= t->o->max_tokens) continue;
        t->begin[t->batches++] = i;
        count = 0;
        positions = positions_of(t->o, p[i].length);
    }
    t->begin[t->batches] = n;
    t->failed = t->batches;
    free(p);
    return SR_OK;
}

static sr_status score(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       int32_t *source_at, sr_failure *why) {
    worker *w = context;
    const translate_options *o = w->t->o;
    w->stopped = o->stop && o->stop(o->context);
    if (w->stopped) return SR_STATE;
    return w->t->m->row->decoder->step(w->decoder, rows, parent, token, source_at, why);
}

static void log_p(const void *context, int64_t row, int64_t first, int64_t count, double *log_p) {
    const worker *w = context;
    w->t->m->row->decoder->log_p(w->decoder, row, first, count, log_p);
}

static void largest(const void *context, int64_t row, double *log_p) {
    const worker *w = context;
    w->t->m->row->decoder->largest(w->decoder, row, log_p);
}

static sr_status run_batch(worker *w, int64_t turn, sr_failure *why) {
    const translator *t = w->t;
    const int64_t *number = t->order + t->begin[turn], count = t->begin[turn + 1] - t->begin[turn];
    model_source *source = malloc((size_t)count * sizeof *source);
    int64_t *length = malloc((size_t)count * sizeof *length);
    translation *found = calloc((size_t)count, sizeof *found);
    sr_status status =
        source && length && found
            ? SR_OK
            : sr_fail(why, SR_MEMORY, "out of memory for %lld sentences", (long long)count);
    for (int64_t i = 0; i < count && status == SR_OK; i++) {
        source[i] = t->source[number[i]];
        length[i] = source[i].length;
    }
    const scorer words = {w, t->m->target_embedding->dim[0], w->threads, score, log_p, largest};
    if (status == SR_OK) status = t->m->row->decoder->start(w->decoder, source, count, why);
    if (status == SR_OK) status = beam_search(&t->o->beam, &words, count, length, found, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) t->out[number[i]] = found[i];
    free(source);
    free(length);
    free(found);
    return status;
}

/* -- all of them */

/* Batches are taken in order, so all before the first failure are done for any number of
 * threads. */
static void work(worker *w) {
    translator *t = w->t;
    for (;;) {
        sr_failure why = {0};
        int64_t turn;
#pragma omp critical(translate)
        turn = t->failed < t->batches ? t->batches : t->next++;
        if (turn >= t->batches) return;
        const sr_status status = run_batch(w, turn, &why);
#pragma omp critical(translate)
        {
            for (int64_t i = t->begin[turn]; i < t->begin[turn + 1] && status == SR_OK; i++) {
                const translation *one = &t->out[t->order[i]];
                if (one->count) t->report->words += one->item[0].length;
                t->report->sentences++;
            }
            if (status == SR_OK && t->o->progress)
                t->o->progress(t->o->context, t->report->sentences, t->report->words);
            if (status != SR_OK && turn < t->failed) t->failed = turn, *t->why = why;
            t->report->stopped |= w->stopped;
        }
    }
}

static void *run_worker(void *context) {
    work(context);
    return NULL;
}

/* Runs the first worker in this thread. Without a thread for a worker the others do its batches.
 * Only this thread gets signals. */
static void work_together(worker *w, int workers) {
    sigset_t all, before;
    int begun = 1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (begun < workers && pthread_create(&w[begun].thread, NULL, run_worker, &w[begun]) == 0)
        begun++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(&w[0]);
    for (int i = 1; i < begun; i++) pthread_join(w[i].thread, NULL);
}

/* Opens a decoder per worker until memory ends; returns their number. 0: none, and *t->why. */
static int open_workers(translator *t, worker *w, int workers) {
    sr_failure why = {0};
    for (int i = 0; i < workers; i++) {
        w[i] = (worker){.t = t, .threads = workers > 1 ? 1 : t->o->threads};
        w[i].decoder = t->m->row->decoder->create(t->m, w[0].decoder, w[i].threads, &why);
        if (w[i].decoder) continue;
        if (i == 0) *t->why = why;
        return i;
    }
    return workers;
}

static sr_status run_all(translator *t) {
    sr_status status = make_batches(t, t->why);
    const int wanted = t->o->threads > 1 && t->batches >= t->o->threads ? t->o->threads : 1;
    worker *w = calloc((size_t)wanted, sizeof *w);
    if (status == SR_OK && !w) status = sr_fail(t->why, SR_MEMORY, "out of memory");
    const int workers = status == SR_OK ? open_workers(t, w, wanted) : 0;
    if (status == SR_OK && workers == 0) status = t->why->status;
    if (status == SR_OK) {
        work_together(w, workers);
        if (t->failed < t->batches && !t->report->stopped) status = t->why->status;
    }
    for (int i = workers - 1; w && i >= 0; i--) t->m->row->decoder->free(w[i].decoder);
    free(w);
    free(t->begin);
    free(t->order);
    return status;
}

sr_status translate(model *m, const translate_options *o, const model_source *source, int64_t count,
                    translation *out, translate_report *report, sr_failure *why) {
    translate_report unheard, *r = report ? report : &unheard;
    sr_failure own = {0};
    *r = (translate_report){.refused = -1};
    memset(out, 0, (size_t)count * sizeof *out);
    if (!why) why = &own;
    translator t = {o, m, source, count, .out = out, .report = r, .why = why};
    sr_status status = check(&t, &r->refused, why);
    if (status != SR_OK || count == 0) return status;
    status = run_all(&t);
    for (int64_t i = 0; i < count && status != SR_OK; i++) translation_free(&out[i]);
    return status;
}
