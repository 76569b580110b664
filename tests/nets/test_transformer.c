/* The whole encoder-decoder against the shared vectors: loss, nll, every parameter gradient. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "../oracle_file.h"
#include "statnet/task.h"

/* Parameter name -> name in the vector file: "encoder.0.attention.q.weight" -> "e0_Wq". */
static void vector_name(const char *full, char *name, size_t size) {
    static const struct {
        const char *part, *stem;
    } part[] = {{"attention.q.", "q"},
                {"attention.k.", "k"},
                {"attention.v.", "v"},
                {"attention.o.", "o"},
                {"self_attention.q.", "q"},
                {"ffn_block.in.", "1"},
                {"ffn_block.out.", "2"},
                {"norm1.", "1"},
                {"norm2.", "2"},
                {"self.", "1"},
                {"cross.", "2"},
                {"ffn.", "3"}};
    if (!strcmp(full, "embedding")) {
        snprintf(name, size, "E");
        return;
    }
    const char *last = strrchr(full, '.') + 1;
    if (strstr(full, ".final.")) {
        snprintf(name, size, "%c_f%s", full[0], !strcmp(last, "gamma") ? "g" : "c");
        return;
    }
    char letter = !strcmp(last, "weight")  ? 'W'
                  : !strcmp(last, "bias")  ? 'b'
                  : !strcmp(last, "gamma") ? 'g'
                                           : 'c';
    const char *which = strstr(full, "self_attention")    ? "s"
                        : strstr(full, "cross_attention") ? "x"
                                                          : "";
    const char *stem = "?";
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (strstr(full, part[i].part)) {
            stem = part[i].stem;
            break;
        }
    snprintf(name, size, "%c%c_%s%c%s", full[0], full[8], which, letter, stem);
}

static void set_params(model *m, const oracle_file *f, int k) {
    for (int i = 0; i < m->params.count; i++) {
        param *p = m->params.item[i];
        char name[64], path[80];
        vector_name(p->name, name, sizeof name);
        snprintf(path, sizeof path, "in/%s", name);
        int64_t count;
        double *value = oracle_read(f, k, path, NULL, &count);
        if (!value || count != p->t.count) fail_msg("%s (%s) has no vector", p->name, path);
        for (int64_t j = 0; j < count; j++) p->t.value[j] = (real)value[j];
        free(value);
    }
}

typedef struct tokens {
    int32_t *id;
    uint8_t *mask;
    int64_t dim[4];
} tokens;

static tokens read_tokens(const oracle_file *f, int k, const char *path) {
    tokens t;
    int64_t count;
    double *value = oracle_read(f, k, path, t.dim, &count);
    assert_non_null(value);
    t.id = calloc((size_t)count, sizeof *t.id);
    t.mask = calloc((size_t)count, 1);
    for (int64_t i = 0; i < count; i++) {
        t.id[i] = (int32_t)value[i];
        t.mask[i] = t.id[i] != TOKEN_PAD;
    }
    free(value);
    return t;
}

static void tokens_free(tokens *t) {
    free(t->id);
    free(t->mask);
}

static model *build(const oracle_file *f, int k) {
    model_options o = {.norm_eps = oracle_number(f, k, "eps", 0),
                       .norm_alpha = NAN,
                       .embed_dim = 16,
                       .ffn_dim = 24,
                       .heads = (int64_t)oracle_number(f, k, "heads", 0),
                       .encoder_layers = (int64_t)oracle_number(f, k, "layers", 0),
                       .decoder_layers = (int64_t)oracle_number(f, k, "layers", 0)};
    strcpy(o.name, "transformer");
    strcpy(o.preset, "mini");
    strcpy(o.placement, oracle_number(f, k, "pre", 0) != 0 ? "pre" : "post");
    strcpy(o.norm, oracle_text(f, k, "enc_norm"));
    strcpy(o.decoder_norm, "ln");
    data_shape shape = {.task = TASK_PAIRS, .vocabulary = 19, .longest = 6};
    sr_failure why = {0};
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    set_params(m, f, k);
    return m;
}

static void check_grads(const model *m, const oracle_file *f, int k) {
    int bad = 0;
    for (int i = 0; i < m->params.count; i++) {
        const param *p = m->params.item[i];
        char name[64], out[80];
        vector_name(p->name, name, sizeof name);
        snprintf(out, sizeof out, "d_%s", name);
        double *got = malloc((size_t)p->t.count * sizeof *got);
        for (int64_t j = 0; j < p->t.count; j++) got[j] = (double)p->t.grad[j];
        bad += !oracle_check(f, k, out, got, p->t.count, NULL, 1);
        free(got);
    }
    assert_int_equal(bad, 0);
}

static void run_case(const oracle_file *f, int k, int threads) {
    model *m = build(f, k);
    tokens src = read_tokens(f, k, "in/src"), prev = read_tokens(f, k, "in/prev"),
           tgt = read_tokens(f, k, "in/tgt");
    batch b = {.task = TASK_PAIRS,
               .count = src.dim[0],
               .source_length = src.dim[1],
               .target_length = tgt.dim[1],
               .source = src.id,
               .target_in = prev.id,
               .target_out = tgt.id,
               .source_mask = src.mask,
               .target_mask = tgt.mask};
    sr_failure why = {0};
    tape *t = tape_create(threads, &why);
    assert_non_null(t);
    tape_reset(t, rng_create(1), true, true);
    cross_entropy_report report = {0};
    const task_options o = {.label_smoothing = oracle_number(f, k, "label_smoothing", 0)};
    pass p = {.tape = t, .batch = &b, .mode = NORM_TRAIN};
    tensor *loss = task_loss(task_of(TASK_PAIRS), &o, m, &p, &report);
    tape_backward(t, loss, 1);
    if (tape_failure(t)) fail_msg("%s", tape_failure(t)->text);
    assert_true(oracle_check(f, k, "loss", &report.loss, 1, NULL, 1));
    assert_true(oracle_check(f, k, "nll", &report.nll, 1, NULL, 1));
    check_grads(m, f, k);
    tape_free(t);
    tokens_free(&src);
    tokens_free(&prev);
    tokens_free(&tgt);
    model_free(m);
}

static void whole_model(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/transformer_full.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    assert_int_equal(oracle_cases(f), 4);
    for (int k = 0; k < oracle_cases(f); k++) run_case(f, k, 1 + k % 3);
    oracle_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
