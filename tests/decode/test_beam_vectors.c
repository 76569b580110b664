/* Beam search over tables of log probabilities, against the shared vectors. */
#include <math.h>
#include <stdlib.h>

#include "../check.h"
#include "../oracle_file.h"
#include "statnet/decode.h"

/* log_p [steps, V, V]: of a word at a step behind the word before. */
typedef struct table {
    double *log_p;
    int64_t V, step;
} table;

static sr_status score(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       double *log_p, int32_t *source_at, sr_failure *why) {
    table *t = context;
    (void)parent;
    (void)why;
    for (int64_t r = 0; r < rows; r++) {
        const double *from = t->log_p + (t->step * t->V + token[r]) * t->V;
        for (int64_t w = 0; w < t->V; w++) log_p[r * t->V + w] = from[w];
        source_at[r] = -1;
    }
    t->step++;
    return SR_OK;
}

static beam_options options_of(const oracle_file *f, int k) {
    const bool normalize = oracle_number(f, k, "normalize", 1) != 0;
    return (beam_options){.beam = (int64_t)oracle_number(f, k, "beam", 0),
                          .lenpen = normalize ? oracle_number(f, k, "lenpen", 1) : 0,
                          .unk_penalty = oracle_number(f, k, "unkpen", 0),
                          .min_len = (int64_t)oracle_number(f, k, "min_len", 0),
                          .max_b = oracle_number(f, k, "max_len", 0)};
}

/* The hypotheses as the file has them: [count, width] tokens, -1 behind the last, and so on. */
static bool same_hypotheses(const oracle_file *f, int k, const translation *t) {
    int64_t dim[4], count;
    double *want = oracle_read(f, k, "out/tokens", dim, &count);
    assert_non_null(want);
    double *token = calloc((size_t)count, sizeof *token),
           *log_p = calloc((size_t)count, sizeof *log_p);
    double *sum = calloc((size_t)dim[0], sizeof *sum);
    bool same = t->count == dim[0];
    for (int64_t i = 0; i < t->count && same; i++) {
        const hypothesis *h = &t->item[i];
        same = h->length <= dim[1];
        sum[i] = h->score;
        for (int64_t j = 0; j < dim[1] && same; j++) {
            token[i * dim[1] + j] = j < h->length ? h->token[j] : -1;
            log_p[i * dim[1] + j] = j < h->length ? h->log_p[j] : 0;
        }
    }
    same = same && oracle_check(f, k, "tokens", token, count, NULL, 1) &&
           oracle_check(f, k, "score", sum, dim[0], NULL, 1) &&
           oracle_check(f, k, "positional", log_p, count, NULL, 1);
    free(want);
    free(token);
    free(log_p);
    free(sum);
    return same;
}

/* Each case alone and as three sentences at once. */
static bool beam_case(const oracle_file *f, int k) {
    enum { TOGETHER = 3 };
    const int64_t V = (int64_t)oracle_number(f, k, "vocab", 0), length[TOGETHER] = {1, 1, 1};
    table t = {oracle_read(f, k, "in/lp", NULL, NULL), V, 0};
    const beam_options o = options_of(f, k);
    const scorer words = {&t, V, score};
    translation out[TOGETHER];
    sr_failure why = {0};
    bool same = t.log_p != NULL;
    for (int64_t n = 1; n <= TOGETHER && same; n += TOGETHER - 1) {
        t.step = 0;
        check_ok(beam_search(&o, &words, n, length, out, &why), &why);
        for (int64_t i = 0; i < n; i++) {
            same = same && same_hypotheses(f, k, &out[i]);
            translation_free(&out[i]);
        }
    }
    free(t.log_p);
    return same;
}

static void every_case(void **state) {
    (void)state;
    const char *path = check_shared("reference/vectors/models/beam.h5");
    if (!path) skip();
    oracle_file *f = oracle_open(path);
    assert_non_null(f);
    assert_true(oracle_cases(f) > 0);
    for (int k = 0; k < oracle_cases(f); k++)
        if (!beam_case(f, k)) fail_msg("case %d (%s) differs", k, oracle_text(f, k, "label"));
    oracle_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
