/* plain_beam.c -- see plain_beam.h. */
#include "plain_beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "testing/check.h"

typedef struct path {
    int32_t word[PLAIN_WORDS];
    double log_p[PLAIN_WORDS];
    int64_t count, number; /* number: b V + w for a candidate */
    double sum;
} path;

static int better_first(const void *a, const void *b) {
    const path *x = a, *y = b;
    if (x->sum != y->sum) return x->sum > y->sum ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static void keep(translation *t, const beam_options *o, const path *p) {
    hypothesis *h = &t->item[t->count++];
    *h = (hypothesis){.length = p->count, .score = p->sum / pow((double)p->count, o->lenpen)};
    h->log_p = malloc((size_t)p->count * (sizeof *h->log_p + 2 * sizeof *h->token));
    assert_non_null(h->log_p);
    h->token = (int32_t *)(h->log_p + p->count);
    h->source_at = h->token + p->count;
    for (int64_t i = 0; i < p->count; i++) {
        h->token[i] = p->word[i];
        h->log_p[i] = p->log_p[i];
        h->source_at[i] = -1;
    }
}

static path longer(const path *p, int64_t number, int32_t w, double log_p) {
    path q = *p;
    q.word[q.count] = w;
    q.log_p[q.count++] = log_p;
    q.sum += log_p;
    q.number = number;
    return q;
}

static int64_t candidates(const beam_options *o, int64_t longest, int64_t V, plain_next_fn *next,
                          void *context, const path *live, int64_t lives, path *made) {
    double *log_p = malloc((size_t)V * sizeof *log_p);
    int64_t count = 0;
    assert_non_null(log_p);
    for (int64_t b = 0; b < lives; b++) {
        next(context, live[b].word, live[b].count, log_p);
        for (int32_t w = 0; w < V; w++) {
            double p = log_p[w];
            if (w == TOKEN_PAD) p = -INFINITY;
            if (w == TOKEN_UNK) p -= o->unk_penalty;
            if (w == TOKEN_EOS && live[b].count < o->min_len) p = -INFINITY;
            if (w != TOKEN_EOS && live[b].count == longest) p = -INFINITY;
            if (p != -INFINITY) made[count++] = longer(&live[b], b * V + w, w, p);
        }
    }
    free(log_p);
    qsort(made, (size_t)count, sizeof *made, better_first);
    return count < 2 * o->beam ? count : 2 * o->beam;
}

static int higher_first(const void *a, const void *b) {
    const hypothesis *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score; /* no ties in these tests */
}

translation plain_beam(const beam_options *o, int64_t longest, int64_t V, plain_next_fn *next,
                       void *context) {
    const int64_t B = o->beam;
    path *live = calloc((size_t)B, sizeof *live), *made = calloc((size_t)(B * V), sizeof *made);
    translation t = {.item = calloc((size_t)B, sizeof *t.item)};
    int64_t lives = 1;
    assert_true(live && made && t.item && longest < PLAIN_WORDS);
    while (lives > 0 && t.count < B) {
        const int64_t count = candidates(o, longest, V, next, context, live, lives, made);
        lives = 0;
        for (int64_t i = 0; i < count; i++) {
            if (made[i].word[made[i].count - 1] == TOKEN_EOS) {
                if (i < B && t.count < B) keep(&t, o, &made[i]);
            } else if (lives < B) {
                live[lives++] = made[i];
            }
        }
    }
    qsort(t.item, (size_t)t.count, sizeof *t.item, higher_first);
    free(live);
    free(made);
    return t;
}

void plain_compare(const translation *got, const translation *want, double tolerance) {
    assert_int_equal(got->count, want->count);
    for (int64_t i = 0; i < got->count; i++) {
        const hypothesis *a = &got->item[i], *b = &want->item[i];
        assert_int_equal(a->length, b->length);
        for (int64_t j = 0; j < a->length; j++) assert_int_equal(a->token[j], b->token[j]);
        check_near_double("log_p", a->log_p, b->log_p, a->length, 0, tolerance);
        check_near_double("score", &a->score, &b->score, 1, 0, tolerance);
    }
}

void plain_noise(uint64_t seed, const int32_t *word, int64_t count, int64_t V, double *log_p) {
    rng r = rng_create(seed);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) r = rng_split(&r, (uint64_t)word[i] + 1);
    for (int64_t w = 0; w < V; w++) {
        log_p[w] = 2 * rng_normal(&r);
        sum += exp(log_p[w]);
    }
    for (int64_t w = 0; w < V; w++) log_p[w] -= log(sum);
}
