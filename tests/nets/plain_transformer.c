/* plain_transformer.c -- see plain_transformer.h. */
#include "plain_transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "testing/check.h"

static const real *value_of(const plain *p, const char *name) {
    for (int i = 0; i < p->m->params.count; i++)
        if (!strcmp(p->m->params.item[i]->name, name)) return p->m->params.item[i]->t.value;
    fail_msg("no parameter %s", name);
    return NULL;
}

double *plain_numbers(int64_t count) {
    double *x = calloc((size_t)count, sizeof *x);
    assert_non_null(x);
    return x;
}

double *plain_linear(const plain *p, const char *name, int64_t n, int64_t in, int64_t out,
                     const double *x) {
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    const real *w = value_of(p, full);
    snprintf(full, sizeof full, "%s.bias", name);
    const real *b = value_of(p, full);
    double *y = plain_numbers(n * out);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < out; j++) {
            y[i * out + j] = (double)b[j];
            for (int64_t k = 0; k < in; k++)
                y[i * out + j] += x[i * in + k] * (double)w[j * in + k];
        }
    return y;
}

/* Normalizes n rows [width] in place by LN or RMSNorm, whichever the site uses. */
static void normalize(const plain *p, const char *site, int64_t n, int64_t width, double *x) {
    char full[128];
    bool centred = false, found = false;
    for (int i = 0; i < p->m->sites; i++)
        if (!strcmp(p->m->site[i]->name, site)) {
            found = true;
            centred = !strcmp(p->m->site[i]->method->name, "ln");
        }
    if (!found) fail_msg("no site %s", site);
    snprintf(full, sizeof full, "%s.gamma", site);
    const real *gamma = value_of(p, full);
    snprintf(full, sizeof full, "%s.beta", site);
    const real *beta = value_of(p, full);
    for (int64_t i = 0; i < n; i++) {
        double mean = 0, square = 0, *row = x + i * width;
        for (int64_t k = 0; k < width; k++) mean += centred ? row[k] / (double)width : 0;
        for (int64_t k = 0; k < width; k++)
            square += (row[k] - mean) * (row[k] - mean) / (double)width;
        for (int64_t k = 0; k < width; k++)
            row[k] = (double)gamma[k] * (row[k] - mean) / sqrt(square + 1e-5) + (double)beta[k];
    }
}

static bool has_head_norms(const plain *p) {
    bool has = false;
    for (int i = 0; i < p->m->sites; i++) has |= strstr(p->m->site[i]->name, ".q_norm") != NULL;
    return has;
}

/* Computes one head for one query. */
static void attend(const double *q, const double *k, const double *v, int64_t keys, double *y) {
    double weight[LONGEST + 1], sum = 0;
    for (int64_t j = 0; j < keys; j++) {
        weight[j] = 0;
        for (int h = 0; h < DH; h++) weight[j] += q[h] * k[j * D + h] / sqrt(DH);
        sum += weight[j] = exp(weight[j]);
    }
    for (int64_t j = 0; j < keys; j++)
        for (int h = 0; h < DH; h++) y[h] += weight[j] / sum * v[j * D + h];
}

static double *attention(const plain *p, const char *name, int64_t n, const double *x, int64_t keys,
                         const double *memory, bool causal) {
    char full[4][128];
    const char *const part[] = {"q", "k", "v", "o"};
    for (int i = 0; i < 4; i++) snprintf(full[i], sizeof full[i], "%s.%s", name, part[i]);
    double *q = plain_linear(p, full[0], n, D, D, x),
           *k = plain_linear(p, full[1], keys, D, D, memory);
    double *v = plain_linear(p, full[2], keys, D, D, memory), *y = plain_numbers(n * D);
    if (has_head_norms(p)) {
        snprintf(full[0], sizeof full[0], "%s.q_norm", name);
        snprintf(full[1], sizeof full[1], "%s.k_norm", name);
        normalize(p, full[0], n * HEADS, DH, q);
        normalize(p, full[1], keys * HEADS, DH, k);
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t at = 0; at < D; at += DH)
            attend(q + i * D + at, k + at, v + at, causal ? i + 1 : keys, y + i * D + at);
    double *out = plain_linear(p, full[3], n, D, D, y);
    free(q), free(k), free(v), free(y);
    return out;
}

static double *feed_forward(const plain *p, const char *name, int64_t n, const double *x) {
    char in[128], out[128];
    snprintf(in, sizeof in, "%s.in", name);
    snprintf(out, sizeof out, "%s.out", name);
    double *h = plain_linear(p, in, n, D, FFN, x);
    for (int64_t i = 0; i < n * FFN; i++) h[i] = fmax(h[i], 0);
    double *y = plain_linear(p, out, n, FFN, D, h);
    free(h);
    return y;
}

/* A sublayer of layer i. memory NULL: x itself; keys 0: feed-forward. */
typedef struct sublayer {
    const char *norm, *part;
    int64_t keys;
    const double *memory;
    bool causal;
} sublayer;

static void apply(const plain *p, const char *side, int i, const sublayer *s, int64_t n,
                  double *x) {
    char norm[64], out[80], part[64];
    snprintf(norm, sizeof norm, "%s.%d.%s", side, i, s->norm);
    snprintf(out, sizeof out, "%s_out", norm);
    snprintf(part, sizeof part, "%s.%d.%s", side, i, s->part);
    const bool post = !strcmp(p->placement, "post");
    double *h = plain_numbers(n * D);
    memcpy(h, x, (size_t)(n * D) * sizeof *h);
    if (!post) normalize(p, norm, n, D, h);
    for (int64_t k = 0; k < n * D; k++)
        if (!strcmp(p->placement, "scaled")) h[k] *= pow(i + 1, -0.5);
    double *f = s->keys ? attention(p, part, n, h, s->keys, s->memory ? s->memory : h, s->causal)
                        : feed_forward(p, part, n, h);
    if (!strcmp(p->placement, "peri")) normalize(p, out, n, D, f);
    for (int64_t k = 0; k < n * D; k++) x[k] += f[k];
    if (post) normalize(p, norm, n, D, x);
    free(f), free(h);
}

/* Computes embedding, layers and final norm of a side, [n, D]. memory NULL: none. */
double *plain_stack(const plain *p, const char *side, const int32_t *token, int64_t n, int pad,
                    bool causal, const double *memory, int64_t keys) {
    real positions[(LONGEST + 4) * D];
    char name[128];
    const real *E = p->m->embedding->value;
    double *x = plain_numbers(n * D);
    op_embedding_positions(positions, LONGEST + 4, D, pad);
    for (int64_t i = 0; i < n * D; i++)
        x[i] = sqrt(D) * (double)E[token[i / D] * D + i % D] + (double)positions[(pad + 1) * D + i];
    snprintf(name, sizeof name, "%s.embedding", side);
    if (!strcmp(p->placement, "peri")) normalize(p, name, n, D, x);
    for (int i = 0; i < LAYERS; i++) {
        if (memory) {
            apply(p, side, i, &(sublayer){"self", "self_attention", n, NULL, true}, n, x);
            apply(p, side, i, &(sublayer){"cross", "cross_attention", keys, memory, false}, n, x);
            apply(p, side, i, &(sublayer){"ffn", "ffn_block", 0, NULL, false}, n, x);
        } else {
            apply(p, side, i, &(sublayer){"norm1", "attention", n, NULL, causal}, n, x);
            apply(p, side, i, &(sublayer){"norm2", "ffn_block", 0, NULL, false}, n, x);
        }
    }
    snprintf(name, sizeof name, "%s.final", side);
    if (strcmp(p->placement, "post") != 0) normalize(p, name, n, D, x);
    return x;
}

void plain_logits(const plain *p, int64_t n, const double *x, double *logits) {
    const real *E = p->m->embedding->value;
    for (int64_t i = 0; i < n * WORDS; i++) {
        logits[i] = 0;
        for (int k = 0; k < D; k++)
            logits[i] += x[i / WORDS * D + k] * (double)E[i % WORDS * D + k];
    }
}
