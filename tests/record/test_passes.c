/* test_passes.c -- several forward and backward passes of a site in one step: merged micro-batches,
 * activation checkpointing, shared modules. Compared with one pass over the rows that count. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testing/check.h"
#include "testing/pass_script.h"
#include "testing/sample_run.h"

static void compare(const char *label, const script_record *got, const script_record *want,
                    bool merged) {
    static const int norms[] = {SR_SCALAR_dx_norm, SR_SCALAR_direct_norm, SR_SCALAR_dx_norm_bn,
                                SR_SCALAR_direct_norm_bn};
    double all[SCRIPT_STEPS * SCRIPT_WIDTH];
    script_record expected = *want;
    char name[160];
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        snprintf(name, sizeof name, "%s: %s", label, sr_vector_name(v));
        for (int i = 0; i < SCRIPT_STEPS * SCRIPT_WIDTH; i++) all[i] = want->vector[v][i];
        check_near_float(name, got->vector[v], all, SCRIPT_STEPS * SCRIPT_WIDTH, 4e-6, 4e-6);
    }
    for (int i = 0; i < SCRIPT_STEPS && merged; i++)
        for (int k = 0; k < 4; k++) expected.scalar[norms[k]][i] = NAN;
    for (int s = 0; s < SR_SCALAR_COUNT; s++) {
        if (s == SR_SCALAR_samples || s == SR_SCALAR_padded) continue;
        snprintf(name, sizeof name, "%s: %s", label, sr_scalar_name(s));
        for (int i = 0; i < SCRIPT_STEPS; i++) all[i] = expected.scalar[s][i];
        check_near_float(name, got->scalar[s], all, SCRIPT_STEPS, 1e-5, 1e-6);
    }
}

/* A host's calls in a step (pass_script.h), the repetition of passes, and the parts of the batch
 * that count. */
typedef struct example {
    const char *script, *counts;
    sr_repeat repeat;
} example;

static const example examples[] = {
    {"F0B0", "0", SR_REPEAT_MERGE},
    {"F0B0F1B1F2B2", "012", SR_REPEAT_MERGE}, /* micro-batches */
    {"f0b0f1b1f2b2", "012", SR_REPEAT_MERGE}, /* the host's sums */
    {"F0b0f1b1F2B2", "012", SR_REPEAT_MERGE}, /* mixed */
    {"F0F1B1B0", "01", SR_REPEAT_MERGE},      /* a shared module */
    {"F0F1F2B2B1B0", "012", SR_REPEAT_MERGE}, /* thrice */
    {"F0F0B0", "0", SR_REPEAT_MERGE},         /* checkpointed */
    {"F0F0B0F1F1B1", "01", SR_REPEAT_MERGE},  /* in accumulation */
    {"F0F1F1B1F0B0", "01", SR_REPEAT_MERGE},  /* a shared module, checkpointed */
    {"F0F1F2", "2", SR_REPEAT_MERGE},         /* no backward pass: the last one */
    {"F0B0F1", "0", SR_REPEAT_MERGE},         /* an evaluation after it */
    {"F3B3F0B0F1B1", "01", SR_REPEAT_MERGE},  /* only padding at first */
    {"F0B0F3B3F1B1", "01", SR_REPEAT_MERGE},  /* and in between */
    {"F0B0F1B1F3B3", "01", SR_REPEAT_MERGE},  /* and last */
    {"F0B0F4B4F1B1", "01", SR_REPEAT_MERGE},  /* no rows, no data */
    {"F0B0F1B1B1B0", "01", SR_REPEAT_MERGE},  /* too many backward passes */
    {"F0B0", "0", SR_REPEAT_LAST},            /* one pass */
    {"F0B0F1B1", "1", SR_REPEAT_LAST},        /* the last one counts */
    {"F1F0B0", "0", SR_REPEAT_LAST},          /* the last one before it */
    {"F0F0B0", "0", SR_REPEAT_LAST},          /* checkpointed */
    {"F0F0B0F1F1B1", "1", SR_REPEAT_LAST},    /* in accumulation */
    {"F0F1B1B0", "1", SR_REPEAT_LAST},        /* a shared module: its last use */
    {"F0F1", "1", SR_REPEAT_LAST},            /* no backward pass */
    {"F0B0F1", "0", SR_REPEAT_LAST},          /* an evaluation after it */
    {"F4B4F2B2", "2", SR_REPEAT_LAST},        /* no rows at first */
    {"f0b0f2b2", "2", SR_REPEAT_LAST},        /* sums */
};

enum { EXAMPLES = sizeof examples / sizeof *examples };

/* One pass over the rows of the parts that count. */
static script_case one_pass(const script_case *c, const example *e) {
    script_case one = *c;
    one.script = strpbrk(e->script, "Bb") ? "F=B=" : "F=";
    one.together = e->counts, one.site.repeat = SR_REPEAT_LAST;
    return one;
}

static void check_examples(const script_case *base, const char *about) {
    static script_record got[2 * EXAMPLES];
    script_case c[2 * EXAMPLES];
    char label[96];
    for (int i = 0; i < EXAMPLES; i++) {
        c[2 * i] = *base, c[2 * i + 1] = one_pass(base, &examples[i]);
        c[2 * i].script = examples[i].script, c[2 * i].site.repeat = examples[i].repeat;
    }
    script_run(sample_path("passes.h5"), c, 2 * EXAMPLES, got);
    for (int i = 0; i < EXAMPLES; i++) {
        const example *e = &examples[i];
        /* passes without rows are passes */
        const bool merged =
            e->repeat == SR_REPEAT_MERGE && strlen(e->counts) + (e->script[1] == '3') > 1;
        snprintf(label, sizeof label, "%s %s %s", e->script, e->repeat ? "merged" : "last", about);
        compare(label, &got[2 * i], &got[2 * i + 1], merged);
    }
}

static script_case case_of(sr_family family, sr_element element, double mean) {
    return (script_case){.site = SR_INIT(sr_site, .name = "site", .family = family,
                                         .width = SCRIPT_WIDTH, .eps = 1e-3, .alpha = 0.75),
                         .element = element,
                         .mean = mean};
}

static void test_families(void **state) {
    (void)state;
    for (int family = SR_FAMILY_NONE; family < SR_FAMILY_COUNT; family++)
        for (int observed = 0; observed < 2; observed++) {
            script_case c = case_of((sr_family)family, SR_FLOAT32, 3);
            c.observed = observed;
            check_examples(&c, sr_family_name((sr_family)family));
        }
}

static void test_elements_and_layouts(void **state) {
    (void)state;
    for (int element = SR_FLOAT32; element <= SR_FLOAT16; element++)
        for (int first = 0; first < 2; first++) {
            script_case c = case_of(SR_FAMILY_SIGMA, (sr_element)element, 0);
            c.channels_first = first;
            check_examples(&c, first ? "channels first" : "channels last");
        }
}

/* A formula that subtracts squares would lose the variance here. */
static void test_large_means(void **state) {
    (void)state;
    static const sr_family families[] = {SR_FAMILY_SIGMA, SR_FAMILY_PSI, SR_FAMILY_PN};
    for (int i = 0; i < 3; i++) {
        script_case c = case_of(families[i], SR_FLOAT32, 1e4);
        check_examples(&c, "mean 1e4");
        c.element = SR_FLOAT64, c.mean = -1e7;
        check_examples(&c, "mean -1e7");
    }
}

static void test_without_alpha(void **state) {
    (void)state;
    script_case c = case_of(SR_FAMILY_SIGMA, SR_FLOAT32, 1);
    static script_record got;
    c.site.alpha = NAN;
    check_examples(&c, "no alpha");
    c.script = "F0B0";
    script_run(sample_path("passes.h5"), &c, 1, &got);
    assert_true(isnan(got.vector[SR_mu][0]) && isnan(got.vector[SR_mu][SCRIPT_WIDTH]));
}

/* -- counts ---------------------------------------------------------------------------------- */

static void expect_counts(const script_case *base, const char *script, sr_repeat repeat,
                          double rows, double samples, double padded) {
    static script_record got;
    script_case c = *base;
    c.script = script, c.site.repeat = repeat;
    script_run(sample_path("counts.h5"), &c, 1, &got);
    const double want[] = {rows, samples, padded};
    const float found[] = {got.scalar[SR_SCALAR_rows][0], got.scalar[SR_SCALAR_samples][0],
                           got.scalar[SR_SCALAR_padded][0]};
    check_near_float(script, found, want, 3, 0, 0);
}

/* Parts of the batch. 0: 8 rows, 6 of them valid; 1: 12, 9; 2: 4, 3; 3: 8, none; 4: none. Channels
 * first: 4, 6, 2, 4 and 0 samples of two values. */
static void test_counts(void **state) {
    (void)state;
    script_case c = case_of(SR_FAMILY_SIGMA, SR_FLOAT32, 0);
    expect_counts(&c, "F0B0F1B1", SR_REPEAT_MERGE, 15, NAN, 5);
    expect_counts(&c, "F0B0F1B1", SR_REPEAT_LAST, 9, NAN, 3);
    expect_counts(&c, "F0B0F3B3", SR_REPEAT_LAST, 0, NAN, 8);
    expect_counts(&c, "F0F3", SR_REPEAT_MERGE, 0, NAN, 8);
    expect_counts(&c, "F3B3F0B0", SR_REPEAT_MERGE, 6, NAN, 10);
    c.samples = 5;
    expect_counts(&c, "F0B0F1B1", SR_REPEAT_MERGE, 15, 10, 5);
    expect_counts(&c, "f0b0F1B1f2b2", SR_REPEAT_MERGE, 18, 15, 6);
    expect_counts(&c, "f0b0F1B1f2b2", SR_REPEAT_LAST, 3, 5, 1);
    c.samples = 0, c.channels_first = true;
    expect_counts(&c, "F0B0F1B1", SR_REPEAT_MERGE, 15, 10, 5);
    expect_counts(&c, "F0B0F3B3", SR_REPEAT_MERGE, 6, 8, 10);
    expect_counts(&c, "F0B0F1B1", SR_REPEAT_LAST, 9, 6, 3);
    expect_counts(&c, "F0F1F1B1F0B0", SR_REPEAT_MERGE, 15, 10, 5);
}

int main(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0); /* many small files */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_families),    cmocka_unit_test(test_elements_and_layouts),
        cmocka_unit_test(test_large_means), cmocka_unit_test(test_without_alpha),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
