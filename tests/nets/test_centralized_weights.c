/* MABN centralizes the weights of the layers before its norms (docs/norms.md 16). A number added to
 * all weights of a unit changes nothing; other layers' weights are not centralized. */
#include <math.h>
#include <string.h>

#include "nets/models.h"
#include "testing/check.h"

enum { SIDE = 16, IMAGES = 2, PIXELS = IMAGES * SIDE * SIDE, CLASSES = 4 };

static model *create(const char *name, const char *preset) {
    model_options o = {.norm = "mabn",
                       .decoder_norm = "ln",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .dropout = NAN,
                       .conv_norms = true,
                       .seed = 1};
    const data_shape shape = {
        .task = TASK_IMAGES, .height = SIDE, .width = SIDE, .channels = 1, .classes = CLASSES};
    sr_failure why = {0};
    strcpy(o.name, name), strcpy(o.preset, preset);
    model *m = model_create(&o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

static void run(model *m, tape *t, double logit[IMAGES * CLASSES]) {
    real image[PIXELS];
    rng r = rng_create(3);
    for (int i = 0; i < PIXELS; i++) image[i] = (real)(1 + rng_normal(&r));
    const batch b = {.task = TASK_IMAGES,
                     .count = IMAGES,
                     .tokens = IMAGES,
                     .height = SIDE,
                     .width = SIDE,
                     .channels = 1,
                     .image = image};
    pass p = {.tape = t, .batch = &b, .mode = NORM_RUNNING};
    tape_reset(t, rng_create(1), false, false);
    const tensor *y = m->row->forward(m, &p);
    if (!y) fail_msg("%s", tape_failure(t)->text);
    for (int i = 0; i < IMAGES * CLASSES; i++) logit[i] = (double)y->value[i];
}

/* Returns the largest change of a logit after adding a different number to each unit's weights. */
static double moved(model *m, tape *t, tensor *w) {
    double before[IMAGES * CLASSES], after[IMAGES * CLASSES], most = 0;
    const int64_t each = w->count / w->dim[0];
    run(m, t, before);
    for (int64_t i = 0; i < w->count; i++) w->value[i] += (real)(0.05 * (double)(1 + i / each % 5));
    run(m, t, after);
    for (int i = 0; i < IMAGES * CLASSES; i++) most = fmax(most, fabs(after[i] - before[i]));
    return most;
}

static void check(const char *name, const char *preset) {
    sr_failure why = {0};
    model *m = create(name, preset);
    tape *t = tape_create(1, &why);
    int seen = 0;
    for (int i = 0; i < m->params.count; i++) {
        param *p = m->params.item[i];
        const char *end = strrchr(p->name, '.');
        if (strcmp(end ? end : "", ".weight") != 0) continue;
        const bool last = !strcmp(p->name, "classify.weight");
        const double far = moved(m, t, &p->t);
        if ((far > 1e-3) != last) fail_msg("%s: %s moves logits by %g", name, p->name, far);
        seen++;
    }
    assert_true(seen > 3);
    tape_free(t);
    model_free(m);
}

static void weights_of_units(void **state) {
    (void)state;
    check("mnist_cnn", "");
    check("resnet20", "");
    check("resnet18", "mini");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(weights_of_units)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
