/* test_record_shards.c -- attention and activation values of a batch in shards equal the whole
 * batch's. One process and several give the same numbers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recorded_pairs.h"
#include "testing/check.h"

enum { SHARES = 4, RANKS_MAX = 3, STEPS = 4, NAMES = 64 };

/* A process of the run. */
typedef struct process {
    pairs_model x;
    run_record *r;
} process;

static run_record_options options(int shares, int own) {
    run_record_options o = pairs_options("shares.h5");
    o.attention = true;
    o.activations_every = 1;
    o.shares = shares;
    o.own_shares = own;
    return o;
}

static void open_processes(process *p, int ranks, const int *first, const char *sites) {
    sr_failure why = {0};
    for (int k = 0; k < ranks; k++) {
        run_record_options o = options(first[ranks], first[k + 1] - first[k]);
        o.sites = sites;
        p[k].x = pairs_make_batches("ln", 300);
        p[k].r = k == 0 ? pairs_begin(&p[k].x, &o) : run_record_follow(p[k].x.m, &o, &why);
        if (!p[k].r) fail_msg("%s", why.text);
    }
}

/* Returns the samples of shard s. The last shard has most; at every other step the second one is
 * empty, at the others the third. */
static batch share_of(const batch *b, int64_t step, int s, int shares) {
    const int64_t n = b->count, at[SHARES + 1] = {0, 1, 1 + step % 2, 2, n};
    assert_true(n > 3);
    return shares == 1 ? *b : batch_slice(b, at[s], at[s + 1] - at[s]);
}

/* The last step records no activations. */
static void step(process *p, int ranks, const int *first, int64_t number) {
    run_record *r[RANKS_MAX];
    for (int k = 0; k < ranks; k++) {
        const batch b = pairs_batch(&p[k].x, number);
        r[k] = p[k].r;
        run_record_begin_step(r[k], number, false);
        run_record_want_activations(r[k], number < STEPS);
        for (int s = first[k]; s < first[k + 1]; s++) {
            const batch part = share_of(&b, number, s, first[ranks]);
            run_record_enter(r[k], s - first[k]);
            if (part.count > 0) pairs_pass(&p[k].x, &part);
        }
        run_record_enter(r[k], 0);
    }
    pairs_exchange(r, ranks, first);
    pairs_end_step(r[0], number);
}

/* All custom scalars of the run, at every site and step. */
typedef struct declared {
    int count;
    int64_t sites;
    char name[NAMES][SR_NAME_SIZE], site[SITES][SR_NAME_SIZE];
    float value[NAMES][SITES][STEPS];
} declared;

static void read_declared(const sr_runfile *f, declared *to) {
    sr_failure why = {0};
    memset(to, 0, sizeof *to);
    to->sites = sr_run_get_info(f)->sites;
    for (int s = 0; s < to->sites; s++)
        snprintf(to->site[s], SR_NAME_SIZE, "%s", sr_run_get_site(f, s)->name);
    for (const sr_run_declared *d; (d = sr_run_get_declared(f, to->count)); to->count++) {
        assert_true(to->count < NAMES);
        snprintf(to->name[to->count], SR_NAME_SIZE, "%s", d->name);
        for (int s = 0; s < to->sites; s++)
            check_ok(sr_run_scalar(f, d->name, s, 0, STEPS, to->value[to->count][s], &why), &why);
    }
}

static void record(int ranks, const int *first, const char *sites, declared *to) {
    process p[RANKS_MAX];
    sr_failure why = {0};
    open_processes(p, ranks, first, sites);
    for (int64_t i = 1; i <= STEPS; i++) step(p, ranks, first, i);
    for (int k = 1; k < ranks; k++)
        check_ok(run_record_close(p[k].r, "complete", NULL, NULL, &why), &why);
    sr_runfile *f = pairs_end(p[0].r, "complete", "shares.h5");
    read_declared(f, to);
    sr_run_close(f);
    for (int k = 0; k < ranks; k++) pairs_free(&p[k].x);
}

static bool is_of(const char *name, const char *beginning) {
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool is_one_of(const char *name, const char *const *of) {
    while (*of && strcmp(name, *of) != 0) of++;
    return *of;
}

/* Inputs of the first sites are bit-identical in a shard. All others agree up to rounding: GEMMs
 * with other row counts may sum in another order. Saturation uses each shard's own line. */
static void check_value(const char *name, const char *site, float got, float want) {
    static const char *const firsts[] = {"encoder.0.norm1", "decoder.0.self", NULL};
    const double a = (double)got, b = (double)want;
    const bool exact = is_of(name, "x_") && is_one_of(site, firsts);
    const double tolerance = exact                        ? 0
                             : !strcmp(name, "saturated") ? 0.2
                             : !strcmp(name, "x_median")  ? 1e-4
                                                          : 1e-6;
    if ((isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fabs(b)) return;
    fail_msg("%s of %s: %.9g, of the whole batch %.9g", name, site, a, b);
}

static int found(const declared *d, const char *beginning) {
    int values = 0;
    for (int i = 0; i < d->count; i++)
        for (int s = 0; s < d->sites && is_of(d->name[i], beginning); s++)
            for (int k = 0; k < STEPS; k++) values += !isnan((double)d->value[i][s][k]);
    return values;
}

static void the_whole_batch(void **state) {
    (void)state;
    static declared whole, shared;
    record(1, (const int[]){0, 1}, "*", &whole);
    record(1, (const int[]){0, SHARES}, "*", &shared);
    assert_int_equal(whole.sites, SITES);
    assert_int_equal(found(&whole, "attention_logit_max_head2"), 3 * STEPS);
    assert_int_equal(found(&whole, "attention_entropy"), 5 * 3 * STEPS);
    assert_int_equal(found(&whole, "x_"), 4 * SITES * (STEPS - 1));
    assert_int_equal(found(&whole, "saturated"), SITES * (STEPS - 1));
    assert_int_equal(shared.count, whole.count);
    for (int i = 0; i < whole.count; i++)
        for (int s = 0; s < SITES; s++)
            for (int k = 0; k < STEPS; k++)
                check_value(whole.name[i], whole.site[s], shared.value[i][s][k],
                            whole.value[i][s][k]);
}

/* Step 3 repeats the first batch with the same weights: other steps leave no trace. */
static void steps_by_themselves(void **state) {
    (void)state;
    static declared d;
    record(1, (const int[]){0, SHARES}, "*", &d);
    for (int i = 0; i < d.count; i++) {
        for (int s = 0; s < SITES; s++) {
            const float *value = d.value[i][s];
            assert_memory_equal(&value[0], &value[2], sizeof *value);
            assert_true(!is_of(d.name[i], "x_") || value[1] != value[0]);
        }
    }
}

static void any_number_of_processes(void **state) {
    (void)state;
    static declared one, more;
    record(1, (const int[]){0, SHARES}, "*", &one);
    record(2, (const int[]){0, 2, SHARES}, "*", &more);
    assert_memory_equal(&one, &more, sizeof one);
    record(3, (const int[]){0, 1, 2, SHARES}, "*", &more);
    assert_memory_equal(&one, &more, sizeof one);
}

/* Every process has the same sites, even if another one records them. */
static void some_sites(void **state) {
    (void)state;
    static declared all, some;
    record(1, (const int[]){0, SHARES}, "*", &all);
    record(2, (const int[]){0, 3, SHARES}, "decoder.*", &some);
    assert_int_equal(some.sites, 4);
    for (int i = 0; i < all.count; i++)
        for (int s = 0; s < some.sites; s++)
            assert_memory_equal(some.value[i][s], all.value[i][s + SITES - 4],
                                sizeof all.value[i][s]);
    assert_int_equal(found(&some, "attention_logit_max_head2"), 2 * STEPS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_batch),
        cmocka_unit_test(steps_by_themselves),
        cmocka_unit_test(any_number_of_processes),
        cmocka_unit_test(some_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
