/* Shares of the parts of one site, by two passes through its vectors. The first sums products for
 * the regressions and their control; the second subtracts each part from every row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/batchmix/batchmix.h"
#include "base/rng.h"
#include "base/sort.h"

const char *const mix_part_name[MIX_PARTS] = {
    [MIX_NONE] = "none",           [MIX_POSITION] = "position",
    [MIX_LENGTH] = "length",       [MIX_PADDING] = "padding",
    [MIX_BOTH] = "length+padding", [MIX_MORE] = "position+length+padding",
};

mix_model mix_model_of(const mix_site *m, mix_part part) {
    const bool length = part == MIX_LENGTH || part == MIX_BOTH || part == MIX_MORE;
    const bool padding = part == MIX_PADDING || part == MIX_BOTH || part == MIX_MORE;
    return (mix_model){.target = part == MIX_POSITION || part == MIX_MORE,
                       .first = length ? 0 : m->length,
                       .count = (length ? m->length : 0) + (padding ? m->padding : 0)};
}

typedef struct work {
    const mix_site *m;
    int64_t width, shifts;
    int terms;
    mix_model model[MIX_PARTS];
    const bool *there;       /* [MIX_PARTS] */
    mix_fit fit, *moved;     /* moved [shifts] */
    double *b[MIX_PARTS];    /* [folds, count, width] */
    double *left[MIX_PARTS]; /* [used] squares that are left */
    double *sigma, *rest;    /* [used] ||sigma||; [width] */
    int64_t used, nonfinite;
    double position2, delta2, rest2, noise; /* sums over rows */
} work;

static void work_free(work *w) {
    mix_fit_free(&w->fit);
    for (int64_t i = 0; w->moved && i < w->shifts; i++) mix_fit_free(&w->moved[i]);
    free(w->moved);
    for (int part = 0; part < MIX_PARTS; part++) {
        free(w->b[part]);
        free(w->left[part]);
    }
    free(w->sigma);
    free(w->rest);
}

static double *allocate(int64_t count, bool *whole) {
    double *p = malloc((size_t)(count + 1) * sizeof *p);
    *whole = *whole && p;
    return p;
}

static sr_status work_create(work *w, const bool *there, sr_failure *why) {
    const int64_t rows = w->m->rows;
    const int targets = w->m->position ? 2 : 1;
    bool whole = true;
    for (int part = 0; part < MIX_PARTS; part++) {
        w->model[part] = mix_model_of(w->m, (mix_part)part);
        if (!there[part]) continue;
        w->left[part] = allocate(rows, &whole);
        w->b[part] = allocate(MIX_FOLDS * w->model[part].count * w->width, &whole);
    }
    w->there = there;
    w->sigma = allocate(rows, &whole);
    w->rest = allocate(w->width, &whole);
    w->moved = calloc((size_t)w->shifts + 1, sizeof *w->moved);
    sr_status status = whole && w->moved ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = mix_fit_create(&w->fit, w->terms, targets, w->width, why);
    for (int64_t i = 0; i < w->shifts && status == SR_OK; i++)
        status = mix_fit_create(&w->moved[i], w->terms, targets, w->width, why);
    return status;
}

static int fold_of(const work *w, int64_t row) {
    return (int)(row / w->m->block % MIX_FOLDS);
}

/* -- first pass ------------------------------------------------------------------------------ */

/* Distances are spread evenly, at least two blocks from 0. */
static int64_t distance(const work *w, int64_t i) {
    const double rows = (double)w->m->rows;
    const double least = fmin(2 * (double)w->m->block, rows / 4);
    const double part = w->shifts > 1 ? (double)i / (double)(w->shifts - 1) : 0.5;
    return (int64_t)(least + part * (rows - 2 * least));
}

static void sum_row(void *context, const mix_row *row) {
    work *w = context;
    if (!row->finite) return;
    const int fold = fold_of(w, row->at);
    mix_fit_add(&w->fit, fold, row->z, row->y);
    for (int64_t i = 0; i < w->shifts; i++) {
        const double *z = w->m->z + (row->at + distance(w, i)) % w->m->rows * w->terms;
        bool finite = true;
        for (int j = 0; j < w->terms; j++) finite = finite && isfinite(z[j]);
        if (finite) mix_fit_add(&w->moved[i], fold, z, row->y);
    }
}

static double total_squares(const mix_fit *f) {
    double sum = 0;
    for (int fold = 0; fold < MIX_FOLDS; fold++) sum += f->yy[fold * f->targets];
    return sum;
}

static void solve_part(work *w, mix_part part, mix_share *s) {
    const mix_model *model = &w->model[part];
    double *b = w->b[part];
    s->control_low = INFINITY, s->control_high = -INFINITY;
    for (int64_t i = 0; i < w->shifts; i++) {
        const double share = 1 - mix_fit_left(&w->moved[i], model, b) / total_squares(&w->moved[i]);
        s->control_low = fmin(s->control_low, share);
        s->control_high = fmax(s->control_high, share);
    }
    if (!w->shifts) s->control_low = s->control_high = NAN;
    for (int fold = 0; fold < MIX_FOLDS; fold++)
        mix_fit_solve(&w->fit, fold, model, b + fold * model->count * w->width);
}

/* -- second pass ----------------------------------------------------------------------------- */

static double square_without(const work *w, mix_part part, const mix_row *row) {
    const mix_model *model = &w->model[part];
    if (!model->count) return model->target ? row->rest2 : row->delta2;
    const double *b = w->b[part] + fold_of(w, row->at) * model->count * w->width;
    double sum = 0;
    memcpy(w->rest, row->y[model->target], (size_t)w->width * sizeof *w->rest);
    for (int j = 0; j < model->count; j++)
        for (int64_t k = 0; k < w->width; k++)
            w->rest[k] -= row->z[model->first + j] * b[j * w->width + k];
    for (int64_t k = 0; k < w->width; k++) sum += w->rest[k] * w->rest[k];
    return sum;
}

static void take_out(void *context, const mix_row *row) {
    work *w = context;
    if (!row->finite) {
        w->nonfinite++;
        return;
    }
    for (int part = 0; part < MIX_PARTS; part++)
        if (w->there[part]) w->left[part][w->used] = square_without(w, (mix_part)part, row);
    w->sigma[w->used++] = sqrt(row->sigma2);
    w->position2 += row->position2;
    w->delta2 += row->delta2;
    w->rest2 += row->rest2;
    w->noise += row->sigma2 / w->m->n[row->at];
}

/* -- shares and their intervals -------------------------------------------------------------- */

static double sum_of(const double *value, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += value[i];
    return sum;
}

/* One resample of 1 - sum left / sum all, by circular blocks. */
static double resample_share(const work *w, const double *left, const double *all, rng *random) {
    double above = 0, below = 0;
    for (int64_t drawn = 0; drawn < w->used;) {
        int64_t at = (int64_t)rng_below(random, (uint64_t)w->used);
        for (int64_t i = 0; i < w->m->block && drawn < w->used; i++, drawn++) {
            above += left[at], below += all[at];
            at = at + 1 == w->used ? 0 : at + 1;
        }
    }
    return 1 - above / below;
}

static sr_status share_of(const work *w, mix_part part, const mix_intervals *of, mix_share *s,
                          sr_failure *why) {
    const double *left = w->left[part], *all = w->left[MIX_NONE];
    double tid = 0;
    for (int64_t i = 0; i < w->used; i++) tid += sqrt(left[i]) / w->sigma[i];
    s->tid = w->used ? tid / (double)w->used : NAN;
    s->share = w->used ? 1 - sum_of(left, w->used) / sum_of(all, w->used) : NAN;
    s->low = s->high = NAN;
    if (!w->used || part == MIX_NONE) return SR_OK;
    double *drawn = malloc((size_t)of->resamples * sizeof *drawn);
    if (!drawn) return sr_fail(why, SR_MEMORY, "out of memory");
    rng random = rng_create((uint64_t)of->seed); /* the same blocks for every part */
    for (int64_t i = 0; i < of->resamples; i++) drawn[i] = resample_share(w, left, all, &random);
    sort_reals(drawn, of->resamples);
    s->low = quantile_of_sorted(drawn, of->resamples, (1 - of->level / 100) / 2);
    s->high = quantile_of_sorted(drawn, of->resamples, (1 + of->level / 100) / 2);
    free(drawn);
    return SR_OK;
}

sr_status mix_explain(const mix_site *m, const mix_intervals *of, mix_outcome *o, sr_failure *why) {
    work w = {.m = m, .width = m->at->width, .terms = m->length + m->padding};
    bool there[MIX_PARTS], fitted = false;
    for (int part = 0; part < MIX_PARTS; part++) {
        there[part] = o->part[part].there;
        fitted = fitted || (there[part] && mix_model_of(m, (mix_part)part).count);
        o->part[part].control_low = o->part[part].control_high = NAN;
    }
    w.shifts = fitted ? of->shifts : 0;
    sr_status status = work_create(&w, there, why);
    if (status == SR_OK && fitted) status = mix_each_row(m, sum_row, &w, why);
    for (int part = 0; part < MIX_PARTS && status == SR_OK; part++)
        if (there[part] && w.model[part].count) solve_part(&w, (mix_part)part, &o->part[part]);
    if (status == SR_OK) status = mix_each_row(m, take_out, &w, why);
    for (int part = 0; part < MIX_PARTS && status == SR_OK; part++)
        if (there[part]) status = share_of(&w, (mix_part)part, of, &o->part[part], why);
    o->used = w.used, o->nonfinite = w.nonfinite;
    o->slope = m->position ? (w.delta2 + w.position2 - w.rest2) / (2 * w.position2) : NAN;
    o->independent = 2 / (1 + m->at->alpha) * w.noise / w.delta2;
    work_free(&w);
    return status;
}
