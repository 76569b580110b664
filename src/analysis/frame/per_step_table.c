/* Tables with a row per step: all of them, or reduced for a figure (downsample.c). */

#include "analysis/frame/per_step_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/downsample.h"
#include "analysis/frame/stat_program.h"

enum { BLOCK = 8192 };

static series series_of(const step_table *t, const site_choice *at, int stat) {
    return (series){t->set->run[at->run], at->site, t->chosen->wanted[stat], t->source};
}

static void print_rows(const step_table *t, const site_choice *at, int64_t last, parts *p) {
    for (int64_t i = 0; i < p->rows; i++) {
        const double *row = p->row + i * p->columns;
        tsv_text(t->table, t->set->path[at->run]);
        tsv_text(t->table, sr_run_get_site(t->set->run[at->run], at->site)->name);
        tsv_count(t->table, row[0]);
        tsv_real(t->table, last ? 100 * row[0] / (double)last : NAN);
        for (int c = 1; c < p->columns; c++) tsv_real(t->table, row[c]);
    }
    p->rows = 0;
}

/* -- blocks of rows of some sites ------------------------------------------------------------ */

typedef struct step_block {
    const step_table *t;
    const site_choice *at; /* [sites] of one run */
    int64_t sites;
    series *s;     /* [sites * statistics] those that there are */
    double **into; /* destination of each column */
    int have;      /* their number */
    int64_t *step; /* [BLOCK] */
    double *x;     /* [BLOCK] the same, for parts */
    double *value; /* [sites, statistics, BLOCK]; NaN if not recorded */
} step_block;

static void block_free(step_block *b) {
    free(b->s);
    free(b->into);
    free(b->step);
    free(b->x);
    free(b->value);
}

static double *block_value(const step_block *b, int64_t site, int stat) {
    return b->value + (site * b->t->chosen->statistics + stat) * BLOCK;
}

static sr_status block_create(step_block *b, const step_table *t, const site_choice *at,
                              int64_t sites, sr_failure *why) {
    const int64_t most = sites * t->chosen->statistics;
    *b = (step_block){.t = t, .at = at, .sites = sites};
    b->s = malloc((size_t)(most + 1) * sizeof *b->s);
    b->into = malloc((size_t)(most + 1) * sizeof *b->into);
    b->step = malloc(BLOCK * sizeof *b->step);
    b->x = malloc(BLOCK * sizeof *b->x);
    b->value = malloc((size_t)(most * BLOCK + 1) * sizeof *b->value);
    if (!b->s || !b->into || !b->step || !b->x || !b->value) {
        block_free(b);
        return sr_fail(why, SR_MEMORY, "out of memory");
    }
    for (int64_t i = 0; i < most * BLOCK; i++) b->value[i] = NAN;
    for (int64_t k = 0; k < sites; k++) {
        for (int i = 0; i < t->chosen->statistics; i++) {
            if (!at[k].has[i]) continue;
            b->s[b->have] = series_of(t, &at[k], i);
            b->into[b->have++] = block_value(b, k, i);
        }
    }
    return SR_OK;
}

/* -- the rows of some sites ------------------------------------------------------------------ */

/* The sites go through the file together. One site's rows are printed as they come. */
static sr_status read_sites(const step_table *t, const site_choice *at, int64_t sites,
                            int64_t buckets, parts *p, int64_t last, sr_failure *why) {
    const series s = series_of(t, at, 0);
    const double *column[1 + ANALYSIS_STATISTICS];
    int64_t begin, length, ends[2] = {0}; /* steps of the first and the last row */
    step_block b;
    sr_status status = window_rows(&t->window[at->run], &s, &begin, &length, why);
    if (status == SR_OK && buckets) status = series_read_steps(&s, begin, 1, &ends[0], why);
    if (status == SR_OK && buckets)
        status = series_read_steps(&s, begin + length - 1, 1, &ends[1], why);
    if (status == SR_OK) status = block_create(&b, t, at, sites, why);
    if (status != SR_OK) return status;
    for (int64_t k = 0; k < sites; k++)
        parts_begin(&p[k], 1 + t->chosen->statistics, buckets, (double)ends[0], (double)ends[1]);
    for (int64_t first = 0; first < length && status == SR_OK; first += BLOCK) {
        const int64_t count = length - first < BLOCK ? length - first : BLOCK;
        status = series_read_all(b.s, b.have, begin + first, count, b.into, b.step, why);
        for (int64_t i = 0; i < count && status == SR_OK; i++) b.x[i] = (double)b.step[i];
        for (int64_t k = 0; k < sites && status == SR_OK; k++) {
            column[0] = b.x;
            for (int c = 0; c < t->chosen->statistics; c++) column[1 + c] = block_value(&b, k, c);
            status = parts_add(&p[k], b.x, column, count, why);
        }
        if (status == SR_OK && sites == 1) print_rows(t, at, last, p);
    }
    for (int64_t k = 0; k < sites && status == SR_OK; k++) status = parts_end(&p[k], why);
    block_free(&b);
    return status;
}

static sr_status print_sites(const step_table *t, const site_choice *at, int64_t sites,
                             int64_t buckets, sr_failure *why) {
    int64_t last;
    parts *p = calloc((size_t)sites, sizeof *p);
    if (!p) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = run_last_step(t->set->run[at->run], &last, why);
    if (status == SR_OK) status = read_sites(t, at, sites, buckets, p, last, why);
    for (int64_t k = 0; k < sites; k++) {
        if (status == SR_OK) print_rows(t, &at[k], last, &p[k]);
        parts_free(&p[k]);
    }
    free(p);
    return status;
}

sr_status step_table_print(const step_table *t, sr_failure *why) {
    site_columns(t->table);
    tsv_column(t->table, "step", "forward and backward passes so far");
    tsv_column(t->table, "percent", "percent of training: 100 step / last step of the run");
    for (int i = 0; i < t->chosen->statistics; i++)
        tsv_column(t->table, t->chosen->wanted[i]->name,
                   statistic_definition(t->chosen->wanted[i]));
    tsv_header(t->table);
    sr_status status = SR_OK;
    for (int64_t k = 0, n; k < t->chosen->sites && status == SR_OK; k += n) {
        const site_choice *at = &t->chosen->site[k];
        const series s = series_of(t, at, 0);
        int64_t begin, length = 0;
        status = window_rows(&t->window[at->run], &s, &begin, &length, why);
        const bool reduced = t->buckets && length > 3 * t->buckets;
        n = 1;
        if (reduced) { /* sites of one run whose blocks, parts and rows fit in memory together */
            const int64_t rows = BLOCK + 3 * (length / t->buckets + 64) + 4 * t->buckets;
            const int64_t fit = column_memory_limit() / (8 * rows * (1 + t->chosen->statistics));
            while (n < fit && k + n < t->chosen->sites && at[n].run == at->run) n++;
        }
        if (status == SR_OK) status = print_sites(t, at, n, reduced ? t->buckets : 0, why);
    }
    return status;
}
