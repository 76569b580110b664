/* Statistics computed from the rows of /vectors, of any sites in one pass through the file.
 *
 * The file is read in its order: one block of rows after the other, within it site after site.
 * Sites that share a block of the file are read together. Such a chunk stays in the cache between
 * reading and computing. Two threads alternate: while one reads its chunk (HDF5: one thread at a
 * time), the other computes. A value depends only on its row, so the number of threads does not
 * matter. Rows become double one at a time and stay in the first-level cache for all statistics.
 */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

#include "analysis/series/series.h"

#define NAME_OF(name, ...) #name,

const char *const vector_names[] = {SR_VECTORS(NAME_OF)};

double first_values(const vector_row *row) {
    double sum = 0;
    for (int v = 0; v < SR_VECTOR_COUNT; v++)
        if (row->v[v]) sum += row->v[v][0];
    return sum;
}

enum { CHUNK_BYTES = 4 << 20, THREADS = 2, WINDOW = 2048 };

/* -- row counts ------------------------------------------------------------------------------ */

/* /scalars/rows has a row per step, /vectors fewer: a window that moves along the steps. */
typedef struct row_counts {
    const sr_runfile *run;
    int64_t sites, first, count, at; /* window of /steps; place in it */
    bool begun;                      /* first is near the first step that was asked for */
    int64_t *step;                   /* [WINDOW] */
    float *rows;                     /* [WINDOW, sites] */
} row_counts;

static sr_status row_counts_move(row_counts *c, int64_t step, sr_failure *why) {
    const int64_t steps = sr_run_get_info(c->run)->steps;
    const series all = {.run = c->run, .source = FROM_SCALARS};
    /* a long table is many passes: each begins near its first step */
    sr_status status = c->begun ? SR_OK : series_find_row(&all, step, &c->first, why);
    c->begun = true;
    if (status != SR_OK) return status;
    while ((!c->count || c->step[c->count - 1] < step) && c->first + c->count < steps) {
        c->first += c->count;
        c->count = steps - c->first < WINDOW ? steps - c->first : WINDOW;
        c->at = 0;
        status = sr_run_step_ints(c->run, "step", c->first, c->count, c->step, why);
        if (status == SR_OK && c->step[c->count - 1] >= step)
            status = sr_run_scalar(c->run, "rows", -1, c->first, c->count, c->rows, why);
        if (status != SR_OK) return status;
    }
    while (c->at + 1 < c->count && c->step[c->at] < step) c->at++;
    return status;
}

/* Fills rows [sites] for a step; steps must not fall from call to call. */
static sr_status row_counts_find(row_counts *c, int64_t step, double *rows, sr_failure *why) {
    sr_status status = c->rows ? row_counts_move(c, step, why) : SR_OK;
    const bool found = status == SR_OK && c->rows && c->count && c->step[c->at] == step;
    for (int64_t i = 0; i < c->sites; i++)
        rows[i] = found ? (double)c->rows[c->at * c->sites + i] : NAN;
    return status;
}

/* -- the vectors to read --------------------------------------------------------------------- */

/* The statistics of one site: series first .. first + count - 1. */
typedef struct site_part {
    const sr_run_site *site;
    int64_t number;
    int first, count;
} site_part;

/* Columns that are read together: one site whose rows are a block of the file, or neighbours. */
typedef struct panel {
    int64_t site, sites, columns; /* first site, from the run's first; their columns */
    int first, parts;             /* wanted among them */
    unsigned needs;
} panel;

typedef struct pass {
    const series *s;
    double *const *value; /* [series][count] */
    int64_t first, count; /* rows */
    site_part *part;
    panel *panel;
    int parts, panels;
    int64_t widest, rows; /* columns of a panel; most rows at a time */
    int64_t block;        /* rows of a block of the file: reads end at its end */

    pthread_mutex_t turn; /* sleeps; locks of OpenMP may spin */
    /* under way, whose turn it is */
    int64_t at; /* row of the next chunk */
    int next;   /* panel of the next chunk */
    row_counts counts;
    int64_t *step_of_band; /* [rows]; both NULL if not needed */
    double *rows_of_band;  /* [rows, sites of the run] */
    sr_status status;
    sr_failure *why;
} pass;

static void pass_free(pass *p) {
    free(p->part);
    free(p->panel);
    free(p->step_of_band);
    free(p->rows_of_band);
    free(p->counts.step);
    free(p->counts.rows);
}

static int vectors_in(unsigned needs) {
    int count = 0;
    for (int v = 0; v < SR_VECTOR_COUNT; v++) count += needs >> v & 1;
    return count;
}

static void add_part(pass *p, const site_part *part, unsigned needs, bool whole) {
    panel *last = p->panels ? &p->panel[p->panels - 1] : NULL;
    if (whole || !last || last->site + last->sites != part->number) {
        last = &p->panel[p->panels++];
        *last = (panel){.site = part->number, .first = p->parts};
    }
    p->part[p->parts++] = *part;
    last->parts++;
    last->sites++;
    last->columns += part->site->width;
    last->needs |= needs;
    if (last->columns > p->widest) p->widest = last->columns;
}

static sr_status pass_plan(pass *p, int series_count, unsigned *all, sr_failure *why) {
    int64_t block = 1;
    for (int i = 0, next; i < series_count; i = next) {
        const int64_t number = p->s[i].site;
        unsigned needs = 0;
        for (next = i; next < series_count && p->s[next].site == number; next++)
            needs |= p->s[next].stat->needs;
        const site_part part = {sr_run_get_site(p->s->run, number), number, i, next - i};
        /* the rows of a block of the file, and whether it has the columns of one site */
        int64_t columns = 0;
        sr_status status = SR_OK;
        for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK && !columns; v++)
            if (needs >> v & 1)
                status = sr_run_vector_block(p->s->run, vector_names[v], &block, &columns, why);
        if (status != SR_OK) return status;
        const bool whole = columns == part.site->width;
        add_part(p, &part, needs, whole);
        *all |= needs;
    }
    p->block = block < 1 ? 1 : block;
    p->rows = CHUNK_BYTES / (4 * vectors_in(*all) * p->widest + 1);
    if (p->rows < p->block) p->rows = p->block;
    p->rows -= p->rows % p->block;
    if (p->rows > p->count) p->rows = p->count;
    return SR_OK;
}

static sr_status pass_create(pass *p, int series_count, sr_failure *why) {
    unsigned all = 0;
    p->part = calloc((size_t)series_count, sizeof *p->part);
    p->panel = calloc((size_t)series_count, sizeof *p->panel);
    sr_status status = p->part && p->panel ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = pass_plan(p, series_count, &all, why);
    p->counts = (row_counts){.run = p->s->run, .sites = sr_run_get_info(p->s->run)->sites};
    if (status == SR_OK && (all & NEEDS_ROWS) && sr_run_has_scalar(p->s->run, "rows")) {
        p->counts.step = malloc(WINDOW * sizeof *p->counts.step);
        p->counts.rows = malloc((size_t)(WINDOW * p->counts.sites) * sizeof *p->counts.rows);
        p->step_of_band = malloc((size_t)p->rows * sizeof *p->step_of_band);
        p->rows_of_band = malloc((size_t)(p->rows * p->counts.sites) * sizeof *p->rows_of_band);
        if (!p->counts.step || !p->counts.rows || !p->step_of_band || !p->rows_of_band)
            status = sr_fail(why, SR_MEMORY, "out of memory");
    }
    if (status != SR_OK) pass_free(p);
    return status;
}

/* -- chunks ---------------------------------------------------------------------------------- */

/* A chunk: the rows of a panel, owned by one thread. */
typedef struct block_buffer {
    const panel *of;
    int64_t at, count;           /* rows, from the first one wanted */
    float *raw[SR_VECTOR_COUNT]; /* [count, columns of the panel] */
    double *row;                 /* [needed vectors, columns]: one row in double */
    double *rows;                /* [count, sites of the panel] valid rows n; NULL: not asked for */
    float *memory;
} block_buffer;

static bool chunk_create(block_buffer *w, const pass *p) {
    int64_t most = 0, sites = 0;
    for (int k = 0; k < p->panels; k++) {
        const int64_t values = p->panel[k].columns * vectors_in(p->panel[k].needs);
        if (values > most) most = values;
        if (p->panel[k].sites > sites) sites = p->panel[k].sites;
    }
    *w = (block_buffer){0};
    w->memory = malloc((size_t)(most * p->rows + 1) * sizeof *w->memory);
    w->row = malloc((size_t)(most + 1) * sizeof *w->row);
    w->rows = malloc((size_t)(sites * p->rows) * sizeof *w->rows);
    return w->memory && w->row && w->rows;
}

static sr_status chunk_read(pass *p, block_buffer *w) {
    float *to = w->memory;
    const bool first = p->rows_of_band && p->next == 0; /* n once for all panels of these rows */
    sr_status status = SR_OK;
    if (first)
        status =
            sr_run_vector_steps(p->s->run, p->first + w->at, w->count, p->step_of_band, p->why);
    for (int64_t i = 0; i < w->count && first && status == SR_OK; i++)
        status = row_counts_find(&p->counts, p->step_of_band[i],
                                 p->rows_of_band + i * p->counts.sites, p->why);
    for (int64_t i = 0; i < w->count && status == SR_OK; i++)
        for (int64_t k = 0; k < w->of->sites; k++)
            w->rows[i * w->of->sites + k] =
                p->rows_of_band ? p->rows_of_band[i * p->counts.sites + w->of->site + k] : NAN;
    for (int v = 0; v < SR_VECTOR_COUNT && status == SR_OK; v++) {
        if (!(w->of->needs >> v & 1)) continue;
        w->raw[v] = to;
        to += w->count * w->of->columns;
        status = sr_run_vectors(p->s->run, vector_names[v], w->of->site, w->of->sites,
                                p->first + w->at, w->count, w->raw[v], p->why);
    }
    return status;
}

/* Takes the next chunk and reads it; false after the last one, or after a failure. */
static bool chunk_take(pass *p, block_buffer *w) {
    if (p->status != SR_OK || p->at >= p->count) return false;
    const int64_t within = (p->first + p->at) % p->block, left = p->count - p->at;
    const int64_t rows = within < p->rows ? p->rows - within : p->rows; /* to the block's end */
    w->of = &p->panel[p->next];
    w->at = p->at;
    w->count = left < rows ? left : rows;
    p->status = chunk_read(p, w);
    p->next++;
    if (p->next == p->panels) p->next = 0, p->at += w->count;
    return p->status == SR_OK;
}

static void widen(double *restrict to, const float *restrict from, int64_t count) {
    for (int64_t k = 0; k < count; k++) to[k] = (double)from[k];
}

/* Row i of a site, in double. */
static vector_row row_of(const pass *p, const block_buffer *w, const site_part *part, int64_t i) {
    const sr_run_site *site = part->site;
    const int64_t column = site->offset - sr_run_get_site(p->s->run, w->of->site)->offset;
    vector_row row = {.width = site->width,
                      .eps = site->eps,
                      .alpha = site->alpha,
                      .rows = w->rows[i * w->of->sites + part->number - w->of->site]};
    double *to = w->row;
    for (int v = 0; v < SR_VECTOR_COUNT; v++) {
        if (!(w->of->needs >> v & 1)) continue;
        widen(to, w->raw[v] + i * w->of->columns + column, row.width);
        row.v[v] = to;
        to += row.width;
    }
    return row;
}

/* -- a pass ---------------------------------------------------------------------------------- */

static void work(pass *p, block_buffer *w) {
    for (;;) {
        pthread_mutex_lock(&p->turn);
        const bool more = chunk_take(p, w);
        pthread_mutex_unlock(&p->turn);
        if (!more) return;
        for (int k = w->of->first; k < w->of->first + w->of->parts; k++) {
            const site_part *part = &p->part[k];
            for (int64_t i = 0; i < w->count; i++) {
                const vector_row row = row_of(p, w, part, i);
                for (int j = part->first; j < part->first + part->count; j++)
                    p->value[j][w->at + i] = p->s[j].stat->recompute(&row);
            }
        }
    }
}

sr_status vectors_read(const series *s, int series_count, int64_t first, int64_t count,
                       double *const *value, sr_failure *why) {
    pass p = {.s = s, .value = value, .first = first, .count = count, .why = why};
    pthread_mutex_init(&p.turn, NULL);
    block_buffer w[THREADS] = {{0}};
    const int most = omp_get_max_threads(), threads = most < THREADS ? most : THREADS;
    sr_status status = pass_create(&p, series_count, why);
    if (status != SR_OK) return status;
    for (int i = 0; i < threads; i++)
        if (!chunk_create(&w[i], &p)) p.status = sr_fail(why, SR_MEMORY, "out of memory");
    if (p.rows * p.panels >= count) {
        work(&p, &w[0]);
    } else {
#pragma omp parallel num_threads(threads)
        work(&p, &w[omp_get_thread_num()]);
    }
    for (int i = 0; i < threads; i++) free(w[i].memory), free(w[i].row), free(w[i].rows);
    pthread_mutex_destroy(&p.turn);
    pass_free(&p);
    return p.status;
}
