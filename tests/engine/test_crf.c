/* op_crf and crf_viterbi against sums over all paths, one by one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/loss/loss_ops.h"
#include "reals.h"
#include "testing/check.h"

enum { B = 4, T = 5, MOST_TAGS = 4, MOST_PATHS = 1024 };

/* Sentences: all words; one in the middle; two at the start; three with a gap. */
static const uint8_t mask[B * T] = {1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0};

typedef struct fixture {
    int K;
    tape *t;
    crf_inputs in;
    int32_t tag[B * T];
    uint8_t allowed[(MOST_TAGS + 2) * (MOST_TAGS + 2)];
} fixture;

static fixture fixture_create(int K, uint64_t seed) {
    fixture f = {.K = K, .t = reals_tape(2)};
    f.in.logits = reals_tensor(f.t, 3, (int64_t[]){B, T, K}, seed);
    f.in.trans = reals_tensor(f.t, 2, (int64_t[]){K, K}, seed + 1);
    f.in.start = reals_tensor(f.t, 1, (int64_t[]){K}, seed + 2);
    f.in.end = reals_tensor(f.t, 1, (int64_t[]){K}, seed + 3);
    rng r = rng_create(seed + 4);
    for (int i = 0; i < B * T; i++) f.tag[i] = mask[i] ? (int32_t)rng_below(&r, (uint64_t)K) : -1;
    for (int i = 0; i < (K + 2) * (K + 2); i++) f.allowed[i] = rng_below(&r, 3) > 0;
    return f;
}

static int words(int b, int place[T]) {
    int L = 0;
    for (int i = 0; i < T; i++)
        if (mask[b * T + i]) place[L++] = b * T + i;
    return L;
}

/* -- one path */

static double log_softmax(const fixture *f, int place, int tag) {
    const real *x = f->in.logits->value + place * f->K;
    double sum = 0;
    for (int k = 0; k < f->K; k++) sum += exp((double)x[k]);
    return (double)x[tag] - log(sum);
}

/* allowed NULL: all transitions are allowed. */
static double path_score(const fixture *f, const int *place, int L, const int *y,
                         const uint8_t *allowed) {
    const int K = f->K, side = K + 2;
    double score = (double)f->in.start->value[y[0]] + (double)f->in.end->value[y[L - 1]];
    if (allowed) {
        score -= allowed[K * side + y[0]] ? 0 : 10000;
        score -= allowed[y[L - 1] * side + K + 1] ? 0 : 10000;
    }
    for (int t = 0; t < L; t++) {
        score += log_softmax(f, place[t], y[t]);
        if (t == 0) continue;
        score += (double)f->in.trans->value[y[t - 1] * K + y[t]];
        if (allowed && !allowed[y[t - 1] * side + y[t]]) score -= 10000;
    }
    return score;
}

/* Tags of path number n. The first word's tag is the highest digit, so paths are sorted by their
 * tags. */
static void path_of(int n, int K, int L, int *y) {
    for (int t = L - 1; t >= 0; t--, n /= K) y[t] = n % K;
}

static int paths(int K, int L) {
    int n = 1;
    for (int t = 0; t < L; t++) n *= K;
    return n;
}

/* -- sums over all paths */

/* nll of a sentence; adds its gradients times dy. */
static double enumerate(const fixture *f, int b, double dy, double *logits, double *trans,
                        double *start, double *end) {
    const int K = f->K;
    int place[T], y[T], gold[T];
    const int L = words(b, place), n = paths(K, L);
    double p[MOST_PATHS], z = 0;
    for (int t = 0; t < L; t++) gold[t] = f->tag[place[t]];
    const double score = path_score(f, place, L, gold, NULL);
    for (int i = 0; i < n; i++) {
        path_of(i, K, L, y);
        z += p[i] = exp(path_score(f, place, L, y, NULL));
    }
    for (int i = 0; i <= n; i++) { /* the last one is the gold path */
        const double weight = i < n ? dy * p[i] / z : -dy;
        if (i < n) path_of(i, K, L, y);
        const int *tag = i < n ? y : gold;
        start[tag[0]] += weight;
        end[tag[L - 1]] += weight;
        for (int t = 0; t < L; t++) logits[place[t] * K + tag[t]] += weight;
        for (int t = 1; t < L; t++) trans[tag[t - 1] * K + tag[t]] += weight;
    }
    return log(z) - score;
}

static void likelihood_and_gradients(void **state) {
    (void)state;
    for (int K = 1; K <= MOST_TAGS; K++) {
        fixture f = fixture_create(K, 10 + (uint64_t)K);
        const real dy[B] = {1, -2, (real)0.5, 3};
        double nll[B], logits[B * T * MOST_TAGS] = {0}, trans[MOST_TAGS * MOST_TAGS] = {0};
        double start[MOST_TAGS] = {0}, end[MOST_TAGS] = {0};
        for (int b = 0; b < B; b++)
            nll[b] = enumerate(&f, b, (double)dy[b], logits, trans, start, end);
        tensor *y = op_crf(f.t, &f.in, f.tag, mask);
        reals_backward(f.t, y, dy);
        reals_check("nll", y->value, nll, B, 1e-5, 1e-6);
        reals_check("d logits", f.in.logits->grad, logits, B * T * K, 1e-5, 1e-6);
        reals_check("d trans", f.in.trans->grad, trans, K * K, 1e-5, 1e-6);
        reals_check("d start", f.in.start->grad, start, K, 1e-5, 1e-6);
        reals_check("d end", f.in.end->grad, end, K, 1e-5, 1e-6);
        tape_free(f.t);
    }
}

static void check_best(const fixture *f, const uint8_t *allowed) {
    int32_t got[B * T];
    double score[B];
    assert_true(crf_viterbi(f->t, &f->in, mask, allowed, got, score));
    for (int b = 0; b < B; b++) {
        int place[T], y[T], best[T] = {0};
        const int L = words(b, place);
        double highest = -INFINITY;
        for (int i = 0; i < paths(f->K, L); i++) {
            path_of(i, f->K, L, y);
            const double s = path_score(f, place, L, y, allowed);
            if (s > highest) highest = s, memcpy(best, y, sizeof best);
        }
        check_within(score[b], highest, 1e-3 + 1e-6 * fabs(highest));
        for (int t = 0; t < L; t++) assert_int_equal(got[place[t]], best[t]);
        for (int i = 0; i < T; i++)
            if (!mask[b * T + i]) assert_int_equal(got[b * T + i], 0);
    }
}

static void best_path_of_all(void **state) {
    (void)state;
    for (int K = 1; K <= MOST_TAGS; K++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            fixture f = fixture_create(K, 100 * seed + (uint64_t)K);
            check_best(&f, NULL);
            check_best(&f, f.allowed);
            tape_free(f.t);
        }
}

/* All paths are equal: tags 0. Then two are equal: one is lower in its last word, one in its
 * first. */
static void lowest_tags_of_equal_paths(void **state) {
    (void)state;
    fixture f = fixture_create(3, 1);
    int32_t path[B * T];
    tensor *const in[] = {f.in.logits, f.in.trans, f.in.start, f.in.end};
    for (int i = 0; i < 4; i++) memset(in[i]->value, 0, (size_t)in[i]->count * sizeof(real));
    assert_true(crf_viterbi(f.t, &f.in, NULL, NULL, path, NULL));
    for (int i = 0; i < B * T; i++) assert_int_equal(path[i], 0);
    for (int i = 0; i < 9; i++) f.in.trans->value[i] = -1;
    f.in.trans->value[1 * 3 + 2] = f.in.trans->value[2 * 3 + 1] = 0;
    assert_true(crf_viterbi(f.t, &f.in, NULL, NULL, path, NULL));
    for (int i = 0; i < T; i++) assert_int_equal(path[i], i % 2 ? 2 : 1);
    tape_free(f.t);
}

/* Emissions far apart and long sentences: nothing overflows, and a shift of all logits changes
 * nothing. */
static void large_numbers(void **state) {
    (void)state;
    enum { LONG = 700, TAGS = 5 };
    tape *t = reals_tape(1);
    crf_inputs in = {reals_tensor(t, 3, (int64_t[]){1, LONG, TAGS}, 1),
                     reals_tensor(t, 2, (int64_t[]){TAGS, TAGS}, 2),
                     reals_tensor(t, 1, (int64_t[]){TAGS}, 3),
                     reals_tensor(t, 1, (int64_t[]){TAGS}, 4)};
    int32_t tag[LONG] = {0};
    for (int64_t i = 0; i < in.logits->count; i++)
        in.logits->value[i] = (real)(256 * (i % 7) - 4096 * (i % 3));
    tensor *y = op_crf(t, &in, tag, NULL);
    reals_check_tape(t);
    const double before = (double)y->value[0];
    assert_true(isfinite(before));
    check_above(before, 0);
    for (int64_t i = 0; i < in.logits->count; i++) in.logits->value[i] += 8192;
    y = op_crf(t, &in, tag, NULL);
    reals_backward(t, y, (real[]){1});
    check_within_inclusive((double)y->value[0], before, 1e-6 * before);
    for (int64_t i = 0; i < in.logits->count; i++)
        assert_true(isfinite((double)in.logits->grad[i]));
    in.logits->value[3 * TAGS + 2] = (real)NAN;
    assert_true(isnan((double)op_crf(t, &in, tag, NULL)->value[0]));
    tape_free(t);
}

/* A tag with scores -infinity, which no transition reaches, has no effect. Likelihood and gradients
 * are as without the tag. */
static void tag_without_a_way(void **state) {
    (void)state;
    enum { FEW = 3, MANY = FEW + 1 };
    fixture f = fixture_create(FEW, 5), g = fixture_create(MANY, 6);
    for (int i = 0; i < B * T; i++)
        for (int k = 0; k < FEW; k++)
            g.in.logits->value[i * MANY + k] = f.in.logits->value[i * FEW + k];
    for (int k = 0; k < MANY; k++) {
        g.in.start->value[k] = k < FEW ? f.in.start->value[k] : (real)-INFINITY;
        g.in.end->value[k] = k < FEW ? f.in.end->value[k] : 0;
        for (int j = 0; j < MANY; j++)
            g.in.trans->value[j * MANY + k] = k == FEW  ? (real)-INFINITY
                                              : j < FEW ? f.in.trans->value[j * FEW + k]
                                                        : 0;
    }
    const real dy[B] = {1, 1, 1, 1};
    tensor *few = op_crf(f.t, &f.in, f.tag, mask), *many = op_crf(g.t, &g.in, f.tag, mask);
    reals_backward(f.t, few, dy);
    reals_backward(g.t, many, dy);
    for (int b = 0; b < B; b++) check_within((double)few->value[b], (double)many->value[b], 1e-5);
    for (int i = 0; i < B * T * MANY; i++) {
        const int k = i % MANY;
        const real want = k < FEW ? f.in.logits->grad[i / MANY * FEW + k] : 0;
        check_within((double)g.in.logits->grad[i], (double)want, 1e-5);
    }
    tape_free(f.t);
    tape_free(g.t);
}

static void wrong_arguments(void **state) {
    (void)state;
    fixture f = fixture_create(3, 1);
    int32_t wrong[B * T] = {0}, path[B * T];
    uint8_t silent[B * T] = {1, 1, 1, 1, 1};
    wrong[3] = 3;
    assert_null(op_crf(f.t, &f.in, wrong, NULL));
    check_failure(tape_failure(f.t), SR_USAGE, "crf: tag 3, not 0 to 2");
    f.t->failure = (sr_failure){0};
    wrong[3] = 2;
    assert_null(op_crf(f.t, &f.in, wrong, silent));
    check_failure(tape_failure(f.t), SR_USAGE, "crf: sentence 1 has no words");
    f.t->failure = (sr_failure){0};
    f.in.end = f.in.trans;
    assert_null(op_crf(f.t, &f.in, wrong, NULL));
    check_failure(tape_failure(f.t), SR_USAGE,
                  "crf: logits must be [B, T, K], transitions [K, K], start and end [K]");
    assert_false(crf_viterbi(f.t, &f.in, NULL, NULL, path, NULL));
    tape_free(f.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(likelihood_and_gradients),   cmocka_unit_test(best_path_of_all),
        cmocka_unit_test(lowest_tags_of_equal_paths), cmocka_unit_test(large_numbers),
        cmocka_unit_test(tag_without_a_way),          cmocka_unit_test(wrong_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
