/* none.c -- no normalization: y = x, dx = dy, no parameters, no state (docs/norms.md 1).
 *
 * x, y, dy, dx [rows, d]; nothing is kept. */
#include <math.h>
#include <string.h>

#include "norm/kernels/column_passes.h"
#include "norm/methods/methods.h"

static void copy_rows(const norm_call *c, const real *from, real *to) {
    const norm_rows *r = c->rows;
    int64_t d = c->features;
    size_t bytes = (size_t)d * sizeof *to;
    if (!r->index) {
        memcpy(to, from, (size_t)r->rows * bytes);
        return;
    }
    for (int64_t i = 0; i < r->valid; i++)
        memcpy(to + r->index[i] * d, from + r->index[i] * d, bytes);
}

static sr_status forward(norm_call *c, const real *x, real *y) {
    copy_rows(c, x, y);
    return SR_OK;
}

static sr_status backward(norm_call *c, const real *x, const real *dy, real *dx) {
    (void)x;
    copy_rows(c, dy, dx);
    if (!c->has_hook) return SR_OK;
    column_passes m = column_passes_valid(c);
    double square;
    sr_status status = column_passes_squares(&m, dy, NULL, &square);
    c->scalar[NORM_SCALAR_dx_norm] = c->scalar[NORM_SCALAR_direct_norm] = sqrt(square);
    return status;
}

const norm_method norm_none = {
    .name = "none",
    .citation = "-",
    .axis = "-",
    .family = NORM_FAMILY_NONE,
    .summary = "no normalization, y = x",
    .forward = forward,
    .backward = backward,
};
