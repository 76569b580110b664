/* The decoder of a model, word by word, against its forward pass over whole sentences. Covers every
 * normalization, and hypotheses that branch, change rows and end. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "small_model.h"
#include "testing/check.h"
#include "written_words.h"

enum { SENTENCES = 4, ROWS = 11, STEPS = 9, V = SMALL_WORDS };

typedef struct line {
    int32_t word[STEPS];
    int64_t sentence;
} line;

/* Rows of the next step, sorted by sentence: some parents occur twice, some not at all. */
static int64_t branch(rng *r, const line *from, int64_t rows, int64_t t, line *to, int32_t *parent,
                      int32_t *token) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t copies = (int64_t)rng_below(r, 4);
        for (int64_t k = 0; k < copies && count < ROWS; k++) {
            /* half of the copies come from the next row of the same sentence: rows cross */
            const int64_t p =
                i + 1 < rows && from[i + 1].sentence == from[i].sentence && k % 2 ? i + 1 : i;
            to[count] = from[p];
            to[count].word[t] = token[count] = TOKEN_UNK + (int32_t)rng_below(r, V - TOKEN_UNK);
            parent[count++] = (int32_t)p;
        }
    }
    return count;
}

/* In double both ways agree to 1e-11, so they compute one formula. In float, log p has the rounding
 * error of logits as large as itself. */
static void check_rows(model *m, const model_source *source, const line *of, int64_t rows,
                       int64_t t, const double *log_p, const char *what) {
    const bool in_double = sizeof(real) == sizeof(double);
    for (int64_t r = 0; r < rows; r++) {
        double want[V];
        small_forward(m, &source[of[r].sentence], of[r].word, t, NORM_RUNNING, want);
        if (!check_close("log p", log_p + r * V, want, V, in_double ? 0 : 1e-5,
                         in_double ? 1e-11 : 1e-4))
            fail_msg("%s: row %d, word %d", what, (int)r, (int)t);
    }
}

/* Compares block maxima exactly, and a range of words with all words. */
static void check_largest(model *m, const void *d, int64_t rows, const double *log_p) {
    enum { BLOCKS = (V + WORDS_TOGETHER - 1) / WORDS_TOGETHER };
    for (int64_t r = 0; r < rows; r++) {
        double got[BLOCKS], want[BLOCKS], piece[3];
        const written_words words = {V, (double *)(uintptr_t)log_p};
        written_largest(&words, r, want);
        m->row->decoder->largest(d, r, got);
        assert_memory_equal(got, want, sizeof got);
        m->row->decoder->log_p(d, r, V - 3, 3, piece);
        assert_memory_equal(piece, log_p + (r + 1) * V - 3, sizeof piece);
    }
}

static void walk(const small_model *s, int threads) {
    model *m = small_model_make(s);
    model_source source[SENTENCES];
    sr_failure why = {0};
    rng r = rng_create(11);
    double log_p[ROWS * V];
    line one[ROWS] = {{{0}, 0}}, two[ROWS], *now = one, *next = two;
    int32_t parent[ROWS], token[ROWS];
    char what[128];
    snprintf(what, sizeof what, "%s, %s, %s, %s", s->norm, s->decoder_norm, s->placement,
             s->qk_norm ? s->qk_norm : "none");
    small_sources(source, SENTENCES, 12, 3);
    void *d = m->row->decoder->create(m, NULL, threads, &why);
    check_ok(why.status, &why);
    check_ok(m->row->decoder->start(d, source, SENTENCES, &why), &why);
    int64_t rows = SENTENCES;
    for (int64_t i = 0; i < rows; i++) {
        now[i].sentence = parent[i] = (int32_t)i;
        token[i] = TOKEN_EOS;
    }
    for (int64_t t = 0; t < STEPS && rows > 0; t++) {
        check_ok(m->row->decoder->step(d, rows, parent, token, NULL, &why), &why);
        for (int64_t i = 0; i < rows; i++) m->row->decoder->log_p(d, i, 0, V, log_p + i * V);
        check_largest(m, d, rows, log_p);
        check_rows(m, source, now, rows, t, log_p, what);
        rows = branch(&r, now, rows, t, next, parent, token);
        line *spent = now;
        now = next;
        next = spent;
    }
    m->row->decoder->free(d);
    small_sources_free(source, SENTENCES);
    model_free(m);
}

static void every_norm(void **state) {
    (void)state;
    for (int i = 0; norm_at(i); i++) {
        const char *name = norm_at(i)->name;
        if (!strcmp(name, "instancenorm")) continue;
        walk(&(small_model){name, name, "pre", 0, 0, 0, 0, NULL}, 1);
        walk(&(small_model){name, name, "post", 0, 0, 0, 0, NULL}, 2);
    }
    walk(&(small_model){"pn+ls", "pn+ls", "pre", 0, 0, 0, 0, NULL}, 1);
    walk(&(small_model){"bn+ls", "ln+ls", "post", 0, 0, 0, 0, NULL}, 1);
    walk(&(small_model){"instancenorm", "ln", "pre", 0, 0, 0, 0, NULL}, 1);
    walk(&(small_model){"ln", "ln", "pre", 36, 3, 0, 0, NULL}, 1);
}

static void every_placement(void **state) {
    (void)state;
    static const char *const placement[] = {"pre", "post", "peri", "scaled"};
    static const char *const qk[] = {NULL, "ln", "rmsnorm", "bn", "pn", "groupnorm"};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++)
            walk(&(small_model){k % 2 ? "bn" : "ln", "rmsnorm", placement[i], 0, 0, 0, 0, qk[k]},
                 1 + k % 2);
    walk(&(small_model){"ln", "ln", "peri", 36, 3, 0, 0, "ln+ls"}, 1);
}

static void whole_sentences_needed(void **state) {
    (void)state;
    model *m = small_model_make(&(small_model){"ln", "instancenorm", "pre", 0, 0, 0, 0, NULL});
    sr_failure why = {0};
    assert_null(m->row->decoder->create(m, NULL, 1, &why));
    check_failure(&why, SR_USAGE, "decoder.0.self: instancenorm takes statistics over whole");
    model_free(m);
    m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, "instancenorm"});
    why = (sr_failure){0};
    assert_null(m->row->decoder->create(m, NULL, 1, &why));
    check_failure(&why, SR_USAGE, "decoder.0.self_attention.q_norm: instancenorm takes statistics");
    model_free(m);
}

/* -- attention of the last layer */

static void keep_memory(void *context, const norm_view *o) {
    memcpy(context, o->y, (size_t)(o->call->rows->rows * o->call->features) * sizeof(real));
}

static void set(model *m, const char *name, real (*value)(int64_t i, int64_t count)) {
    param *p = params_find(&m->params, name);
    assert_non_null(p);
    for (int64_t i = 0; i < p->t.count; i++) p->t.value[i] = value(i, p->t.count);
}

static real nothing(int64_t i, int64_t count) {
    (void)i, (void)count;
    return 0;
}

static real diagonal(int64_t i, int64_t count) {
    return i % ((int64_t)sqrt((double)count) + 1) == 0;
}

static real question(int64_t i, int64_t count) {
    (void)count;
    return (real)sin(3.0 * (double)i);
}

/* Every query is question(), every key the encoder's output for its word. */
static int32_t expected_place(const real *memory, int64_t words, int64_t d, int64_t heads) {
    double sum[64] = {0};
    const int64_t dh = d / heads;
    for (int64_t h = 0; h < heads; h++) {
        double e[64], total = 0;
        for (int64_t j = 0; j <= words; j++) { /* </s> takes its fraction */
            double dot = 0;
            for (int64_t k = h * dh; k < (h + 1) * dh; k++)
                dot += (double)question(k, d) * (double)memory[j * d + k];
            total += e[j] = exp(dot / sqrt((double)dh));
        }
        for (int64_t j = 0; j < words; j++) sum[j] += e[j] / total;
    }
    int32_t best = 0;
    for (int32_t j = 1; j < words; j++)
        if (sum[j] > sum[best]) best = j;
    return best;
}

static void looked_at(void **state) {
    (void)state;
    enum { D = 32, HEADS = 4, COUNT = 12 };
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", D, HEADS, 0, 0, NULL});
    model_source source[COUNT];
    int32_t parent[COUNT], token[COUNT], at[COUNT], different = 0;
    double log_p[COUNT * V];
    real memory[64 * D];
    sr_failure why = {0};
    set(m, "decoder.1.cross_attention.q.weight", nothing);
    set(m, "decoder.1.cross_attention.q.bias", question);
    set(m, "decoder.1.cross_attention.k.weight", diagonal);
    set(m, "decoder.1.cross_attention.k.bias", nothing);
    small_sources(source, COUNT, 20, 4);
    source[0].token += source[0].length - 1; /* only </s> */
    const int64_t cut = source[0].length - 1;
    source[0].length = 1;
    for (int i = 0; i < COUNT; i++) parent[i] = i, token[i] = TOKEN_EOS;
    void *d = m->row->decoder->create(m, NULL, 1, &why);
    check_ok(why.status, &why);
    check_ok(m->row->decoder->start(d, source, COUNT, &why), &why);
    check_ok(m->row->decoder->step(d, COUNT, parent, token, at, &why), &why);
    assert_int_equal(at[0], -1);
    norm_site *last = NULL;
    for (int i = 0; i < m->sites; i++)
        if (!strcmp(m->site[i]->name, "encoder.final")) last = m->site[i];
    assert_non_null(last);
    last->forward_hook = keep_memory;
    last->hook_context = memory;
    last->hook_in_batch_mode = true;
    for (int i = 1; i < COUNT; i++) {
        small_forward(m, &source[i], NULL, 0, NORM_BATCH, log_p);
        assert_int_equal(at[i], expected_place(memory, source[i].length - 1, D, HEADS));
        different += at[i] != 0;
    }
    assert_true(different > 3);
    m->row->decoder->free(d);
    source[0].token -= cut;
    small_sources_free(source, COUNT);
    model_free(m);
}

/* -- refusals */

static void wrong_rows(void **state) {
    (void)state;
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    const int32_t word[] = {7, TOKEN_EOS}, eos = TOKEN_EOS, beyond = V, zero = 0, one = 1;
    const model_source source = {word, 2};
    sr_failure why = {0};
    void *d = m->row->decoder->create(m, NULL, 1, &why);
    check_ok(m->row->decoder->start(d, &source, 1, &why), &why);
    assert_int_equal(m->row->decoder->step(d, 1, &one, &eos, NULL, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "row 0 continues row 1 of 1 with token 2 of 131");
    why = (sr_failure){0};
    assert_int_equal(m->row->decoder->step(d, 1, &zero, &beyond, NULL, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, "with token 131 of 131");
    why = (sr_failure){0};
    m->embedding->value[eos * 32] = NAN;
    check_ok(m->row->decoder->start(d, &source, 1, &why), &why);
    assert_int_equal(m->row->decoder->step(d, 1, &zero, &eos, NULL, &why), SR_STATE);
    check_failure(&why, SR_STATE, "word 1: the model's output is not finite");
    m->row->decoder->free(d);
    model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_norm),
                                       cmocka_unit_test(every_placement),
                                       cmocka_unit_test(whole_sentences_needed),
                                       cmocka_unit_test(looked_at), cmocka_unit_test(wrong_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
