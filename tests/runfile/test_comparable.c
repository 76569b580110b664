/* test_comparable.c -- causes that make two sites of two runs incomparable: each cause alone, and
 * differences too small to count. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 10, LONG = 5000 }; /* LONG: values are compared one by one */

typedef struct small_run {
    int width, rows, tokens;
    double alpha;
    const char *model, *data, *config, *loss_reduction;
    int steps; /* 0: STEPS; below 0: none */
} small_run;

static const small_run base = {.width = 4,
                               .rows = 100,
                               .tokens = 1000,
                               .alpha = 0.9,
                               .model = "model",
                               .data = "data",
                               .config = "batching = random\nseed = 1\n",
                               .loss_reduction = "mean"};

static sr_runfile *write_run(const char *name, const small_run *s) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.vectors = false, o.overhead = 0, o.force = true;
    o.model = s->model, o.data = s->data, o.config = s->config;
    o.loss_reduction = s->loss_reduction;
    sr_recorder *r = run_create(sample_path(name), o);
    sr_add_site(r, &SR_INIT(sr_site, .name = "site", .family = SR_FAMILY_SIGMA, .width = s->width,
                            .alpha = s->alpha));
    for (int64_t step = 1; step <= (s->steps ? s->steps : STEPS); step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, s->rows);
        sr_end_step(r, &SR_INIT(sr_step, .update = step, .tokens = s->tokens));
    }
    run_finish(r);
    return sample_open(sample_path(name));
}

static void each_difference(void **state) {
    (void)state;
    static const struct {
        small_run other;
        unsigned found;
    } want[] = {
#define OTHER(field, value) .other.field = (value)
        {.found = 0},
        {OTHER(width, 5), .found = SR_DEPENDS_WIDTH},
        {OTHER(model, "another"), .found = SR_DEPENDS_SCALE},
        {OTHER(data, "others"), .found = SR_DEPENDS_SCALE},
        {OTHER(loss_reduction, "sum"), .found = SR_DEPENDS_LOSS},
        {OTHER(tokens, 1150), .found = SR_DEPENDS_LOSS},
        {OTHER(tokens, 850), .found = SR_DEPENDS_LOSS},
        {OTHER(tokens, 1050), .found = 0}, /* a tenth at most */
        {OTHER(rows, 115), .found = SR_DEPENDS_ROWS},
        {OTHER(rows, 85), .found = SR_DEPENDS_ROWS},
        {OTHER(rows, 105), .found = 0},
        {OTHER(config, "batching = length\nseed = 1\n"), .found = SR_DEPENDS_BATCHES},
        {OTHER(config, "batching = random\nseed = 2\n"), .found = 0},
        {OTHER(config, "seed = 1\n"), .found = 0}, /* unknown is not different */
        {OTHER(config, "batching = Random"), .found = SR_DEPENDS_BATCHES}, /* no newline */
        {OTHER(config, "batchings = length\n"), .found = 0},               /* another option */
        {OTHER(config, "batching"), .found = 0},
        {OTHER(steps, LONG), .found = 0},
        {OTHER(steps, -1), .found = 0}, /* without steps, rows and tokens are unknown */
        {OTHER(alpha, 0.99), .found = SR_DEPENDS_ALPHA},
#undef OTHER
    };
    sr_runfile *a = write_run("base.h5", &base);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        small_run s = base;
        const small_run *o = &want[i].other;
        if (o->width) s.width = o->width;
        if (o->rows) s.rows = o->rows;
        if (o->tokens) s.tokens = o->tokens;
        if (o->alpha > 0) s.alpha = o->alpha;
        if (o->model) s.model = o->model;
        if (o->data) s.data = o->data;
        if (o->config) s.config = o->config;
        if (o->loss_reduction) s.loss_reduction = o->loss_reduction;
        s.steps = o->steps;
        sr_runfile *b = write_run("other.h5", &s);
        const unsigned found = sr_differences(a, 0, b, 0), back = sr_differences(b, 0, a, 0);
        if (found != want[i].found || back != found)
            fail_msg("row %zu: differences %#x and %#x, expected %#x", i, found, back,
                     want[i].found);
        sr_run_close(b);
    }
    assert_int_equal(sr_differences(a, 0, a, 0), 0);
    sr_run_close(a);
}

/* A long run is sampled: differences in rows and tokens are still found. */
static void long_run(void **state) {
    (void)state;
    small_run s = base;
    s.steps = LONG, s.rows = 200, s.tokens = 2000;
    sr_runfile *a = write_run("base.h5", &base), *b = write_run("other.h5", &s);
    assert_int_equal(sr_differences(a, 0, b, 0), SR_DEPENDS_ROWS | SR_DEPENDS_LOSS);
    assert_int_equal(sr_differences(a, 0, b, 0), SR_DEPENDS_ROWS | SR_DEPENDS_LOSS); /* kept */
    sr_run_close(a), sr_run_close(b);
}

static void delete_column(const char *name, const char *column) {
    const hid_t file = H5Fopen(sample_path(name), H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(file >= 0 && H5Ldelete(file, column, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

/* Values that cannot be read are unknown, and unknown is not different; the rest is compared. */
static void damaged_runs(void **state) {
    (void)state;
    static const struct {
        const char *column;
        unsigned found;
    } want[] = {{"/steps/tokens", SR_DEPENDS_ROWS}, {"/scalars/rows", SR_DEPENDS_LOSS}};
    sr_runfile *a = write_run("base.h5", &base);
    for (int i = 0; i < 4; i++) {
        small_run s = base;
        s.rows = 200, s.tokens = 2000, s.steps = i % 2 ? LONG : STEPS;
        sr_run_close(write_run("other.h5", &s));
        delete_column("other.h5", want[i / 2].column);
        sr_runfile *b = sample_open(sample_path("other.h5"));
        assert_int_equal(sr_differences(a, 0, b, 0), want[i / 2].found);
        sr_run_close(b);
    }
    sr_run_close(a);
}

static void statistics(void **state) {
    (void)state;
    static const struct {
        const char *statistic;
        unsigned differences;
        const char *says; /* NULL: comparable */
    } want[] = {
        {"dist_mu", 0, NULL},
        {"dist_mu", SR_DEPENDS_LOSS, NULL},
        {"dist_mu", SR_DEPENDS_WIDTH,
         "dist_mu is not comparable between these runs (different width): it is divided by d and "
         "carries the scale of the activations; comparable: dist_mu_relative"},
        {"dist_mu", SR_DEPENDS_WIDTH | SR_DEPENDS_ROWS,
         "(different width, rows of a batch): it is divided by d and carries the scale of the "
         "activations; better: dist_mu_relative (still different: rows of a batch)"},
        {"dist_mu_relative", SR_DEPENDS_WIDTH, NULL},
        {"dist_mu_relative", SR_DEPENDS_ALPHA, "(different alpha): it holds sampling noise"},
        {"g_mu_share", SR_DEPENDS_LOSS, NULL},
        {"g_mu", SR_DEPENDS_LOSS, "; comparable: g_mu_share"},
        {"g_mu_sum", SR_DEPENDS_SCALE, "(different model or data): it is of the summed loss"},
        {"tid_total", SR_DEPENDS_BATCHES, "(different batching)"},
        {"sigma_ratio", SR_DEPENDS_ROWS, "(different rows of a batch)"},
        {"g_clip", ~0U, NULL}, /* a host program's own */
        {"", ~0U, NULL},
        {"loss", ~0U, NULL},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char text[512] = "";
        const bool same = sr_comparable(want[i].statistic, want[i].differences, text, sizeof text);
        if (same != !want[i].says || (want[i].says && !strstr(text, want[i].says)))
            fail_msg("%s, %#x: %d '%s'", want[i].statistic, want[i].differences, same, text);
    }
}

static void burn_in(void **state) {
    (void)state;
    assert_int_equal(sr_startup_of(0.9), 44);
    assert_int_equal(sr_startup_of(0.99), 459);
    assert_int_equal(sr_startup_of(0), 1);
    assert_int_equal(sr_startup_of(1), 0);
    assert_int_equal(sr_startup_of(-0.5), 0);
    assert_int_equal(sr_startup_of(NAN), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_difference),
                                       cmocka_unit_test(long_run), cmocka_unit_test(damaged_runs),
                                       cmocka_unit_test(statistics), cmocka_unit_test(burn_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
