/* test_comparable.c -- in what two sites of two runs differ: each cause by itself, and differences
 * that are too small to count. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/run_builder.h"
#include "testing/sample_run.h"

enum { STEPS = 10 };

typedef struct small_run {
    int width, rows, tokens;
    double alpha;
    const char *model, *data, *config, *loss_reduction;
} small_run;

static const small_run base = {
    4, 100, 1000, 0.9, "model", "data", "batching = random\nseed = 1\n", "mean"};

static sr_runfile *write_run(const char *name, const small_run *s) {
    sr_options o = SR_OPTIONS_DEFAULT;
    o.vectors = false, o.overhead = 0, o.force = true;
    o.model = s->model, o.data = s->data, o.config = s->config;
    o.loss_reduction = s->loss_reduction;
    sr_recorder *r = run_create(sample_path(name), o);
    sr_add_site(r, &SR_INIT(sr_site, .name = "site", .family = SR_FAMILY_SIGMA, .width = s->width,
                            .alpha = s->alpha));
    for (int64_t step = 1; step <= STEPS; step++) {
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_difference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
