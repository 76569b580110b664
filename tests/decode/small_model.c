/* small_model.c -- see small_model.h. */
#include "small_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testing/check.h"

static void wear_site(norm_site *s, rng *r) {
    for (int64_t k = 0; s->gamma && k < s->features; k++) {
        s->gamma->value[k] = (real)(0.6 + 0.8 * rng_uniform(r));
        s->beta->value[k] = (real)(0.2 * rng_normal(r));
    }
    for (int i = 0; i < NORM_STATE_MAX && s->state[i]; i++)
        for (int64_t k = 0; k < s->state_count[i]; k++)
            s->state[i][k] = !strcmp(s->method->state[i].name, "mu") ? 0.3 * rng_normal(r)
                                                                     : 0.5 + rng_uniform(r);
}

/* repbn adds eta x in every layer. Small eta keep the logits as small as with other methods. */
static void lessen_own(norm_site *s) {
    for (int i = 0; i < NORM_OWN_MAX && s->own[i]; i++)
        for (int64_t k = 0; k < s->own[i]->count; k++) s->own[i]->value[k] *= (real)0.1;
}

model *small_model_make(const small_model *s) {
    model_options o = {.name = "transformer",
                       .preset = "mini",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .embed_dim = s->d ? s->d : 32,
                       .ffn_dim = 48,
                       .heads = s->heads ? s->heads : 4,
                       .encoder_layers = 2,
                       .decoder_layers = 2,
                       .dropout = 0.3,
                       .attention_dropout = 0.2,
                       .relu_dropout = 0.2,
                       .seed = 5};
    strcpy(o.norm, s->norm);
    strcpy(o.decoder_norm, s->decoder_norm);
    strcpy(o.placement, s->placement);
    if (s->qk_norm) strcpy(o.qk_norm, s->qk_norm);
    const data_shape shape = {.task = TASK_PAIRS,
                              .vocabulary = SMALL_WORDS,
                              .target_vocabulary = s->target_words,
                              .longest = s->longest ? s->longest : 24};
    sr_failure why = {0};
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    rng r = rng_create(6);
    for (int i = 0; i < m->sites; i++) wear_site(m->site[i], &r);
    for (int i = 0; i < m->params.count; i++) {
        param *p = m->params.item[i];
        if (p->t.rank == 1 && !strstr(p->name, "gamma") && !strstr(p->name, "beta"))
            for (int64_t k = 0; k < p->t.count; k++) p->t.value[k] += (real)(0.1 * rng_normal(&r));
    }
    for (int i = 0; i < m->sites; i++) lessen_own(m->site[i]);
    return m;
}

void small_sources(model_source *source, int64_t count, int64_t most, uint64_t seed) {
    rng r = rng_create(seed);
    for (int64_t i = 0; i < count; i++) {
        const int64_t words = 1 + (int64_t)rng_below(&r, (uint64_t)most);
        int32_t *token = malloc((size_t)(words + 1) * sizeof *token);
        assert_non_null(token);
        for (int64_t k = 0; k < words; k++)
            token[k] = TOKEN_UNK + (int32_t)rng_below(&r, SMALL_WORDS - TOKEN_UNK);
        token[words] = TOKEN_EOS;
        source[i] = (model_source){token, words + 1};
    }
}

void small_sources_free(model_source *source, int64_t count) {
    for (int64_t i = 0; i < count; i++) free((void *)source[i].token);
}

static void log_softmax(const real *x, int64_t words, double *y) {
    double sum = 0;
    for (int64_t w = 0; w < words; w++) sum += exp((double)x[w]);
    for (int64_t w = 0; w < words; w++) y[w] = (double)x[w] - log(sum);
}

void small_forward(model *m, const model_source *source, const int32_t *word, int64_t count,
                   norm_mode mode, double *log_p) {
    enum { MOST = 256 };
    int32_t in[MOST];
    uint8_t ones[MOST];
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_true(t && count + 1 <= MOST && source->length <= MOST);
    in[0] = TOKEN_EOS;
    for (int64_t i = 0; i < count; i++) in[i + 1] = word[i];
    memset(ones, 1, sizeof ones);
    const batch b = {.task = TASK_PAIRS,
                     .count = 1,
                     .source_length = source->length,
                     .target_length = count + 1,
                     .source = source->token,
                     .target_in = in,
                     .target_out = in,
                     .source_mask = ones,
                     .target_mask = ones,
                     .tokens = count + 1};
    tape_reset(t, rng_create(1), false, false);
    pass p = {.tape = t, .batch = &b, .mode = mode};
    tensor *logits = m->row->forward(m, &p);
    if (!logits) fail_msg("%s", tape_failure(t)->text);
    const int64_t words = m->target_embedding->dim[0];
    log_softmax(logits->value + count * words, words, log_p);
    tape_free(t);
}
