/* test_layer_norms.c -- the layer of every parameter, and the layers' norms against plain loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/layer_norms.h"
#include "recorded_pairs.h"
#include "testing/check.h"

/* -- groups ---------------------------------------------------------------------------------- */

static const char *site_of(const model *m, const char *parameter) {
    for (int i = 0; i < m->params.count; i++) {
        if (strcmp(m->params.item[i]->name, parameter)) continue;
        const int site = layer_norms_site(m, i);
        return site < 0 ? "-" : m->site[site]->name;
    }
    return "no such parameter";
}

typedef struct expected {
    const char *parameter, *site;
} expected;

static void check_groups(const model *m, const expected *want, int count) {
    for (int i = 0; i < count; i++)
        assert_string_equal(site_of(m, want[i].parameter), want[i].site);
}

static const expected of_pairs[] = {
    {"encoder.0.norm1.gamma", "encoder.0.norm1"},
    {"encoder.0.norm2.beta", "encoder.0.norm2"},
    {"encoder.0.ffn_block.in.weight", "encoder.0.norm2"},
    {"encoder.0.ffn_block.out.bias", "encoder.0.norm2"},
    {"encoder.final.gamma", "encoder.final"},
    {"decoder.0.ffn_block.out.weight", "decoder.0.ffn"},
    {"decoder.0.cross.gamma", "decoder.0.cross"},
    {"decoder.0.self.gamma", "decoder.0.self"},
    {"embedding", "-"},
};

/* Methods without gain do not change the site numbers of other parameters. */
static void text(void **state) {
    (void)state;
    static const char *const norms[] = {"ln", "none"};
    for (int n = 0; n < 2; n++) {
        pairs_model x = pairs_make(norms[n]);
        for (size_t i = 0; i < sizeof of_pairs / sizeof of_pairs[0]; i++) {
            const bool gain = strstr(of_pairs[i].parameter, "gamma") != NULL ||
                              strstr(of_pairs[i].parameter, "norm2.beta") != NULL;
            if (n == 1 && gain && !strncmp(of_pairs[i].parameter, "encoder", 7)) continue;
            check_groups(x.m, &of_pairs[i], 1);
        }
        for (int i = 0; i < x.m->params.count; i++) {
            const char *name = x.m->params.item[i]->name;
            if (!strncmp(name, "encoder.0.attention.", 20))
                assert_string_equal(site_of(x.m, name), "encoder.0.norm1");
            if (!strncmp(name, "decoder.0.self_attention.", 25))
                assert_string_equal(site_of(x.m, name), "decoder.0.self");
            if (!strncmp(name, "decoder.0.cross_attention.", 26))
                assert_string_equal(site_of(x.m, name), "decoder.0.cross");
        }
        pairs_free(&x);
    }
}

static void images(void **state) {
    (void)state;
    static const expected want[] = {
        {"stem.weight", "stem"},
        {"stem.beta", "stem"},
        {"stage1.0.conv1.weight", "stage1.0.norm1"},
        {"stage1.0.norm1.gamma", "stage1.0.norm1"},
        {"stage1.0.conv2.weight", "stage1.0.norm2"},
        {"stage3.1.conv2.weight", "stage3.1.norm2"},
        {"classify.weight", "-"},
        {"classify.bias", "-"},
    };
    const data_options wanted = {.name = "synth-images", .batch_size = 4, .limit = 8, .seed = 1};
    const model_options o = {
        .name = "resnet20", .norm = "bn", .norm_eps = NAN, .norm_alpha = NAN, .dropout = NAN};
    sr_failure why = {0};
    dataset *data = data_open(&wanted, &why);
    model *m = data ? model_create(&o, data_get_shape(data), &why) : NULL;
    if (!m) fail_msg("%s", why.text);
    check_groups(m, want, sizeof want / sizeof want[0]);
    model_free(m);
    data_close(data);
}

/* -- norms ----------------------------------------------------------------------------------- */

static double number(const sr_runfile *f, const char *name, int64_t site, int64_t step) {
    float value;
    double wide;
    sr_failure why = {0};
    if (site < 0) {
        check_ok(sr_run_step_reals(f, name, step - 1, 1, &wide, &why), &why);
        return wide;
    }
    check_ok(sr_run_scalar(f, name, site, step - 1, 1, &value, &why), &why);
    return (double)value;
}

/* Norms of site `site`; -1: of parameters without a site whose name starts with `other`. change: w'
 * = w + change g. */
static void reference(const model *m, int site, const char *other, double scale, double change,
                      double want[4]) {
    double sum[3] = {0, 0, 0};
    for (int i = 0; i < m->params.count; i++) {
        const param *p = m->params.item[i];
        if (layer_norms_site(m, i) != site) continue;
        if (site < 0 && strncmp(p->name, other, strlen(other))) continue;
        for (int64_t k = 0; k < p->t.count; k++) {
            const double g = (double)p->t.grad[k], w = (double)p->t.value[k];
            const double by = (double)(real)(w + change * g) - w;
            sum[0] += g * scale * g * scale;
            sum[1] += w * w;
            sum[2] += by * by;
        }
    }
    for (int i = 0; i < 3; i++) want[i] = sqrt(sum[i]);
    want[3] = want[2] / want[1];
}

static void fill_gradients(model *m, double factor) {
    rng random = rng_create(9);
    for (int i = 0; i < m->params.count; i++)
        for (int64_t k = 0; k < m->params.item[i]->t.count; k++)
            m->params.item[i]->t.grad[k] = (real)(factor * (i + 1) * rng_normal(&random));
}

static void change_weights(model *m, double change) {
    for (int i = 0; i < m->params.count; i++) {
        tensor *t = &m->params.item[i]->t;
        for (int64_t k = 0; k < t->count; k++)
            t->value[k] = (real)((double)t->value[k] + change * (double)t->grad[k]);
    }
}

static const char *const name[4] = {"layer_grad_norm", "layer_weight_norm", "layer_update_norm",
                                    "layer_update_ratio"};
enum { GROUPS = SITES + 1 };

/* Updates 1 .. 4; the second and fourth are recorded, and the last changes nothing. Clipping comes
 * after the gradients are measured. */
static void record(const char *file, int threads, double want[2][GROUPS][4]) {
    pairs_model x = pairs_make("ln");
    run_record_options o = pairs_options(file);
    o.layer_norms_every = 2;
    run_record *r = pairs_begin(&x, &o);
    for (int64_t update = 1; update <= 4; update++) {
        const double change = update == 4 ? 0 : -0.01, scale = 0.25;
        fill_gradients(x.m, (double)update);
        run_record_begin_step(r, update, false);
        run_record_before_update(r, update, scale, threads);
        fill_gradients(x.m, 0.5 * (double)update);
        for (int g = 0; g < GROUPS && update % 2 == 0; g++) {
            double *to = want[update / 2 - 1][g];
            reference(x.m, g < SITES ? g : -1, "embedding", 2 * scale, change, to);
        }
        change_weights(x.m, change);
        run_record_after_update(r, threads);
        run_record_end_step(r, &(run_step){.update = update});
    }
    sr_run_close(pairs_end(r, "complete", file));
    pairs_free(&x);
}

static void against_loops(void **state) {
    (void)state;
    static double want[2][GROUPS][4];
    record("one.h5", 1, want);
    sr_failure why = {0};
    sr_runfile *f = sr_run_open(pairs_path("one.h5"), &why);
    assert_non_null(f);
    for (int g = 0; g < GROUPS; g++) {
        for (int k = 0; k < 4; k++) {
            char column[64];
            snprintf(column, sizeof column, g < SITES ? "%s" : "%s.embedding", name[k]);
            const int site = g < SITES ? g : -1;
            assert_true(isnan(number(f, column, site, 1)) && isnan(number(f, column, site, 3)));
            for (int u = 0; u < 2; u++) {
                const double got = number(f, column, site, 2 * u + 2);
                check_near_double(column, &got, &want[u][g][k], 1, 1e-6, 0);
            }
        }
    }
    check_equals(want[1][0][2], 0);
    check_above(want[0][0][2], 0);
    sr_run_close(f);
}

static void any_number_of_threads(void **state) {
    (void)state;
    static double want[2][GROUPS][4];
    sr_failure why = {0};
    record("one.h5", 1, want);
    record("three.h5", 3, want);
    sr_runfile *one = sr_run_open(pairs_path("one.h5"), &why);
    sr_runfile *three = sr_run_open(pairs_path("three.h5"), &why);
    assert_true(one && three);
    for (int g = 0; g < SITES; g++)
        for (int k = 0; k < 4; k++)
            check_equals(number(one, name[k], g, 2), number(three, name[k], g, 2));
    sr_run_close(one);
    sr_run_close(three);
}

/* A file without the option records none of these values. */
static void unasked(void **state) {
    (void)state;
    pairs_model x = pairs_make("ln");
    const run_record_options o = pairs_options("none.h5");
    run_record *r = pairs_begin(&x, &o);
    pairs_step(&x, r, 1, false);
    run_record_before_update(r, 2, 1, 1);
    run_record_after_update(r, 1);
    sr_runfile *f = pairs_end(r, "complete", "none.h5");
    assert_null(sr_run_get_declared(f, 0));
    sr_run_close(f);
    pairs_free(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text),          cmocka_unit_test(images),
        cmocka_unit_test(against_loops), cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
