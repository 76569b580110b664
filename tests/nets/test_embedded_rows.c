/* The input of the first site of each stack (docs/models.md 2.2): sqrt(d) E[token] + P[position].
 * Positions start at TOKEN_PAD + 1; padding is 0. */
#include <math.h>
#include <string.h>

#include "nets/models.h"
#include "testing/check.h"

enum { WIDTH = 8, COUNT = 2, LENGTH = 3, WORDS = 20, NUMBERS = COUNT * LENGTH * WIDTH };

typedef struct seen {
    double x[2][NUMBERS]; /* encoder, decoder */
} seen;

static void keep(void *context, const norm_view *o) {
    seen *s = context;
    int side = !strcmp(o->site->name, "decoder.0.self");
    for (int i = 0; i < NUMBERS; i++) s->x[side][i] = (double)o->x[i];
}

static model *create(seen *s) {
    model_options o = {.name = "transformer",
                       .preset = "mini",
                       .norm = "ln",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .embed_dim = WIDTH,
                       .ffn_dim = WIDTH,
                       .heads = 2,
                       .encoder_layers = 1,
                       .decoder_layers = 1,
                       .count_padding = true,
                       .seed = 1};
    data_shape shape = {.task = TASK_PAIRS, .vocabulary = WORDS, .longest = LENGTH};
    sr_failure why = {0};
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    for (int i = 0; i < m->sites; i++) {
        const char *name = m->site[i]->name;
        if (strcmp(name, "encoder.0.norm1") && strcmp(name, "decoder.0.self")) continue;
        m->site[i]->forward_hook = keep;
        m->site[i]->hook_context = s;
    }
    return m;
}

static void forward(model *m, const int32_t *token, const uint8_t *mask) {
    sr_failure why = {0};
    tape *t = tape_create(1, &why);
    assert_non_null(t);
    batch b = {.task = TASK_PAIRS,
               .count = COUNT,
               .source_length = LENGTH,
               .target_length = LENGTH,
               .source = token,
               .target_in = token,
               .target_out = token,
               .source_mask = mask,
               .target_mask = mask,
               .tokens = 4};
    tape_reset(t, rng_create(1), true, true);
    pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN};
    if (!m->row->forward(m, &p)) fail_msg("%s", tape_failure(t)->text);
    tape_free(t);
}

static void rows(void **state) {
    (void)state;
    static seen s;
    const int32_t token[COUNT * LENGTH] = {7, 9, TOKEN_EOS, TOKEN_EOS, TOKEN_PAD, TOKEN_PAD};
    const uint8_t mask[COUNT * LENGTH] = {1, 1, 1, 1, 0, 0};
    model *m = create(&s);
    forward(m, token, mask);
    double want[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        int row = i / WIDTH, k = i % WIDTH, place = TOKEN_PAD + 1 + row % LENGTH;
        double angle = place * exp(-(k % (WIDTH / 2)) * log(10000) / (WIDTH / 2 - 1));
        want[i] = sqrt(WIDTH) * (double)m->embedding->value[token[row] * WIDTH + k] +
                  (k < WIDTH / 2 ? sin(angle) : cos(angle));
        if (!mask[row]) want[i] = 0;
    }
    check_near_double("encoder", s.x[0], want, NUMBERS, 1e-5, 1e-6);
    check_near_double("decoder", s.x[1], want, NUMBERS, 1e-5, 1e-6);
    model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
