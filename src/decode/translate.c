/* translate.c -- sentences of any number and length through a model: batches under a bound of memory,
 * results in the order of the sources. What becomes of a sentence does not depend on its batch
 * (decode.h), so batches are simply filled from the longest source to the shortest.
 */
#include <stdlib.h>
#include <string.h>

#include "statnet/decode.h"

enum { SOURCE_MAX = 1024 };

typedef struct translator {
    const translate_options *o;
    const model *m;
    void *decoder;
    const model_source *source;
    int64_t count;
    int64_t *order; /* [count] numbers of the sources, the longest first */
    bool stopped;
} translator;

translate_options translate_options_default(void) {
    return (translate_options){.beam = beam_options_default(), .max_tokens = 16384, .threads = 1};
}

/* -- checks */

/* Positions that a sentence may take (decode.h). */
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

/* The number of a source at fault goes into *refused. */
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

typedef struct place {
    int64_t length, number;
} place;

static int longer_first(const void *a, const void *b) {
    const place *x = a, *y = b;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static sr_status make_order(translator *t, sr_failure *why) {
    place *p = malloc((size_t)t->count * sizeof *p);
    t->order = malloc((size_t)t->count * sizeof *t->order);
    if (p && t->order) {
        for (int64_t i = 0; i < t->count; i++) p[i] = (place){t->source[i].length, i};
        qsort(p, (size_t)t->count, sizeof *p, longer_first);
        for (int64_t i = 0; i < t->count; i++) t->order[i] = p[i].number;
        free(p);
        return SR_OK;
    }
    free(p);
    return sr_fail(why, SR_MEMORY, "out of memory for %lld sentences", (long long)t->count);
}

/* How many sentences from the first-th of the order on make a batch. */
static int64_t batch_size(const translator *t, int64_t first) {
    const int64_t most = t->o->max_sentences ? t->o->max_sentences : INT64_MAX;
    int64_t count = 0, positions = 0;
    while (first + count < t->count && count < most) {
        positions += positions_of(t->o, t->source[t->order[first + count]].length);
        if (positions > t->o->max_tokens) break;
        count++;
    }
    return count;
}

static sr_status score(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       double *log_p, int32_t *source_at, sr_failure *why) {
    translator *t = context;
    t->stopped = t->o->stop && t->o->stop(t->o->context);
    if (t->stopped) return SR_STATE;
    return t->m->row->decoder->step(t->decoder, rows, parent, token, log_p, source_at, why);
}

static sr_status run_batch(translator *t, int64_t first, int64_t count, translation *out,
                           sr_failure *why) {
    const int64_t *number = t->order + first;
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
    const scorer words = {t, t->m->target_embedding->dim[0], t->o->threads, score};
    if (status == SR_OK) status = t->m->row->decoder->start(t->decoder, source, count, why);
    if (status == SR_OK) status = beam_search(&t->o->beam, &words, count, length, found, why);
    for (int64_t i = 0; i < count && status == SR_OK; i++) out[number[i]] = found[i];
    free(source);
    free(length);
    free(found);
    return status;
}

/* -- all of them */

static void tell(const translator *t, int64_t first, int64_t count, const translation *out,
                 translate_report *r) {
    for (int64_t i = first; i < first + count; i++) {
        const translation *one = &out[t->order[i]];
        if (one->count) r->words += one->item[0].length;
    }
    r->sentences += count;
    if (t->o->progress) t->o->progress(t->o->context, r->sentences, r->words);
}

static sr_status run_all(translator *t, translation *out, translate_report *r, sr_failure *why) {
    sr_status status = make_order(t, why);
    for (int64_t first = 0, size; first < t->count && status == SR_OK; first += size) {
        size = batch_size(t, first);
        status = run_batch(t, first, size, out, why);
        if (status == SR_OK) tell(t, first, size, out, r);
    }
    free(t->order);
    r->stopped = t->stopped;
    return t->stopped ? SR_OK : status;
}

sr_status translate(model *m, const translate_options *o, const model_source *source, int64_t count,
                    translation *out, translate_report *report, sr_failure *why) {
    translator t = {.o = o, .m = m, .source = source, .count = count};
    translate_report unheard, *r = report ? report : &unheard;
    sr_failure own = {0};
    *r = (translate_report){.refused = -1};
    memset(out, 0, (size_t)count * sizeof *out);
    if (!why) why = &own;
    sr_status status = check(&t, &r->refused, why);
    if (status != SR_OK || count == 0) return status;
    t.decoder = m->row->decoder->create(m, o->threads, why);
    status = t.decoder ? run_all(&t, out, r, why) : why->status;
    m->row->decoder->free(t.decoder);
    for (int64_t i = 0; i < count && status != SR_OK; i++) translation_free(&out[i]);
    return status;
}
