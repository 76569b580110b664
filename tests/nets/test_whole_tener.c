/* The complete entity tagger with LN against its definition (docs/models.md 5) in double. Takes one
 * sentence at a time without padding: nll by a sum over all paths, and the best path. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tag_batch.h"
#include "testing/check.h"

#ifdef REAL_DOUBLE
static const double CLOSE = 1e-9;
#else
static const double CLOSE = 2e-4;
#endif

enum { ROOM = 64, LONGEST = 8, LAYERS = 2 };

/* Rows of `d` numbers. */
typedef struct rows {
    int n, d;
    double x[LONGEST][ROOM * 2];
} rows;

static const tensor *parameter(const model *m, const char *side, const char *name) {
    char full[3 * PARAM_NAME];
    snprintf(full, sizeof full, "%s%s%s", side, *side ? "." : "", name);
    const param *p = params_find(&m->params, full);
    if (!p) fail_msg("no parameter %s", full);
    return &p->t;
}

/* y = x W^T + b; b NULL: none. */
static void linear(const rows *x, const tensor *w, const tensor *b, rows *y) {
    y->n = x->n;
    y->d = (int)w->dim[0];
    for (int i = 0; i < x->n; i++)
        for (int o = 0; o < y->d; o++) {
            y->x[i][o] = b ? (double)b->value[o] : 0;
            for (int k = 0; k < x->d; k++)
                y->x[i][o] += (double)w->value[o * x->d + k] * x->x[i][k];
        }
}

static void named_linear(const model *m, const char *side, const char *name, const rows *x,
                         rows *y) {
    char weight[PARAM_NAME], bias[PARAM_NAME];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    linear(x, parameter(m, side, weight), parameter(m, side, bias), y);
}

/* LN of the `d` numbers of each row from column `first` on. */
static void normalize_part(const model *m, const char *side, const char *name, rows *x, int first,
                           int d) {
    char gain[PARAM_NAME], shift[PARAM_NAME];
    snprintf(gain, sizeof gain, "%s.gamma", name);
    snprintf(shift, sizeof shift, "%s.beta", name);
    const tensor *gamma = parameter(m, side, gain), *beta = parameter(m, side, shift);
    assert_int_equal(gamma->count, d);
    for (int i = 0; i < x->n; i++) {
        double mean = 0, square = 0, *row = x->x[i] + first;
        for (int k = 0; k < d; k++) mean += row[k] / d;
        for (int k = 0; k < d; k++) square += pow(row[k] - mean, 2) / d;
        for (int k = 0; k < d; k++)
            row[k] = (double)gamma->value[k] * (row[k] - mean) / sqrt(square + 1e-5) +
                     (double)beta->value[k];
    }
}

static void normalize(const model *m, const char *side, const char *name, rows *x) {
    normalize_part(m, side, name, x, 0, x->d);
}

/* Norms of the queries and keys of the words' heads, if the model has them. */
static void normalize_heads(const model *m, const char *side, int heads, rows *qkv) {
    const int d = qkv->d / 3, dh = d / heads;
    if (!params_find(&m->params, "encoder.0.attention.q_norm.gamma") || strncmp(side, "enc", 3))
        return;
    for (int h = 0; h < heads; h++) {
        normalize_part(m, side, "attention.q_norm", qkv, h * dh, dh);
        normalize_part(m, side, "attention.k_norm", qkv, d + h * dh, dh);
    }
}

static double R(int t, int m, int dh) {
    const int half = dh / 2;
    const double w = exp(-(double)(m % half) * log(10000) / (half - 1));
    return m < half ? sin(t * w) : cos(t * w);
}

static void attend(const model *m, const char *side, int heads, const rows *x, rows *y) {
    const int d = x->d, dh = d / heads;
    const tensor *u = parameter(m, side, "attention.u"), *z = parameter(m, side, "attention.z");
    rows qkv;
    linear(x, parameter(m, side, "attention.qkv.weight"), NULL, &qkv);
    normalize_heads(m, side, heads, &qkv);
    *y = (rows){x->n, d, {{0}}};
    for (int h = 0; h < heads; h++)
        for (int i = 0; i < x->n; i++) {
            double p[LONGEST], all = 0;
            for (int j = 0; j < x->n; j++) {
                double S = 0;
                for (int k = 0; k < dh; k++) {
                    const int at = h * dh + k;
                    const double q = qkv.x[i][at], key = qkv.x[j][d + at];
                    S += q * key + (double)u->value[at] * key + q * R(j - i, k, dh) +
                         (double)z->value[at] * R(j - i, k, dh) + key * R(i - j, k, dh);
                }
                all += p[j] = exp(S);
            }
            for (int j = 0; j < x->n; j++)
                for (int k = 0; k < dh; k++)
                    y->x[i][h * dh + k] += p[j] / all * qkv.x[j][2 * d + h * dh + k];
        }
}

static void add(rows *x, const rows *y) {
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < x->d; k++) x->x[i][k] += y->x[i][k];
}

static void rectify(rows *x) {
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < x->d; k++) x->x[i][k] = fmax(0, x->x[i][k]);
}

static void layer(const model *m, const char *side, int heads, bool pre, rows *x) {
    rows h = *x, y;
    if (pre) normalize(m, side, "norm1", &h);
    attend(m, side, heads, &h, &y);
    add(x, &y);
    if (!pre) normalize(m, side, "norm1", x);
    h = *x;
    if (pre) normalize(m, side, "norm2", &h);
    named_linear(m, side, "ffn_block.in", &h, &y);
    rectify(&y);
    named_linear(m, side, "ffn_block.out", &y, &h);
    add(x, &h);
    if (!pre) normalize(m, side, "norm2", x);
}

/* -- a word's characters */

static void characters_of(const model *m, const tag_batch *said, int64_t place, bool cnn,
                          double *y) {
    const int64_t C = said->b.word_length;
    const tensor *table = parameter(m, "characters", "embedding");
    rows x = {0, 30, {{0}}}, h;
    for (int64_t c = 0; c < C && said->character[place * C + c]; c++, x.n++)
        for (int k = 0; k < 30; k++)
            x.x[c][k] = (double)table->value[said->character[place * C + c] * 30 + k];
    if (cnn) {
        rows wide = {x.n, 90, {{0}}};
        for (int c = 0; c < x.n; c++)
            for (int n = 0; n < 3; n++)
                for (int k = 0; k < 30; k++)
                    wide.x[c][n * 30 + k] = c + n < 1 || c + n > x.n ? 0 : x.x[c + n - 1][k];
        named_linear(m, "characters", "filters", &wide, &h);
    } else {
        layer(m, "characters", 3, false, &x);
        h = x;
    }
    for (int k = 0; k < 30; k++) {
        y[k] = h.x[0][k];
        for (int c = 1; c < h.n; c++) y[k] = fmax(y[k], h.x[c][k]);
        if (cnn) y[k] = fmax(y[k], 0);
    }
}

/* -- a sentence */

static void logits_of(const model *m, const tag_batch *said, int s, bool pre, bool cnn, rows *y) {
    const tensor *table = parameter(m, "", "embedding");
    rows x = {tagged_words(s), 80, {{0}}}, h;
    for (int w = 0; w < x.n; w++) {
        const int64_t place = s * said->b.source_length + w;
        for (int k = 0; k < 50; k++) x.x[w][k] = (double)table->value[said->word[place] * 50 + k];
        characters_of(m, said, place, cnn, x.x[w] + 50);
    }
    named_linear(m, "", "input", &x, &h);
    for (int i = 0; i < LAYERS; i++) {
        char side[PARAM_NAME];
        snprintf(side, sizeof side, "encoder.%d", i);
        layer(m, side, 2, pre, &h);
    }
    named_linear(m, "", "output", &h, y);
}

static double score(const model *m, const rows *e, const int *y) {
    const tensor *trans = parameter(m, "crf", "trans");
    double sum = (double)parameter(m, "crf", "start")->value[y[0]] +
                 (double)parameter(m, "crf", "end")->value[y[e->n - 1]];
    for (int t = 0; t < e->n; t++) sum += e->x[t][y[t]];
    for (int t = 1; t < e->n; t++) sum += (double)trans->value[y[t - 1] * TAG_COUNT + y[t]];
    return sum;
}

/* nll of the gold tags; the best path without a step from 1 to 3. */
static double enumerate(const model *m, const tag_batch *said, int s, const rows *e, int *best) {
    double z = 0, highest = -INFINITY;
    int gold[LONGEST];
    for (int t = 0; t < e->n; t++) gold[t] = said->tag[s * said->b.source_length + t];
    for (int n = 0; n < 1 << (2 * e->n); n++) {
        int y[LONGEST];
        bool allowed = true;
        for (int t = 0; t < e->n; t++) y[t] = n >> (2 * t) & 3;
        for (int t = 1; t < e->n; t++) allowed &= y[t - 1] != 1 || y[t] != 3;
        const double here = score(m, e, y);
        z += exp(here);
        if (!allowed || here <= highest) continue;
        highest = here;
        memcpy(best, y, sizeof y);
    }
    return log(z) - score(m, e, gold);
}

/* Gains and shifts differ from 1 and 0; the forbidden step has the highest score. */
static void shake(model *m) {
    rng r = rng_create(8);
    params_find(&m->params, "crf.trans")->t.value[1 * TAG_COUNT + 3] = 9;
    for (int i = 0; i < m->params.count; i++) {
        param *p = m->params.item[i];
        if (!strstr(p->name, "norm")) continue;
        for (int64_t k = 0; k < p->t.count; k++)
            p->t.value[k] += (real)(float)(0.3 * rng_normal(&r));
    }
}

static void check_model(const char *placement, const char *char_encoder, const char *qk_norm) {
    model_options o = tagger_options("ln", placement, char_encoder);
    strcpy(o.qk_norm, qk_norm);
    model *m = tagger_create(&o);
    tag_batch said;
    sr_failure why = {0};
    tape *t = tape_create(2, &why);
    shake(m);
    tag_batch_fill(&said, 7, 6);
    tape_reset(t, rng_create(1), false, false);
    pass p = {.tape = t, .batch = &said.b, .mode = NORM_RUNNING};
    const tensor *nll = m->row->forward(m, &p);
    assert_true(nll && p.predicted);
    for (int s = 0; s < TAGGED; s++) {
        rows e;
        int best[LONGEST];
        logits_of(m, &said, s, !strcmp(placement, "pre"), !strcmp(char_encoder, "cnn"), &e);
        const double want = enumerate(m, &said, s, &e, best);
        if (!(fabs((double)nll->value[s] - want) <= CLOSE * (1 + want)))
            fail_msg("%s, %s, qk-norm %s, sentence %d: nll %.9g, not %.9g", placement, char_encoder,
                     qk_norm, s, (double)nll->value[s], want);
        for (int w = 0; w < e.n; w++)
            assert_int_equal(p.predicted[s * said.b.source_length + w], best[w]);
    }
    tape_free(t);
    model_free(m);
}

static void agrees_with_its_definition(void **state) {
    (void)state;
    check_model("post", "cnn", "");
    check_model("pre", "cnn", "");
    check_model("post", "transformer", "");
    check_model("post", "cnn", "ln");
    check_model("pre", "transformer", "ln");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_its_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
