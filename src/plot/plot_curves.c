/* Turns the tables of analyses into data files for gnuplot.
 *
 * A table with a `curves` line is read twice. The first pass finds the curves and their range of x.
 * The rows of a curve have the same run and key cells, are adjacent, and x does not fall. The
 * second pass reduces one bucket at a time to the low, median and high of every value, and smooths
 * the medians if asked. A curve with fewer rows than buckets is copied point by point. Memory holds
 * one bucket and the points of one curve. Without a `curves` line the cells are copied.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buckets.h"
#include "base/containers/vector.h"
#include "base/float_text.h"
#include "base/globs.h"
#include "base/utf8.h"
#include "plot/plot_curves.h"
#include "plot/plot_tsv.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* A table file while it is read: numbers of the columns in the figure. */
typedef struct reader {
    plot_tsv tsv;
    char path[2 * PLOT_PATH];
    int run, key[PLOT_KEYS], x, y[PLOT_VALUES];
} reader;

static sr_status want_column(const reader *r, const plot_table *t, const char *name, int *at,
                             sr_failure *why) {
    *at = plot_tsv_find(&r->tsv, name);
    if (*at >= 0) return SR_OK;
    return sr_fail(why, SR_FORMAT, "the table of %s has no column %s", t->word[0], name);
}

static void table_path(char path[2 * PLOT_PATH], const plot_table *t, const char *dir, int run) {
    snprintf(path, 2 * PLOT_PATH, "%s/%s.%d.tsv", dir, t->name, run);
}

static sr_status reader_open(reader *r, const plot_table *t, const char *x, const char *directory,
                             int run, sr_failure *why) {
    table_path(r->path, t, directory, run);
    r->run = run;
    sr_status status = plot_tsv_open(&r->tsv, r->path, why);
    for (int i = 0; i < t->keys && status == SR_OK; i++)
        status = want_column(r, t, t->key[i], &r->key[i], why);
    if (t->curves && status == SR_OK) status = want_column(r, t, x, &r->x, why);
    for (int i = 0; i < t->values && status == SR_OK; i++)
        status = want_column(r, t, t->y[i], &r->y[i], why);
    if (status != SR_OK) plot_tsv_close(&r->tsv);
    return status;
}

static void row_key(const reader *r, const plot_table *t, char *key, size_t size) {
    size_t used = 0;
    for (int i = 0; i < t->keys; i++) {
        if (i && used + 1 < size) key[used++] = ' ';
        for (const char *c = r->tsv.cell[r->key[i]]; *c && used + 1 < size; c++) key[used++] = *c;
    }
    key[used] = 0;
}

/* -- first pass: which curves ---------------------------------------------------------------- */

static sr_status add_curve(plot_data *d, int run, const char *key, double x, sr_failure *why) {
    for (int i = 0; i < d->curves; i++)
        if (d->curve[i].run == run && strcmp(d->curve[i].key, key) == 0)
            return sr_fail(why, SR_FORMAT, "table %s: the rows of '%s' do not stand together",
                           d->table->name, key);
    if (!vector_reserve(&d->curve, &d->capacity, d->curves + 1, sizeof *d->curve))
        return sr_fail(why, SR_MEMORY, "out of memory");
    plot_curve *added = &d->curve[d->curves++];
    *added = (plot_curve){.run = run, .low = x, .high = x};
    snprintf(added->key, sizeof added->key, "%s", key);
    return SR_OK;
}

static void take_site(plot_curve *c, const reader *r, const plot_table *t) {
    for (int i = 0; i < t->keys; i++)
        if (strcmp(t->key[i], "site") == 0)
            snprintf(c->site, sizeof c->site, "%s", r->tsv.cell[r->key[i]]);
}

static sr_status count_row(plot_data *d, const reader *r, sr_failure *why) {
    char key[sizeof d->curve->key];
    double x;
    sr_status status = plot_tsv_real(&r->tsv, r->x, &x, why);
    if (status != SR_OK) return status;
    row_key(r, d->table, key, sizeof key);
    plot_curve *now = d->curves ? &d->curve[d->curves - 1] : NULL;
    if (!now || now->run != r->run || strcmp(now->key, key) != 0) {
        status = add_curve(d, r->run, key, x, why);
        if (status != SR_OK) return status;
        now = &d->curve[d->curves - 1];
        take_site(now, r, d->table);
    }
    if (!(x >= now->high))
        return sr_fail(why, SR_FORMAT, "%s:%lld: %s falls or is no number", r->path,
                       (long long)r->tsv.at, d->x);
    now->high = x;
    now->rows++;
    return SR_OK;
}

/* -- second pass: buckets -------------------------------------------------------------------- */

typedef struct bucket {
    double *value[PLOT_VALUES]; /* [count] each */
    int64_t capacity[PLOT_VALUES], count, number;
    double x;                 /* drawn position */
    bool finite[PLOT_VALUES]; /* this curve has a value */
} bucket;

/* Axes may end at these values: their lengths and steps must stay in the range of double. */
static double bounded(double value) {
    const double most = 1e300;
    if (!isfinite(value)) return value;
    if (fabs(value) < 1 / most) return 0;
    return fmax(-most, fmin(most, value));
}

/* Range of the whole table: fmin and fmax skip NaN. */
static void note_range(plot_data *d, int i, const double *value, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        if (!isfinite(value[k])) continue;
        const double v = bounded(value[k]);
        d->least[i] = fmin(d->least[i], v);
        d->largest[i] = fmax(d->largest[i], v);
        if (v > 0) d->positive[i] = fmin(d->positive[i], v);
    }
}

/* A curve as it is drawn: rows of x and (low, median, high) of every value. */
typedef struct points {
    double *cell; /* [rows, columns] */
    int64_t rows, capacity;
    int columns;
} points;

static double *points_add(points *p) {
    const int64_t cells = (p->rows + 1) * p->columns;
    if (!vector_reserve(&p->cell, &p->capacity, cells, sizeof *p->cell)) return NULL;
    return p->cell + p->columns * p->rows++;
}

static sr_status bucket_end(bucket *b, plot_data *d, points *p, sr_failure *why) {
    if (!b->count) return SR_OK;
    double *row = points_add(p);
    if (!row) return sr_fail(why, SR_MEMORY, "out of memory");
    *row++ = b->x;
    for (int i = 0; i < d->table->values; i++, row += 3) {
        note_range(d, i, b->value[i], b->count);
        const bucket_range v = bucket_measure(b->value[i], b->count);
        b->finite[i] = b->finite[i] || !isnan(v.median);
        row[0] = bounded(v.least), row[1] = bounded(v.median), row[2] = bounded(v.largest);
    }
    b->count = 0;
    return SR_OK;
}

/* The median of the finite medians of `most` rows around each, fewer at the ends; the range
   stays. */
static sr_status points_smooth(points *p, int most, sr_failure *why) {
    double *was = malloc((size_t)(p->rows + most) * sizeof *was), *near = was + p->rows;
    if (!was) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int c = 2; c < p->columns; c += 3) {
        for (int64_t i = 0; i < p->rows; i++) was[i] = p->cell[i * p->columns + c];
        for (int64_t i = 0; i < p->rows; i++) {
            const int64_t first = i < most / 2 ? 0 : i - most / 2;
            int64_t count = 0;
            for (int64_t k = first; k < p->rows && k <= i + most / 2; k++) near[count++] = was[k];
            if (!isnan(was[i])) p->cell[i * p->columns + c] = bucket_measure(near, count).median;
        }
    }
    free(was);
    return SR_OK;
}

static void points_write(const points *p, FILE *out) {
    for (int64_t i = 0; i < p->rows; i++) {
        const double *row = p->cell + i * p->columns;
        float_text_print(out, row[0]);
        for (int c = 1; c < p->columns; c += 3) {
            for (int k = c; k < c + 3; k++) {
                fputc('\t', out);
                float_text_print(out, isnan(row[c + 1]) ? NAN : row[k]);
            }
        }
        fputc('\n', out);
    }
    fputs("\n\n", out);
}

static sr_status bucket_add(bucket *b, const reader *r, const plot_table *t, sr_failure *why) {
    for (int i = 0; i < t->values; i++) {
        if (!vector_reserve(&b->value[i], &b->capacity[i], b->count + 1, sizeof *b->value[i]))
            return sr_fail(why, SR_MEMORY, "out of memory");
        sr_status status = plot_tsv_real(&r->tsv, r->y[i], &b->value[i][b->count], why);
        if (status != SR_OK) return status;
    }
    b->count++;
    return SR_OK;
}

/* Reads the rows of one curve. */
static sr_status reduce_rows(plot_data *d, const plot_curve *c, reader *r, bucket *b, points *p,
                             sr_failure *why) {
    const plot_table *t = d->table;
    const bool copy = c->rows <= t->buckets;
    bool more = true;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < c->rows && status == SR_OK; i++) {
        double x = 0;
        status = plot_tsv_next(&r->tsv, &more, why);
        if (status == SR_OK && !more)
            status = sr_fail(why, SR_FORMAT, "%s: the table changed while it was read", r->path);
        if (status == SR_OK) status = plot_tsv_real(&r->tsv, r->x, &x, why);
        if (status != SR_OK) break;
        const int64_t number = copy ? i : bucket_of(x, c->low, c->high, t->buckets);
        if (number != b->number) status = bucket_end(b, d, p, why);
        b->number = number;
        b->x = copy ? x : c->low + (c->high - c->low) * ((double)number + 0.5) / t->buckets;
        if (status == SR_OK) status = bucket_add(b, r, t, why);
    }
    return status == SR_OK ? bucket_end(b, d, p, why) : status;
}

/* One curve, and its block in the data file. */
static sr_status reduce_curve(plot_data *d, const plot_curve *c, reader *r, FILE *out,
                              sr_failure *why) {
    const plot_table *t = d->table;
    bucket b = {0};
    points p = {.columns = 1 + 3 * t->values};
    sr_status status = reduce_rows(d, c, r, &b, &p, why);
    if (status == SR_OK && t->smooth) status = points_smooth(&p, t->smooth, why);
    if (status == SR_OK) points_write(&p, out);
    for (int i = 0; i < t->values; i++) d->finite[i] += b.finite[i];
    for (int i = 0; i < PLOT_VALUES; i++) free(b.value[i]);
    free(p.cell);
    return status;
}

/* -- tables without curves ------------------------------------------------------------------- */

/* A table with rows of sites gets the column `depth`, unless it has one. */
static bool wants_depth(const plot_data *d, const reader *r) {
    return d->run && plot_tsv_find(&r->tsv, "site") >= 0 && plot_tsv_find(&r->tsv, "depth") < 0 &&
           r->tsv.columns < PLOT_COLUMNS;
}

static sr_status keep_columns(plot_data *d, const reader *r, sr_failure *why) {
    const int columns = r->tsv.columns + wants_depth(d, r);
    if (d->columns) return SR_OK;
    for (int i = 0; i < columns; i++) {
        d->column[i] = strdup(i < r->tsv.columns ? r->tsv.column[i] : "depth");
        if (!d->column[i]) return sr_fail(why, SR_MEMORY, "out of memory");
        d->columns = i + 1;
    }
    return SR_OK;
}

/* The sites of a run, while the rows of its table are copied. */
typedef struct plot_sites {
    const sr_runfile *run; /* NULL: the table gets no depth */
    int column;            /* column of the site in the table */
    bool *seen;            /* [sites] */
} plot_sites;

static sr_status sites_begin(plot_sites *s, const plot_data *d, const reader *r, sr_failure *why) {
    if (!wants_depth(d, r)) return SR_OK;
    s->run = d->run[r->run - 1].file;
    s->column = plot_tsv_find(&r->tsv, "site");
    s->seen = calloc((size_t)sr_run_get_info(s->run)->sites + 1, sizeof *s->seen);
    return s->seen ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

/* -1: the row belongs to no site. */
static int64_t sites_depth(plot_sites *s, const reader *r) {
    const int64_t site = sr_run_find_site(s->run, r->tsv.cell[s->column]);
    if (site < 0) return -1;
    s->seen[site] = true;
    return sr_run_get_site(s->run, site)->depth;
}

/* "a (depth 0), b (depth 4) and 3 more": sites without a row. */
static void sites_left_out(const plot_sites *s, char text[PLOT_LEFT_OUT]) {
    const sr_run_site *site;
    int64_t more = 0;
    for (int64_t i = 0; (site = sr_run_get_site(s->run, i)); i++) {
        if (s->seen[i] || globs_is_replica(site->name)) continue;
        const size_t used = strlen(text);
        if (more || used + strlen(site->name) > PLOT_LEFT_OUT / 2)
            more++;
        else
            snprintf(text + used, PLOT_LEFT_OUT - used, "%s%s (depth %lld)", used ? ", " : "",
                     site->name, (long long)site->depth);
    }
    const size_t used = strlen(text);
    if (more) snprintf(text + used, PLOT_LEFT_OUT - used, " and %lld more", (long long)more);
}

/* gnuplot reads quotes as quotes and `#` as a comment: cells lose both, as in in_data() of
 * style.gp. As in plot_quote, they also lose bytes that are no character of a line. */
static void copy_cells(const reader *r, FILE *out) {
    for (int i = 0; i < r->tsv.columns; i++) {
        if (i) fputc('\t', out);
        for (const char *at = r->tsv.cell[i]; *at;) {
            const int bytes = strchr("\"'#`", *at) ? 0 : utf8_shown(at);
            fwrite(bytes ? at : " ", 1, bytes ? (size_t)bytes : 1, out);
            at += bytes ? bytes : 1;
        }
    }
}

static sr_status copy_rows(plot_data *d, reader *r, FILE *out, sr_failure *why) {
    bool more = true;
    plot_sites sites = {0};
    sr_status status = keep_columns(d, r, why);
    int64_t rows = 0;
    if (status == SR_OK) status = sites_begin(&sites, d, r, why);
    while (status == SR_OK && (status = plot_tsv_next(&r->tsv, &more, why)) == SR_OK && more) {
        copy_cells(r, out);
        if (sites.run) fprintf(out, "\t%lld", (long long)sites_depth(&sites, r));
        fputc('\n', out);
        rows++;
    }
    if (status == SR_OK) fputs("\n\n", out);
    if (status == SR_OK && sites.run) sites_left_out(&sites, d->left_out[r->run - 1]);
    free(sites.seen);
    if (status == SR_OK && rows) status = add_curve(d, r->run, "", 0, why);
    return status;
}

/* -- a whole data file ----------------------------------------------------------------------- */

static sr_status convert_run(plot_data *d, const char *directory, int run, FILE *out,
                             sr_failure *why) {
    reader r;
    sr_status status = reader_open(&r, d->table, d->x, directory, run, why);
    if (status != SR_OK) return status;
    if (!d->table->curves) {
        status = copy_rows(d, &r, out, why);
        plot_tsv_close(&r.tsv);
        return status;
    }
    const int before = d->curves;
    bool more = true;
    while (status == SR_OK && (status = plot_tsv_next(&r.tsv, &more, why)) == SR_OK && more)
        status = count_row(d, &r, why);
    plot_tsv_close(&r.tsv);
    if (status == SR_OK && d->curves == before)
        status = run ? sr_fail(why, SR_FORMAT, "%s: the table of run %d has no rows",
                               d->table->word[0], run)
                     : sr_fail(why, SR_FORMAT, "%s: the table has no rows", d->table->word[0]);
    if (status == SR_OK) status = reader_open(&r, d->table, d->x, directory, run, why);
    if (status != SR_OK) return status;
    for (int i = before; i < d->curves && status == SR_OK; i++)
        status = reduce_curve(d, &d->curve[i], &r, out, why);
    plot_tsv_close(&r.tsv);
    return status;
}

/* gnuplot would draw empty axes and exit with 0, or stop without saying which file it means. */
static sr_status check_values(const plot_data *d, sr_failure *why) {
    const plot_table *t = d->table;
    for (int i = 0; i < t->values; i++)
        if (d->finite[i]) return SR_OK;
    if (t->optional || !t->curves) return SR_OK;
    return sr_fail(why, SR_FORMAT, "table %s: no finite value of %s in any run", t->name, t->y[0]);
}

/* -- epochs, or steps ------------------------------------------------------------------------ */

static const char epoch_name[] = "epoch";

static sr_status run_lacks_epochs(const plot_table *t, const char *directory, int run, bool *lacks,
                                  sr_failure *why) {
    reader r;
    bool more = true;
    double x = 0;
    sr_status status = reader_open(&r, t, t->x, directory, run, why);
    if (status != SR_OK) return status;
    while (!*lacks && (status = plot_tsv_next(&r.tsv, &more, why)) == SR_OK && more &&
           (status = plot_tsv_real(&r.tsv, r.x, &x, why)) == SR_OK)
        *lacks = isnan(x);
    plot_tsv_close(&r.tsv);
    return status;
}

/* The table of a run whose analysis failed is not there. */
static sr_status find_table(const plot_table *t, const char *directory, int run, bool *there,
                            sr_failure *why) {
    char path[2 * PLOT_PATH];
    table_path(path, t, directory, run);
    *there = access(path, F_OK) == 0;
    return *there || errno == ENOENT ? SR_OK : sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

sr_status plot_data_lacks_epochs(const plot_table *table, const char *directory, int first_run,
                                 int last_run, bool *lacks, sr_failure *why) {
    sr_status status = SR_OK;
    *lacks = false;
    if (!table->curves || strcmp(table->x, epoch_name) != 0) return SR_OK;
    for (int run = first_run; run <= last_run && status == SR_OK && !*lacks; run++) {
        bool there;
        status = find_table(table, directory, run, &there, why);
        sr_failure unread = {0};
        const sr_status one =
            there ? run_lacks_epochs(table, directory, run, lacks, &unread) : SR_OK;
        /* faults of a table are reported when it is drawn */
        if (one == SR_IO || one == SR_MEMORY) *why = unread, status = one;
    }
    return status;
}

sr_status plot_data_make(plot_data *d, const plot_table *table, const char *directory,
                         const plot_run *run_of, int first_run, int last_run, bool over_steps,
                         sr_failure *why) {
    char path[2 * PLOT_PATH];
    *d = (plot_data){.table = table, .x = table->x, .run = run_of};
    if (over_steps && strcmp(table->x, epoch_name) == 0) d->x = "step";
    for (int i = 0; i < PLOT_VALUES; i++) d->least[i] = d->positive[i] = d->largest[i] = NAN;
    d->left_out = calloc((size_t)last_run + 1, sizeof *d->left_out);
    if (!d->left_out) return sr_fail(why, SR_MEMORY, "out of memory");
    snprintf(path, sizeof path, "%s/%s.dat", directory, table->name);
    FILE *out = fopen(path, "w");
    if (!out) {
        plot_data_free(d);
        return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    }
    sr_status status = SR_OK;
    for (int run = first_run; run <= last_run && status == SR_OK; run++) {
        bool there;
        status = find_table(table, directory, run, &there, why);
        if (there) status = convert_run(d, directory, run, out, why);
    }
    const bool bad = ferror(out) != 0;
    if ((fclose(out) != 0 || bad) && status == SR_OK)
        status = sr_fail(why, SR_IO, "%s/%s.dat: cannot write: %s", directory, table->name,
                         strerror(errno));
    if (status == SR_OK) status = check_values(d, why);
    if (status != SR_OK) plot_data_free(d);
    return status;
}

void plot_data_free(plot_data *d) {
    free(d->curve);
    free(d->left_out);
    for (int i = 0; i < d->columns; i++) free(d->column[i]);
    *d = (plot_data){.table = d->table};
}
