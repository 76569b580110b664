/* vectors_run.c -- runs a case step by step through norm_apply, in one process or as several ranks
 * in threads. Compares all values in the file. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "norm/kernels/column_passes.h"
#include "vectors.h"

/* One rank: its own layer, tape and rows. */
typedef struct rank_run {
    vector_case *c;
    const vector_setup *setup;
    const double *x, *dy, *shard, *seg; /* the case's */
    params p;
    norm_site site;
    tape *t;
    int rank;
    int64_t count;   /* rows of this rank */
    int64_t *row;    /* [count] their numbers in the case */
    uint8_t *mask;   /* [count] */
    int32_t *sample; /* [count] */
    int64_t step;
    vector_step out; /* this rank's arrays */
    struct exchange *exchange;
    pthread_t thread;
    sr_failure why;
} rank_run;

/* Collects the rows of all ranks: each rank writes, waits, reads. */
typedef struct exchange {
    pthread_barrier_t barrier;
    double *all;
    int64_t capacity;
    int ranks;
} exchange;

static sr_status gather_rows(void *context, double *all, int64_t width) {
    rank_run *r = context;
    exchange *e = r->exchange;
    const size_t bytes = (size_t)width * sizeof *all;
    const bool fits = width * e->ranks <= e->capacity;
    if (fits) memcpy(e->all + r->rank * width, all + r->rank * width, bytes);
    pthread_barrier_wait(&e->barrier);
    if (fits) memcpy(all, e->all, (size_t)e->ranks * bytes);
    pthread_barrier_wait(&e->barrier);
    return fits ? SR_OK : SR_USAGE;
}

/* Adds batch statistics for a layer that needs none, by the kernel of other layers. */
static void add_batch_statistics(vector_step *o, const norm_call *c, const real *x) {
    column_passes m = column_passes_valid(c);
    double *mean = o->stat[NORM_mu_B], *variance = o->stat[NORM_sigma2_B];
    if (column_passes_moments(&m, x, mean, variance) != SR_OK) return;
    for (int64_t k = 0; k < c->features; k++) {
        variance[k] /= (double)c->rows->valid;
        o->stat[NORM_psi2_B][k] = variance[k] + mean[k] * mean[k];
    }
}

/* -- values from the layer --------------------------------------------------------------------- */

static void take_stats(vector_step *o, const norm_call *c) {
    for (int v = 0; v < NORM_VECTOR_COUNT; v++)
        memcpy(o->stat[v], c->stat[v], (size_t)c->features * sizeof(double));
    memcpy(o->scalar, c->scalar, sizeof o->scalar);
}

static void forward_seen(void *context, const norm_view *o) {
    rank_run *r = context;
    take_stats(&r->out, o->call);
    /* Row methods keep mean and standard deviation of each valid row
     * (src/norm/kernels/row_stats.c). */
    bool rows = r->setup->method->scalars & NORM_SCALAR_BIT(row_grad_var);
    for (int64_t i = 0; rows && i < o->call->rows->valid; i++) {
        const double *kept = o->call->kept;
        int64_t row = r->row[o->call->rows->index ? o->call->rows->index[i] : i];
        r->out.row_mean[row] = kept[2 * i];
        r->out.row_deviation[row] = kept[2 * i + 1];
    }
}

static void backward_seen(void *context, const norm_view *o) {
    rank_run *r = context;
    take_stats(&r->out, o->call);
    if (!strcmp(r->setup->method->name, "none")) add_batch_statistics(&r->out, o->call, o->x);
}

/* -- one step of one rank ---------------------------------------------------------------------- */

static void gather(const rank_run *r, const double *from, real *to) {
    int64_t d = r->c->d;
    for (int64_t i = 0; i < r->count; i++)
        for (int64_t k = 0; k < d; k++)
            to[i * d + k] = r->row[i] < 0 ? 0 : (real)from[r->row[i] * d + k];
}

static void scatter(const rank_run *r, const real *from, double *to) {
    int64_t d = r->c->d;
    for (int64_t i = 0; i < r->count; i++)
        for (int64_t k = 0; k < d && r->row[i] >= 0; k++)
            to[r->row[i] * d + k] = (double)from[i * d + k];
}

static norm_rows make_rows(rank_run *r, norm_mode mode) {
    norm_rows rows = {0};
    for (int64_t i = 0; i < r->count; i++)
        r->mask[i] =
            r->row[i] >= 0 && (!r->c->mask || r->c->mask[r->step * r->c->B + r->row[i]] != 0);
    norm_rows_init(&rows, r->t, r->count, r->mask, mode);
    if (r->seg) {
        rows.sample = r->sample;
        for (int64_t i = 0; i < r->count; i++)
            if (r->sample[i] >= rows.samples) rows.samples = r->sample[i] + 1;
    }
    rows.penalty = &r->out.penalty;
    if (r->exchange) {
        rows.gather = gather_rows;
        rows.gather_context = r;
        rows.rank = r->rank;
        rows.ranks = r->exchange->ranks;
    }
    return rows;
}

static void copy_parameter_gradients(rank_run *r) {
    for (int64_t k = 0; r->site.gamma && k < r->c->d; k++) {
        r->out.dgamma[k] = (double)r->site.gamma->grad[k];
        r->out.dbeta[k] = (double)r->site.beta->grad[k];
    }
}

static void *train_step(void *context) {
    rank_run *r = context;
    tape *t = r->t;
    int64_t dim[2] = {r->count, r->c->d}, one = 1, at = r->step * r->c->B * r->c->d;
    tape_reset(t, rng_create(1), true, true);
    params_zero_grad(&r->p);
    r->out.penalty = 0;
    for (int i = 0; i < NORM_STATE_MAX; i++)
        if (r->site.state[i])
            memcpy(r->out.before[i], r->site.state[i],
                   (size_t)r->site.state_count[i] * sizeof(double));
    norm_rows rows = make_rows(r, NORM_TRAIN);
    r->out.n = rows.valid;
    tensor *x = tape_tensor(t, 2, dim), *loss = tape_tensor(t, 1, &one);
    if (!x || !loss) return NULL;
    x->wants_grad = loss->wants_grad = true;
    gather(r, r->x + at, x->value);
    tensor *y = norm_apply(&r->site, t, x, &rows);
    bool add;
    real *dy = tape_grad(t, y, &add);
    if (!dy) return NULL;
    gather(r, r->dy + at, dy);
    tape_backward(t, loss, 1);
    scatter(r, y->value, r->out.y);
    scatter(r, x->grad, r->out.dx);
    copy_parameter_gradients(r);
    r->out.calls = r->site.calls;
    r->out.step = r->step;
    return NULL;
}

static void *infer(void *context) {
    rank_run *r = context;
    int64_t dim[2] = {r->count, r->c->d};
    tape_reset(r->t, rng_create(1), false, false);
    norm_rows rows = make_rows(r, NORM_RUNNING);
    tensor *x = tape_tensor(r->t, 2, dim);
    if (x) gather(r, r->x + r->step * r->c->B * r->c->d, x->value);
    tensor *y = norm_apply(&r->site, r->t, x, &rows);
    if (y) scatter(r, y->value, r->out.y);
    return NULL;
}

/* -- several ranks ----------------------------------------------------------------------------- */

static void each_rank(rank_run *r, int ranks, void *(*f)(void *)) {
    if (ranks == 1) {
        f(r);
    } else {
        for (int i = 0; i < ranks; i++)
            if (pthread_create(&r[i].thread, NULL, f, &r[i])) abort();
        for (int i = 0; i < ranks; i++) pthread_join(r[i].thread, NULL);
    }
    for (int i = 0; i < ranks; i++) {
        const sr_failure *why = tape_failure(r[i].t);
        if (!why) continue;
        fprintf(stderr, "%s: %s\n", r->c->where, why->text);
        r->c->broken = true;
    }
}

static bool make_output(vector_case *c, const norm_site *site, vector_step *o) {
    o->y = vector_zeros(c, c->B * c->d);
    o->dx = vector_zeros(c, c->B * c->d);
    o->dgamma = vector_zeros(c, c->d);
    o->dbeta = vector_zeros(c, c->d);
    o->row_mean = vector_zeros(c, c->B);
    o->row_deviation = vector_zeros(c, c->B);
    for (int v = 0; v < NORM_VECTOR_COUNT; v++) o->stat[v] = vector_zeros(c, c->d);
    for (int i = 0; i < NORM_STATE_MAX; i++) {
        if (!site->state[i]) continue;
        o->before[i] = vector_zeros(c, site->state_count[i]);
        o->after[i] = vector_zeros(c, site->state_count[i]);
    }
    return !c->broken;
}

static bool start_state(vector_case *c, const vector_setup *s, norm_site *site) {
    char path[64];
    int64_t count;
    for (int i = 0; i < NORM_STATE_MAX && s->state_name[i]; i++) {
        snprintf(path, sizeof path, "in/state_%s", s->state_name[i]);
        const double *from = vector_read(c, path, &count);
        if (!from || count != site->state_count[i]) return false;
        for (int64_t k = 0; k < count; k++) site->state[i][k] = from[k] / s->state_scale[i];
    }
    if (vector_has(c, "in/state_iters"))
        site->calls = (int64_t)vector_read(c, "in/state_iters", NULL)[0];
    return true;
}

static bool start_rank(rank_run *r) {
    vector_case *c = r->c;
    params_init(&r->p, 1);
    r->t = tape_create(1, &r->why);
    if (!r->t || norm_site_init(&r->site, &r->p, "site", "encoder", 0, c->d, r->setup->method,
                                &r->setup->options, &r->why) != SR_OK)
        return false;
    r->site.forward_hook = forward_seen;
    r->site.backward_hook = backward_seen;
    r->site.hook_context = r;
    r->site.want_rows = true;
    const double *gamma = vector_read(c, "in/gamma", NULL), *beta = vector_read(c, "in/beta", NULL);
    for (int64_t k = 0; gamma && beta && r->site.gamma && k < c->d; k++) {
        r->site.gamma->value[k] = (real)gamma[k];
        r->site.beta->value[k] = (real)beta[k];
    }
    r->row = calloc((size_t)c->B + 1, sizeof *r->row);
    r->mask = calloc((size_t)c->B + 1, 1);
    r->sample = calloc((size_t)c->B + 1, sizeof *r->sample);
    if (!r->row || !r->mask || !r->sample) return false;
    for (int64_t i = 0; i < c->B; i++) {
        if (r->shard && r->shard[i] != r->rank) continue;
        if (r->seg) r->sample[r->count] = (int32_t)r->seg[i];
        r->row[r->count++] = i;
    }
    if (!r->count) r->row[r->count++] = -1; /* for a rank without rows: one padded row */
    return start_state(c, r->setup, &r->site) && make_output(c, &r->site, &r->out);
}

static void end_rank(rank_run *r) {
    norm_site_free(&r->site);
    params_free(&r->p);
    tape_free(r->t);
    free(r->row);
    free(r->mask);
    free(r->sample);
}

/* Combines the ranks' means over rows into the mean over all rows. */
static void join_row_means(const rank_run *r, int ranks, vector_step *whole) {
    static const norm_scalar means[] = {NORM_SCALAR_g_sigma2_rowmean, NORM_SCALAR_g_psi2_rowmean};
    for (int j = 0; j < 2; j++) {
        double sum = 0;
        for (int i = 0; i < ranks; i++)
            if (r[i].out.n) sum += (double)r[i].out.n * r[i].out.scalar[means[j]];
        whole->scalar[means[j]] = sum / (double)whole->n;
    }
}

static void join_rank(const rank_run *r, vector_step *whole) {
    int64_t d = r->c->d;
    size_t bytes = (size_t)d * sizeof(double);
    for (int64_t j = 0; j < r->count && r->row[j] >= 0; j++) {
        memcpy(whole->y + r->row[j] * d, r->out.y + r->row[j] * d, bytes);
        memcpy(whole->dx + r->row[j] * d, r->out.dx + r->row[j] * d, bytes);
    }
    for (int64_t k = 0; k < d; k++) {
        whole->dgamma[k] += r->out.dgamma[k];
        whole->dbeta[k] += r->out.dbeta[k];
    }
    whole->n += r->out.n;
}

/* Combines one step of all ranks: rows are joined, statistics are equal, parameter gradients add
 * up. */
static void join_ranks(const rank_run *r, int ranks, vector_step *whole) {
    const vector_case *c = r->c;
    size_t bytes = (size_t)c->d * sizeof(double);
    double *dgamma = whole->dgamma, *dbeta = whole->dbeta;
    *whole = r[0].out;
    whole->x = r->x + r->step * c->B * c->d;
    whole->dy = r->dy + r->step * c->B * c->d;
    whole->dgamma = memcpy(dgamma, r[0].out.dgamma, bytes);
    whole->dbeta = memcpy(dbeta, r[0].out.dbeta, bytes);
    for (int i = 1; i < ranks; i++) join_rank(&r[i], whole);
    if (ranks > 1) join_row_means(r, ranks, whole);
    for (int v = 0; v < NORM_STATE_MAX; v++)
        if (r->site.state[v])
            memcpy(whole->after[v], r->site.state[v],
                   (size_t)r->site.state_count[v] * sizeof(double));
}

/* -- comparing --------------------------------------------------------------------------------- */

/* rec_shard_X: each rank's own value. */
static bool compare_shards(vector_case *c, const rank_run *r, int ranks, const char *name,
                           int64_t step) {
    if (strncmp(name, "rec_shard_", 10)) return false;
    double *all = vector_zeros(c, ranks * c->d);
    bool gamma = !strcmp(name, "rec_shard_dgamma"), beta = !strcmp(name, "rec_shard_dbeta");
    if (!strcmp(name, "rec_shard_n")) {
        for (int i = 0; i < ranks; i++) all[i] = (double)r[i].out.n;
        vector_compare(c, name, step, all, ranks);
    } else if (gamma || beta) {
        for (int i = 0; i < ranks; i++)
            memcpy(all + i * c->d, gamma ? r[i].out.dgamma : r[i].out.dbeta,
                   (size_t)c->d * sizeof(double));
        vector_compare(c, name, step, all, ranks * c->d);
    }
    /* rec_shard_mean and _M2 are exchanged, not kept: the merged statistics verify them. */
    return true;
}

static bool compare_state(vector_case *c, const vector_setup *s, const rank_run *r,
                          const vector_step *whole, const char *name, int64_t step) {
    if (strncmp(name, "state_", 6)) return false;
    if (!strcmp(name, "state_iters")) {
        vector_compare(c, name, step, &(double){(double)whole->calls}, 1);
        return true;
    }
    for (int i = 0; i < NORM_STATE_MAX && s->state_name[i]; i++) {
        if (strcmp(name + 6, s->state_name[i])) continue;
        double *scaled = vector_zeros(c, r->site.state_count[i]);
        for (int64_t k = 0; k < r->site.state_count[i]; k++)
            scaled[k] = whole->after[i][k] * s->state_scale[i];
        vector_compare(c, name, step, scaled, r->site.state_count[i]);
        c->pooled--;
        free(scaled);
        return true;
    }
    return false;
}

/* Compares the layer's average over rows with the file's values by row. For dx also compares the
 * closed form, if any. */
static void compare_row_scalar(vector_case *c, const vector_step *whole, uint32_t has,
                               const char *name, int64_t step) {
    static const struct {
        const char *name;
        norm_scalar scalar;
    } row[] = {{"rec_row_gradmean", NORM_SCALAR_row_grad_mean},
               {"rec_row_gradvar", NORM_SCALAR_row_grad_var},
               {"rec_row_gradmean", NORM_SCALAR_row_exact_mean},
               {"rec_row_gradvar", NORM_SCALAR_row_exact_var},
               {"rec_row_gbar", NORM_SCALAR_row_g_mean},
               {"rec_row_Dg", NORM_SCALAR_row_g_var}};
    bool gain = vector_number(c, "affine", 0) != 0; /* the file contains g, the layer gamma g */
    for (int i = 0; i < (gain ? 4 : 6); i++)
        if (!strcmp(row[i].name, name) && has >> row[i].scalar & 1)
            vector_compare_mean(c, name, step, whole->scalar[row[i].scalar]);
}

static void compare_step(vector_case *c, const vector_setup *s, const rank_run *r, int ranks,
                         const vector_step *whole, int64_t step) {
    char name[64];
    int64_t rows = c->B * c->d;
    double *out = vector_zeros(c, rows + c->d);
    int pooled = c->pooled;
    for (int64_t i = 0; vector_output(c, i, name, sizeof name) && !c->broken; i++) {
        int64_t width = 0;
        if (!strcmp(name, "y"))
            vector_compare(c, name, step, whole->y, rows);
        else if (!strcmp(name, "dx"))
            vector_compare(c, name, step, whole->dx, rows);
        else if (!strcmp(name, "dgamma"))
            vector_compare(c, name, step, whole->dgamma, c->d);
        else if (!strcmp(name, "dbeta"))
            vector_compare(c, name, step, whole->dbeta, c->d);
        else if (!strcmp(name, "y_eval") || compare_shards(c, r, ranks, name, step) ||
                 compare_state(c, s, r, whole, name, step))
            continue;
        else if ((width = vector_recorded(c, s, whole, name, out)) > 0) {
            vector_compare(c, name, step, out, width);
            compare_row_scalar(c, whole, s->method->scalars, name, step);
        } else {
            fprintf(stderr, "%s: nothing here computes %s\n", c->where, name);
            c->wrong++;
        }
    }
    while (c->pooled > pooled) free(c->pool[--c->pooled]);
    free(c->pool[--c->pooled]);
}

static void run_steps(vector_case *c, const vector_setup *s, rank_run *r, int ranks) {
    vector_step whole = {.dgamma = vector_zeros(c, c->d), .dbeta = vector_zeros(c, c->d)};
    for (int64_t step = 0; step < c->S && !c->broken; step++) {
        for (int i = 0; i < ranks; i++) {
            r[i].step = step;
            vector_setup_step(c, s, step, &r[i].site.options);
        }
        each_rank(r, ranks, train_step);
        join_ranks(r, ranks, &whole);
        compare_step(c, s, r, ranks, &whole, step);
    }
    if (c->broken || !vector_has(c, "out/y_eval")) return;
    each_rank(r, ranks, infer);
    join_ranks(r, ranks, &whole);
    vector_compare(c, "y_eval", 0, whole.y, c->B * c->d);
}

void vector_run(vector_case *c, const vector_setup *s) {
    rank_run r[VECTORS_RANKS];
    int ranks = (int)vector_number(c, "ranks", 1);
    exchange e = {.ranks = ranks, .capacity = ranks * (2 * c->d + 1)};
    memset(r, 0, sizeof r);
    e.all = vector_zeros(c, e.capacity);
    pthread_barrier_init(&e.barrier, NULL, (unsigned)ranks);
    const double *x = vector_read(c, "in/x", NULL), *dy = vector_read(c, "in/dy", NULL);
    const double *shard = ranks > 1 ? vector_read(c, "in/shard", NULL) : NULL;
    const double *seg = vector_has(c, "in/seg") ? vector_read(c, "in/seg", NULL) : NULL;
    if (!vector_has(c, "out/y") || !vector_has(c, "out/dx")) c->broken = true;
    for (int i = 0; i < ranks && !c->broken; i++) {
        r[i] = (rank_run){.c = c,
                          .setup = s,
                          .x = x,
                          .dy = dy,
                          .shard = shard,
                          .seg = seg,
                          .rank = i,
                          .exchange = ranks > 1 ? &e : NULL};
        if (!start_rank(&r[i])) {
            fprintf(stderr, "%s: %s\n", c->where, r[i].why.text);
            c->broken = true;
        }
    }
    if (!c->broken) run_steps(c, s, r, ranks);
    for (int i = 0; i < ranks; i++) end_rank(&r[i]);
    pthread_barrier_destroy(&e.barrier);
}
