/* copy_plan.c -- decides which rows of a run file are copied, in one pass over its steps.
 *
 * Thinning keeps the first row at or after each multiple of N. For rows of every step these are the
 * steps divisible by N. Vectors and spectra may be recorded in other steps, so keeping divisible
 * steps would drop most of them.
 */
#include "runfile/repair/copy_plan.h"

#include <stdlib.h>

#include "runfile/read/datasets/read_spectra.h"

int64_t copy_source_of(const copy_choice *choice, int64_t i) {
    return choice && choice->site ? choice->site[i] : i;
}

bool copy_keeps(const copy_choice *choice, const char *statistic) {
    return !choice || !choice->keeps || choice->keeps(choice->context, statistic);
}

bool copy_plan_includes(const copy_plan *p, int64_t step) {
    return !p || (step >= p->first && step <= p->last);
}

static bool thin_takes(copy_thin *t, int64_t step) {
    if (t->every <= 0 || (step % t->every && step / t->every <= t->last / t->every)) return false;
    t->last = step;
    return true;
}

/* -- columns of steps, block by block -------------------------------------------------------- */

enum { BLOCK = 1024 };
typedef enum { STEPS, VECTORS, SPECTRA, COLUMNS } column;

typedef struct step_column {
    const sr_runfile *f;
    column which;
    int64_t rows, at; /* the current row */
    int64_t first, count;
    int64_t step[BLOCK];
} step_column;

static sr_status read_block(step_column *c, sr_failure *why) {
    const int64_t left = c->rows - c->at;
    c->first = c->at, c->count = left < BLOCK ? left : BLOCK;
    const h5_rows rows = {c->first, c->count, 0, 1, 1};
    if (c->which == STEPS) return sr_run_step_ints(c->f, "step", c->first, c->count, c->step, why);
    if (c->which == VECTORS) return sr_run_vector_steps(c->f, c->first, c->count, c->step, why);
    return reader_spectra_part(c->f, &run_spectra_step, &rows, c->step, why);
}

/* The step of the current row; INT64_MAX after the last one. */
static sr_status current_step(step_column *c, int64_t *step, sr_failure *why) {
    sr_status status = SR_OK;
    *step = INT64_MAX;
    if (c->at >= c->rows) return SR_OK;
    if (c->at >= c->first + c->count) status = read_block(c, why);
    if (status == SR_OK) *step = c->step[c->at - c->first];
    return status;
}

/* -- the plan -------------------------------------------------------------------------------- */

typedef struct planner {
    copy_plan *p;
    copy_range *of;
    step_column column[COLUMNS];
} planner;

static sr_status damaged(const planner *w, const char *what, sr_failure *why) {
    return sr_fail(why, SR_FORMAT, "%s: %s", w->column[STEPS].f->path, what);
}

/* Decides on the row of vectors or spectra of this step, if there is one. *takes: it is copied. */
static sr_status plan_beside(planner *w, column which, int64_t step, bool inside, bool *takes,
                             sr_failure *why) {
    step_column *c = &w->column[which];
    copy_thin *thin = which == VECTORS ? &w->of->vectors : &w->of->spectra;
    uint8_t *mark = which == VECTORS ? w->p->vector : w->p->spectrum;
    int64_t here;
    sr_status status = current_step(c, &here, why);
    if (status == SR_OK && here < step)
        return damaged(w,
                       which == VECTORS ? "/vectors/step: not increasing, or not among the steps"
                                        : "/spectra/step: not increasing, or not among the steps",
                       why);
    if (status != SR_OK || here != step) return status;
    if (inside && thin_takes(thin, step)) {
        mark[c->at] = 1, *takes = true;
        *(which == VECTORS ? &w->p->vectors : &w->p->spectra) += 1;
    }
    c->at++;
    return SR_OK;
}

static sr_status plan_step(planner *w, int64_t step, sr_failure *why) {
    copy_plan *p = w->p;
    const int64_t row = w->column[STEPS].at++;
    if (step <= p->last_step) return damaged(w, "/steps/step: not increasing", why);
    if (row == 0) p->first_step = step;
    p->last_step = step;
    const bool inside = copy_plan_includes(p, step);
    bool takes = inside && thin_takes(&w->of->steps, step);
    sr_status status = plan_beside(w, VECTORS, step, inside, &takes, why);
    if (status == SR_OK) status = plan_beside(w, SPECTRA, step, inside, &takes, why);
    if (status != SR_OK) return status;
    if (inside) p->last_row = row;
    p->step[row] = takes, p->steps += takes;
    return SR_OK;
}

static sr_status allocate(copy_plan *p, const sr_runfile *f, sr_failure *why) {
    p->step = calloc((size_t)f->info.steps + 1, 1);
    p->vector = calloc((size_t)f->info.vectors + 1, 1);
    p->spectrum = calloc((size_t)f->info.spectra + 1, 1);
    if (p->step && p->vector && p->spectrum) return SR_OK;
    return sr_fail(why, SR_MEMORY, "%s: a plan of its rows", f->path);
}

/* Rows of vectors after the last readable step are not complete yet in a growing file. */
static sr_status plan_rest(planner *w, sr_failure *why) {
    static const char *const what[COLUMNS] = {
        NULL, "/vectors/step: not increasing, or not among the steps",
        "/spectra/step: not increasing, or not among the steps"};
    for (int i = VECTORS; i < COLUMNS; i++)
        if (w->column[i].at < w->column[i].rows && !w->column[i].f->unfinished)
            return damaged(w, what[i], why);
    return SR_OK;
}

sr_status copy_plan_make(copy_plan *p, const sr_runfile *f, const copy_choice *choice,
                         copy_range *of, sr_failure *why) {
    *p = (copy_plan){.choice = choice,
                     .first = of->first,
                     .last = of->last,
                     .first_step = -1,
                     .last_step = -1,
                     .last_row = -1};
    planner *w = calloc(1, sizeof *w);
    if (!w) return sr_fail(why, SR_MEMORY, "%s: steps", f->path);
    w->p = p, w->of = of;
    const int64_t rows[COLUMNS] = {f->info.steps, f->info.vectors, f->info.spectra};
    for (int i = 0; i < COLUMNS; i++)
        w->column[i].f = f, w->column[i].which = (column)i, w->column[i].rows = rows[i];
    sr_status status = allocate(p, f, why);
    while (status == SR_OK && w->column[STEPS].at < rows[STEPS]) {
        int64_t step;
        status = current_step(&w->column[STEPS], &step, why);
        if (status == SR_OK) status = plan_step(w, step, why);
    }
    if (status == SR_OK) status = plan_rest(w, why);
    free(w);
    return status;
}

void copy_plan_keep_last(copy_plan *p, const sr_runfile *f) {
    p->end = p->last_row == f->info.steps - 1;
    if (p->last_row < 0) return;
    p->steps += !p->step[p->last_row];
    p->step[p->last_row] = 1;
}

void copy_plan_free(copy_plan *p) {
    free(p->step), free(p->vector), free(p->spectrum);
    *p = (copy_plan){0};
}
