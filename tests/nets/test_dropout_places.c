/* test_dropout_places.c -- the transformer's dropout positions. Sublayers have a known output,
 * because their last weights are zero or one. The sums at the sites then show every factor of a
 * mask. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets/models.h"
#include "testing/check.h"

enum { WIDTH = 32, COUNT = 4, LENGTH = 8, NUMBERS = COUNT * LENGTH * WIDTH, SITES = 7, WORDS = 20 };
/* Sites of one pre-norm layer on each side. */
enum { ENCODER_1, ENCODER_2, ENCODER_END, DECODER_1, DECODER_2, DECODER_3, DECODER_END };

typedef struct fixture {
    model *m;
    tape *t;
    double x[SITES][NUMBERS]; /* input of each site in the last pass */
} fixture;

static void keep(void *context, const norm_view *o) {
    fixture *f = context;
    for (int i = 0; i < NUMBERS; i++) f->x[o->site->depth][i] = (double)o->x[i];
}

/* NaN: the preset's value. */
static fixture *make(const char *preset, double residual, double attention, double relu) {
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    model_options o = {.name = "transformer",
                       .placement = "pre",
                       .norm = "ln",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = residual,
                       .attention_dropout = attention,
                       .relu_dropout = relu,
                       .embed_dim = WIDTH,
                       .ffn_dim = WIDTH,
                       .heads = 1,
                       .encoder_layers = 1,
                       .decoder_layers = 1,
                       .seed = 1};
    data_shape shape = {.task = TASK_PAIRS, .vocabulary = WORDS, .longest = LENGTH};
    snprintf(o.preset, sizeof o.preset, "%s", preset);
    sr_failure why = {0};
    f->m = model_create(&o, &shape, &why);
    if (!f->m) fail_msg("%s", why.text);
    assert_int_equal(f->m->sites, SITES);
    f->t = tape_create(2, &why);
    assert_non_null(f->t);
    for (int i = 0; i < SITES; i++) {
        f->m->site[i]->forward_hook = keep;
        f->m->site[i]->hook_context = f;
    }
    return f;
}

static void fixture_free(fixture *f) {
    tape_free(f->t);
    model_free(f->m);
    free(f);
}

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Sets every parameter with this ending to a constant; with `identity`, matrices to the
 * identity. */
static void set(fixture *f, const char *end, double value, bool identity) {
    int found = 0;
    for (int i = 0; i < f->m->params.count; i++) {
        param *p = f->m->params.item[i];
        if (!ends_with(p->name, end)) continue;
        found++;
        for (int64_t j = 0; j < p->t.count; j++)
            p->t.value[j] = (real)(identity ? j % (WIDTH + 1) == 0 : value);
    }
    assert_true(found > 0);
}

/* Makes sublayers return this constant for any input. */
static void constant_sublayers(fixture *f, double value) {
    set(f, ".o.weight", 0, false);
    set(f, ".o.bias", value, false);
    set(f, ".out.weight", 0, false);
    set(f, ".out.bias", value, false);
}

static void forward(fixture *f, bool training) {
    static int32_t token[COUNT * LENGTH];
    static uint8_t mask[COUNT * LENGTH];
    for (int i = 0; i < COUNT * LENGTH; i++) {
        token[i] = TOKEN_FIRST_WORD + i % (WORDS - TOKEN_FIRST_WORD);
        mask[i] = 1;
    }
    batch b = {.task = TASK_PAIRS,
               .count = COUNT,
               .source_length = LENGTH,
               .target_length = LENGTH,
               .source = token,
               .target_in = token,
               .target_out = token,
               .source_mask = mask,
               .target_mask = mask,
               .tokens = COUNT * LENGTH};
    tape_reset(f->t, rng_create(7), training, true);
    pass p = {.tape = f->t, .batch = &b, .mode = NORM_TRAIN};
    if (!f->m->row->forward(f->m, &p)) fail_msg("%s", tape_failure(f->t)->text);
}

/* Returns the fraction of zeros; the other numbers are `kept`. */
static double zeros(const double *x, double kept) {
    int count = 0;
    for (int i = 0; i < NUMBERS; i++) {
        if (fabs(x[i]) < 1e-5)
            count++;
        else if (fabs(x[i] - kept) > 1e-5 * (1 + fabs(kept)))
            fail_msg("[%d]: %.9g, neither 0 nor %g", i, x[i], kept);
    }
    return (double)count / NUMBERS;
}

/* Tolerance: five standard deviations of a fraction of NUMBERS draws. */
static void check_share(const char *what, double share, double p) {
    if (fabs(share - p) > 5 * sqrt(p * (1 - p) / NUMBERS))
        fail_msg("%s: a share of %g dropped, not %g", what, share, p);
}

static const double *difference(const fixture *f, int after, int before) {
    static double u[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) u[i] = f->x[after][i] - f->x[before][i];
    return u;
}

/* sqrt(d) E + P: a fraction p of its numbers becomes 0, the others grow by 1/(1-p). Each side has
 * its own mask. */
static void embedding(void **state) {
    (void)state;
    const double p = 0.25;
    fixture *f = make("mini", p, 0, 0);
    double whole[NUMBERS], ratio[2][NUMBERS];
    forward(f, false);
    memcpy(whole, f->x[ENCODER_1], sizeof whole);
    forward(f, true);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < NUMBERS; i++)
            ratio[side][i] = f->x[side ? DECODER_1 : ENCODER_1][i] / whole[i];
        check_share("embedding", zeros(ratio[side], 1 / (1 - p)), p);
    }
    assert_true(memcmp(ratio[0], ratio[1], sizeof *ratio) != 0);
    fixture_free(f);
}

/* x + drop(f) after every sublayer, f = 1: f is kept or dropped completely; x is unchanged. */
static void check_residual(const char *preset, double rate, double p) {
    static const int pair[][2] = {{ENCODER_2, ENCODER_1},
                                  {ENCODER_END, ENCODER_2},
                                  {DECODER_2, DECODER_1},
                                  {DECODER_3, DECODER_2},
                                  {DECODER_END, DECODER_3}};
    fixture *f = make(preset, rate, 0, 0);
    constant_sublayers(f, 1);
    forward(f, true);
    for (int i = 0; i < 5; i++)
        check_share("residual", zeros(difference(f, pair[i][0], pair[i][1]), 1 / (1 - p)), p);
    forward(f, false);
    for (int i = 0; i < 5; i++) check_equals(zeros(difference(f, pair[i][0], pair[i][1]), 1), 0);
    fixture_free(f);
}

/* The inner layer of the FFN is relu(1) and its outer one the identity. */
static void check_inner(const char *preset, double rate, double p) {
    fixture *f = make(preset, 0, 0, rate);
    constant_sublayers(f, 0);
    set(f, ".in.weight", 0, false);
    set(f, ".in.bias", 1, false);
    set(f, ".out.weight", 0, true);
    forward(f, true);
    check_share("encoder", zeros(difference(f, ENCODER_END, ENCODER_2), 1 / (1 - p)), p);
    check_share("decoder", zeros(difference(f, DECODER_END, DECODER_3), 1 / (1 - p)), p);
    forward(f, false);
    check_equals(zeros(difference(f, ENCODER_END, ENCODER_2), 1), 0);
    fixture_free(f);
}

/* Queries are 0 and all values 1: attention averages as many ones as a query has keys. A fraction p
 * is dropped, so each result is a multiple of 1/(keys (1-p)), equal in all columns. Causal: query i
 * has i + 1 keys. */
static void check_weights(const char *what, const double *x, bool causal, double p) {
    double dropped = 0, weights = 0;
    bool differ = false;
    for (int i = 0; i < NUMBERS; i++) {
        int keys = causal ? i / WIDTH % LENGTH + 1 : LENGTH;
        double kept = x[i] * keys * (1 - p);
        if (fabs(kept - round(kept)) > 1e-4) fail_msg("%s [%d]: %g", what, i, x[i]);
        if (i % WIDTH && fabs(x[i] - x[i - 1]) > 1e-5) fail_msg("%s: columns differ", what);
        dropped += (keys - kept) / WIDTH;
        weights += (double)keys / WIDTH;
        differ = differ || fabs(x[i] - x[0]) > 1e-3;
    }
    if (p > 0 && !differ) fail_msg("%s: every row loses the same", what);
    if (fabs(dropped / weights - p) > 5 * sqrt(p * (1 - p) / weights) + 1e-6)
        fail_msg("%s: a share of %g dropped, not %g", what, dropped / weights, p);
}

static void check_attention(const char *preset, double rate, double p) {
    fixture *f = make(preset, 0, rate, 0);
    constant_sublayers(f, 0);
    set(f, ".q.weight", 0, false);
    set(f, ".q.bias", 0, false);
    set(f, ".v.weight", 0, false);
    set(f, ".v.bias", 1, false);
    set(f, ".o.weight", 0, true);
    forward(f, true);
    check_weights("encoder", difference(f, ENCODER_2, ENCODER_1), false, p);
    check_weights("decoder, self", difference(f, DECODER_2, DECODER_1), true, p);
    check_weights("decoder, cross", difference(f, DECODER_3, DECODER_2), false, p);
    forward(f, false);
    check_equals(zeros(difference(f, DECODER_2, DECODER_1), 1), 0);
    check_equals(zeros(difference(f, ENCODER_2, ENCODER_1), 1), 0);
    check_equals(zeros(difference(f, DECODER_3, DECODER_2), 1), 0);
    fixture_free(f);
}

static void residual(void **state) {
    (void)state;
    check_residual("mini", 0.25, 0.25);
}

static void inner(void **state) {
    (void)state;
    check_inner("mini", 0.4, 0.4);
}

static void attention(void **state) {
    (void)state;
    check_attention("mini", 0.25, 0.25);
}

/* docs/models.md 2.1 and 11.3. */
static void presets(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double residual, attention, relu;
    } row[] = {{"mini", 0.1, 0, 0},
               {"transformer", 0.1, 0, 0},
               {"transformer_iwslt_de_en", 0.3, 0.1, 0.1},
               {"transformer_big", 0.3, 0.1, 0.1}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        check_residual(row[i].name, NAN, row[i].residual);
        check_attention(row[i].name, NAN, row[i].attention);
        check_inner(row[i].name, NAN, row[i].relu);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(embedding), cmocka_unit_test(residual),
                                       cmocka_unit_test(inner), cmocka_unit_test(attention),
                                       cmocka_unit_test(presets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
