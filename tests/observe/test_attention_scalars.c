/* test_attention_scalars.c -- the attention scalars in the run file. Compared with logits and
 * entropies in plain loops in double: from projection weights, site outputs and masks. Also which
 * sites and passes have them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/run_record.h"
#include "recorded_pairs.h"
#include "testing/check.h"

enum { HEADS = 4, DH = D / HEADS };

/* A site's output in the last pass. */
typedef struct given {
    real *y;
    int64_t count;
} given;

static void keep(void *context, const norm_view *o) {
    given *g = context;
    g->count = o->call->rows->rows * D;
    free(g->y);
    g->y = malloc((size_t)g->count * sizeof *g->y);
    assert_non_null(g->y);
    memcpy(g->y, o->y, (size_t)g->count * sizeof *g->y);
}

/* One component of W x + b. */
static double project(const model *m, const char *attention, const char *which, int64_t out,
                      const real *x) {
    char name[2][96];
    snprintf(name[0], sizeof name[0], "%s.%s.weight", attention, which);
    snprintf(name[1], sizeof name[1], "%s.%s.bias", attention, which);
    const param *w = params_find(&m->params, name[0]), *b = params_find(&m->params, name[1]);
    assert_true(w && b);
    double sum = (double)b->t.value[out];
    for (int k = 0; k < D; k++) sum += (double)w->t.value[out * D + k] * (double)x[k];
    return sum;
}

/* One attention: queries [B, Tq] of x, keys [B, Tk] of memory. */
typedef struct asked {
    const char *name, *site;
    const real *x, *memory;
    int64_t B, Tq, Tk;
    const uint8_t *query, *key; /* key NULL: causal */
} asked;

static void plain_head(const model *m, const asked *a, int head, double *largest, double *entropy) {
    double *q = calloc((size_t)(a->B * (a->Tq + a->Tk) * DH), sizeof *q), sum = 0;
    double *k = q + a->B * a->Tq * DH;
    int64_t count = 0;
    for (int64_t i = 0; i < a->B * a->Tq * DH; i++)
        q[i] = project(m, a->name, "q", head * DH + i % DH, a->x + i / DH * D) / sqrt(DH);
    for (int64_t i = 0; i < a->B * a->Tk * DH; i++)
        k[i] = project(m, a->name, "k", head * DH + i % DH, a->memory + i / DH * D);
    *largest = -INFINITY;
    for (int64_t i = 0; i < a->B * a->Tq; i++) {
        double S[256], total = 0;
        if (!a->query[i]) continue;
        for (int64_t j = 0; j < a->Tk; j++) {
            const int64_t at = i / a->Tq * a->Tk + j;
            const bool hidden = a->key ? !a->key[at] : j > i % a->Tq;
            S[j] = 0;
            for (int h = 0; h < DH; h++) S[j] += q[i * DH + h] * k[at * DH + h];
            if (hidden) S[j] = -INFINITY;
            *largest = fmax(*largest, S[j]);
            total += exp(S[j]);
        }
        for (int64_t j = 0; j < a->Tk; j++)
            if (S[j] > -INFINITY) sum -= exp(S[j]) / total * (S[j] - log(total));
        count++;
    }
    *entropy = sum / (double)count;
    free(q);
}

static double recorded(const sr_runfile *f, const char *name, int head, const char *site) {
    char full[64];
    float value;
    sr_failure why = {0};
    snprintf(full, sizeof full, head < 0 ? "%s" : "%s_head%d", name, head);
    check_ok(sr_run_scalar(f, full, sr_run_find_site(f, site), 0, 1, &value, &why), &why);
    return (double)value;
}

static void check_attention(const sr_runfile *f, const model *m, const asked *a) {
    double largest[HEADS], entropy[HEADS], most = -INFINITY, mean = 0;
    for (int h = 0; h < HEADS; h++) {
        plain_head(m, a, h, &largest[h], &entropy[h]);
        most = fmax(most, largest[h]);
        mean += entropy[h] / HEADS;
        const double got[2] = {recorded(f, "attention_logit_max", h, a->site),
                               recorded(f, "attention_entropy", h, a->site)};
        check_near_double(a->name, got, (double[]){largest[h], entropy[h]}, 2, 1e-5, 1e-5);
    }
    const double all[2] = {recorded(f, "attention_logit_max", -1, a->site),
                           recorded(f, "attention_entropy", -1, a->site)};
    check_near_double(a->name, all, (double[]){most, mean}, 2, 1e-5, 1e-5);
}

/* Sites of recorded_pairs.h's model. */
enum { NORM1, NORM2, ENCODED, SELF, CROSS, FFN_NORM };

static void against_plain_loops(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    given of[SITES] = {{NULL, 0}};
    run_record_options o = pairs_options("attention.h5");
    o.attention = true;
    run_record *r = pairs_begin(&x, &o);
    for (int i = 0; i < SITES; i++) {
        x.m->site[i]->forward_hook = keep;
        x.m->site[i]->hook_context = &of[i];
        x.m->site[i]->backward_hook = NULL;
    }
    pairs_step(&x, r, 1, false);
    sr_runfile *f = pairs_end(r, "complete", "attention.h5");
    const batch b = pairs_batch(&x, 1);
    const int64_t B = b.count, S = b.source_length, T = b.target_length;
    int64_t words = 0;
    for (int64_t i = 0; i < B * T; i++) words += b.target_mask[i];
    assert_true(words < B * T); /* the batch has padding, which must not count */
    check_attention(f, x.m,
                    &(asked){"encoder.0.attention", "encoder.0.norm1", of[NORM1].y, of[NORM1].y, B,
                             S, S, b.source_mask, b.source_mask});
    check_attention(f, x.m,
                    &(asked){"decoder.0.self_attention", "decoder.0.self", of[SELF].y, of[SELF].y,
                             B, T, T, b.target_mask, NULL});
    check_attention(f, x.m,
                    &(asked){"decoder.0.cross_attention", "decoder.0.cross", of[CROSS].y,
                             of[ENCODED].y, B, T, S, b.target_mask, b.source_mask});
    assert_true(isnan(recorded(f, "attention_entropy", -1, "encoder.0.norm2")));
    assert_true(isnan(recorded(f, "attention_logit_max", 3, "decoder.final")));
    sr_run_close(f);
    for (int i = 0; i < SITES; i++) free(of[i].y);
    pairs_free(&x);
}

/* Passes other than training, and sites that are not recorded. */
static void what_is_left_out(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    static const task_options plain = {.label_smoothing = NAN};
    run_record_options o = pairs_options("attention.h5");
    o.attention = true;
    o.sites = "encoder.*";
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    run_record_begin_step(r, 2, false);
    const batch b = pairs_batch(&x, 0);
    pass p = {.tape = x.t, .batch = &b, .mode = NORM_BATCH};
    tape_reset(x.t, rng_create(3), true, true);
    assert_non_null(task_loss(task_of(b.task), &plain, x.m, &p, NULL));
    pairs_exchange(&r, 1, (const int[]){0, 1});
    pairs_end_step(r, 2);
    sr_runfile *f = pairs_end(r, "complete", "attention.h5");
    float value[2];
    sr_failure why = {0};
    const int64_t site = sr_run_find_site(f, "encoder.0.norm1");
    check_ok(sr_run_scalar(f, "attention_entropy_head2", site, 0, 2, value, &why), &why);
    check_above(value[0], 0);
    assert_true(isnan(value[1]));
    sr_run_close(f);
    for (int i = 0; i < x.m->attentions; i++) assert_null(x.m->attention[i]->hook);
    pairs_free(&x);
}

/* Without the option the column does not exist. */
static void unasked(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    const run_record_options o = pairs_options("plain.h5");
    run_record *r = pairs_begin(&x, &o);
    for (int i = 0; i < x.m->attentions; i++) assert_null(x.m->attention[i]->hook);
    pairs_step(&x, r, 1, false);
    sr_runfile *f = pairs_end(r, "complete", "plain.h5");
    assert_false(sr_run_has_scalar(f, "attention_entropy"));
    sr_run_close(f);
    pairs_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_plain_loops),
        cmocka_unit_test(what_is_left_out),
        cmocka_unit_test(unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
