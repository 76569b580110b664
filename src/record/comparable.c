/* comparable.c -- which statistics may be compared between runs, and what to compare instead.
 *
 * A quantity depends on what a run was built of: the width d it is divided by, the scale of the
 * activations, whether gradients are those of the loss's sum or mean (and of how many tokens), the
 * number n of rows that a batch statistic is taken over. What depends on none of these, but for n,
 * has a row of its own name in no table here.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "statrec/runfile.h"

/* Statistics whose name begins and ends so: with anything between where `begin` ends in _. */
typedef struct comparability {
    const char *begin, *end;
    unsigned depends;
    const char *instead; /* `begin` without the quantity, this behind it; NULL: none */
    const char *reason;
} comparability;

#define SAMPLING "holds sampling noise that falls with the root of the rows"

static const comparability rows[] = {
    {"dist_", "_excess", 0, NULL, ""},
    {"g_", "_excess", 0, NULL, ""},
    {"dist_mu", "_relative", SR_DEPENDS_ROWS, "_excess", SAMPLING},
    {"dist_sigma", "_relative", SR_DEPENDS_ROWS, "_excess", SAMPLING},
    {"dist_", "_relative", SR_DEPENDS_ROWS, NULL, SAMPLING},
    {"dist_", "_per_root", SR_DEPENDS_SCALE | SR_DEPENDS_ROWS, "_relative",
     "carries the scale of the activations"},
    {"dist_", "", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_ROWS, "_relative",
     "is divided by d and carries the scale of the activations"},
    {"g_mu", "_share", SR_DEPENDS_ROWS, "_excess", SAMPLING},
    {"g_sigma2", "_share", SR_DEPENDS_ROWS, "_excess", SAMPLING},
    {"g_", "_share", SR_DEPENDS_ROWS, NULL, SAMPLING},
    {"g_", "_mean", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE, "_share",
     "is divided by d and carries the scale of the gradient"},
    {"g_", "_sum", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS, "_share",
     "is of the summed loss, divided by d"},
    {"g_", "", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS, "_share",
     "is of the loss as the run reduced it, divided by d"},
    {"tid_", "", SR_DEPENDS_ROWS, NULL, SAMPLING},
    {"rel_", "", SR_DEPENDS_ROWS, NULL, SAMPLING},
    {"dx_norm_", "", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS, NULL,
     "is of the loss as the run reduced it, over all rows and features"},
    {"dx_norm", "", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS, NULL,
     "is of the loss as the run reduced it, over all rows and features"},
    {"direct_norm_", "", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS, NULL,
     "is of the loss as the run reduced it, over all rows and features"},
    {"direct_norm", "", SR_DEPENDS_WIDTH | SR_DEPENDS_SCALE | SR_DEPENDS_LOSS, NULL,
     "is of the loss as the run reduced it, over all rows and features"},
};

static bool fits(const comparability *c, const char *name) {
    const size_t begin = strlen(c->begin), end = strlen(c->end), length = strlen(name);
    const bool open = begin > 0 && c->begin[begin - 1] == '_';
    return (open ? length >= begin + end : length == begin + end) &&
           strncmp(name, c->begin, begin) == 0 && strcmp(name + length - end, c->end) == 0;
}

unsigned sr_depends(const char *statistic, sr_instead *instead) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const comparability *c = &rows[i];
        if (!fits(c, statistic)) continue;
        const size_t stem = strlen(statistic) - strlen(c->end);
        instead->reason = c->reason;
        instead->name[0] = 0;
        if (c->instead && stem + strlen(c->instead) < sizeof instead->name) {
            memcpy(instead->name, statistic, stem);
            strcpy(instead->name + stem, c->instead);
        }
        return c->depends;
    }
    return 0;
}

/* -- two runs -------------------------------------------------------------------------------- */

enum { LOOK = 64 }; /* steps */

static double mean_of(const double *value, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += value[i];
    return sum / (double)count;
}

/* Means over the first steps: tokens of a pass, and valid rows of the site; NaN without any. */
static void look_at_run(const sr_runfile *f, int64_t site, double *tokens, double *rows_here) {
    const int64_t steps = sr_run_get_info(f)->steps, count = steps < LOOK ? steps : LOOK;
    double value[LOOK];
    float raw[LOOK];
    *tokens = *rows_here = NAN;
    if (!count) return;
    if (sr_run_step_reals(f, "tokens", 0, count, value, NULL) == SR_OK)
        *tokens = mean_of(value, count);
    if (sr_run_scalar(f, "rows", site, 0, count, raw, NULL) != SR_OK) return;
    for (int64_t i = 0; i < count; i++) value[i] = (double)raw[i];
    *rows_here = mean_of(value, count);
}

static bool differ(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "") != 0;
}

/* By more than a tenth. */
static bool apart(double a, double b) {
    return a > 1.1 * b || b > 1.1 * a;
}

unsigned sr_differences(const sr_runfile *a, int64_t site_a, const sr_runfile *b, int64_t site_b) {
    const sr_run_info *x = sr_run_get_info(a), *y = sr_run_get_info(b);
    double tokens[2], rows_of[2];
    unsigned found = 0;
    look_at_run(a, site_a, &tokens[0], &rows_of[0]);
    look_at_run(b, site_b, &tokens[1], &rows_of[1]);
    if (sr_run_get_site(a, site_a)->width != sr_run_get_site(b, site_b)->width)
        found |= SR_DEPENDS_WIDTH;
    if (differ(x->model, y->model) || differ(x->data, y->data)) found |= SR_DEPENDS_SCALE;
    if (differ(x->loss_reduction, y->loss_reduction) || apart(tokens[0], tokens[1]))
        found |= SR_DEPENDS_LOSS;
    if (apart(rows_of[0], rows_of[1])) found |= SR_DEPENDS_ROWS;
    return found;
}

static const struct {
    unsigned bit;
    const char *name;
} causes[] = {{SR_DEPENDS_WIDTH, "width"},
              {SR_DEPENDS_SCALE, "model or data"},
              {SR_DEPENDS_LOSS, "loss reduction or tokens of a pass"},
              {SR_DEPENDS_ROWS, "rows of a batch"}};

bool sr_comparable(const char *statistic, unsigned differences, char *text, size_t size) {
    sr_instead instead;
    const unsigned wrong = sr_depends(statistic, &instead) & differences;
    if (!wrong) return true;
    int used = snprintf(text, size, "%s is not comparable between these runs (", statistic);
    for (size_t i = 0, some = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (!(wrong & causes[i].bit) || used < 0 || (size_t)used >= size) continue;
        used += snprintf(text + used, size - (size_t)used, "%s%s", some++ ? ", " : "different ",
                         causes[i].name);
    }
    if (used >= 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, "): it %s%s%s", instead.reason,
                 instead.name[0] ? "; comparable: " : "", instead.name);
    return false;
}
