/* layer_norms.c -- norms of the gradient, weights and update of each layer.
 *
 * w: the layer's parameters; g: gradient of the mean loss before clipping; w': after the update.
 *
 *   layer_grad_norm = ||g||_2     layer_update_norm = ||w' - w||_2
 *   layer_weight_norm = ||w||_2   layer_update_ratio = ||w' - w||_2 / ||w||_2
 *
 * Every parameter belongs to at most one layer, so the squared gradient norms add up to the square
 * of /steps/grad_norm. A layer is a site with its gain, bias and nearest parameters. Candidates
 * share the site's name, or its name without the last part: encoder.0 for encoder.0.norm1. The
 * longer common prefix wins. Sites of kinds conv, linear and hidden follow their weights and take
 * parameters created before them. Other sites take those created after them, up to the next site.
 * Parameters of no site (embeddings, output) give a scalar per step, named by the first part of
 * their name: layer_grad_norm.embedding.
 *
 * Sums are in double over fixed chunks in fixed order: bit-identical for any number of threads.
 */
#include "observe/layer_norms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16384, KINDS = 4, OTHERS = 12 };

typedef struct squares {
    double grad, weight, update;
} squares;

struct layer_norms {
    const model *model;
    sr_recorder *recorder;
    int64_t every;
    bool due;
    double scale;
    int *group; /* [parameters] site of the model, or sites + i of the i-th other group */
    int *site;  /* [sites] number in the recorder; -1: not recorded */
    int groups, others;
    int id[KINDS];
    char other[OTHERS][PARAM_NAME];
    int other_id[OTHERS][KINDS];
    real **old;     /* [parameters][count] weights before the update */
    int64_t chunks; /* chunks of all parameters */
    squares *part;  /* [chunks] */
    squares *sum;   /* [groups] */
};

/* -- the layer of a parameter ------------------------------------------------------------------ */

/* Length of the prefix that the parameter shares with the site: its name or all but the last part;
 * 0: neither. */
static size_t common(const char *parameter, const char *site) {
    const size_t whole = strlen(site);
    const char *dot = strrchr(site, '.');
    const size_t parent = dot ? (size_t)(dot - site) : 0;
    if (!strncmp(parameter, site, whole) && parameter[whole] == '.') return whole;
    return parent && !strncmp(parameter, site, parent) && parameter[parent] == '.' ? parent : 0;
}

/* Distance of the parameter from the site in the order of creation; large on the wrong side. */
static int distance(const norm_site *s, int parameter, int parameters) {
    const int from = parameter - s->parameters_before;
    const bool after =
        !strcmp(s->kind, "conv") || !strcmp(s->kind, "linear") || !strcmp(s->kind, "hidden");
    const int right = after ? -from : from;
    return right >= 0 ? right : parameters - right;
}

int layer_norms_site(const model *m, int parameter) {
    const char *name = m->params.item[parameter]->name;
    int best = -1, nearest = 0;
    size_t longest = 0;
    for (int i = 0; i < m->sites; i++) {
        const size_t length = common(name, m->site[i]->name);
        const int far = distance(m->site[i], parameter, m->params.count);
        if (length < longest || length == 0) continue;
        if (length == longest && far >= nearest) continue;
        longest = length;
        nearest = far;
        best = i;
    }
    return best;
}

/* -- making ------------------------------------------------------------------------------------ */

static const char *const kind_name[KINDS] = {"layer_grad_norm", "layer_weight_norm",
                                             "layer_update_norm", "layer_update_ratio"};
static const char *const kind_definition[KINDS] = {
    "||g||_2 over the parameters of the site's layer, g of the mean loss, before clipping",
    "||w||_2 over the parameters of the site's layer, before the update",
    "||w' - w||_2 over the parameters of the site's layer, w' behind the update",
    "||w' - w||_2 / ||w||_2 over the parameters of the site's layer",
};

/* Index of the group of a parameter without site; groups beyond OTHERS share the last one. */
static int other_group(layer_norms *n, const char *parameter) {
    char first[PARAM_NAME];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(parameter, "."), parameter);
    for (int i = 0; i < n->others; i++)
        if (!strcmp(n->other[i], first)) return i;
    if (n->others == OTHERS) return OTHERS - 1;
    const bool last = n->others == OTHERS - 1;
    snprintf(n->other[n->others], PARAM_NAME, "%s", last ? "others" : first);
    return n->others++;
}

static int64_t chunks_of(const param *x) {
    return (x->t.count + CHUNK - 1) / CHUNK;
}

static bool make_memory(layer_norms *n) {
    const params *p = &n->model->params;
    n->group = calloc((size_t)p->count + 1, sizeof *n->group);
    n->site = calloc((size_t)n->model->sites + 1, sizeof *n->site);
    n->old = calloc((size_t)p->count + 1, sizeof *n->old);
    bool made = n->group && n->site && n->old;
    for (int i = 0; i < p->count && made; i++) {
        n->chunks += chunks_of(p->item[i]);
        n->old[i] = malloc((size_t)(p->item[i]->t.count + 1) * sizeof(real));
        made = n->old[i] != NULL;
    }
    n->part = calloc((size_t)n->chunks + 1, sizeof *n->part);
    n->sum = calloc((size_t)(n->model->sites + OTHERS), sizeof *n->sum);
    return made && n->part && n->sum;
}

layer_norms *layer_norms_create(const model *m, sr_recorder *r, const hooks *h, int64_t every,
                                sr_failure *why) {
    layer_norms *n = calloc(1, sizeof *n);
    if (n) *n = (layer_norms){.model = m, .recorder = r, .every = every};
    if (!n || !make_memory(n)) {
        sr_fail(why, SR_MEMORY, "out of memory for the weights before an update");
        layer_norms_free(n);
        return NULL;
    }
    for (int i = 0; i < m->sites; i++) n->site[i] = hooks_site(h, i);
    for (int i = 0; i < m->params.count; i++) {
        const int site = layer_norms_site(m, i);
        n->group[i] = site >= 0 ? site : m->sites + other_group(n, m->params.item[i]->name);
    }
    n->groups = m->sites + n->others;
    for (int k = 0; k < KINDS; k++)
        n->id[k] = sr_declare_scalar(r, kind_name[k], "1", kind_definition[k], SR_PER_SITE);
    for (int i = 0; i < n->others * KINDS; i++) {
        char name[2 * PARAM_NAME], definition[SR_DEFINITION_SIZE];
        const char *kind = kind_name[i % KINDS], *other = n->other[i / KINDS];
        snprintf(name, sizeof name, "%s.%.40s", kind, other);
        snprintf(definition, sizeof definition, "%s of the parameters %.40s, of no site", kind,
                 other);
        n->other_id[i / KINDS][i % KINDS] =
            sr_declare_scalar(r, name, "1", definition, SR_PER_STEP);
    }
    const sr_failure *f = sr_failed(r);
    if (!f) return n;
    sr_fail(why, f->status, "%s", f->text);
    layer_norms_free(n);
    return NULL;
}

void layer_norms_free(layer_norms *n) {
    if (!n) return;
    for (int i = 0; n->old && i < n->model->params.count; i++) free(n->old[i]);
    free(n->old);
    free(n->group);
    free(n->site);
    free(n->part);
    free(n->sum);
    free(n);
}

/* -- an update --------------------------------------------------------------------------------- */

static squares squares_before(const real *w, const real *g, real *old, int64_t count) {
    double grad = 0, weight = 0;
#pragma omp simd reduction(+ : grad, weight)
    for (int64_t i = 0; i < count; i++) {
        grad += (double)g[i] * (double)g[i];
        weight += (double)w[i] * (double)w[i];
        old[i] = w[i];
    }
    return (squares){.grad = grad, .weight = weight};
}

static double squares_of_change(const real *w, const real *old, int64_t count) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++) {
        const double change = (double)w[i] - (double)old[i];
        sum += change * change;
    }
    return sum;
}

static void take_chunks(layer_norms *n, bool before, int threads) {
    const params *p = &n->model->params;
#pragma omp parallel num_threads(threads)
    for (int64_t i = 0, first = 0; i < p->count; first += chunks_of(p->item[i++])) {
        const tensor *x = &p->item[i]->t;
        const int64_t chunks = chunks_of(p->item[i]);
#pragma omp for schedule(static) nowait
        for (int64_t k = 0; k < chunks; k++) {
            const int64_t at = k * CHUNK, count = x->count - at < CHUNK ? x->count - at : CHUNK;
            real *w = x->value + at, *old = n->old[i] + at;
            if (before)
                n->part[first + k] = squares_before(w, x->grad + at, old, count);
            else
                n->part[first + k].update = squares_of_change(w, old, count);
        }
    }
}

void layer_norms_before(layer_norms *n, int64_t update, double scale, int threads) {
    n->due = update % n->every == 0;
    n->scale = scale;
    if (n->due) take_chunks(n, true, threads);
}

void layer_norms_after(layer_norms *n, int threads) {
    const params *p = &n->model->params;
    if (!n->due) return;
    n->due = false;
    take_chunks(n, false, threads);
    for (int i = 0; i < n->groups; i++) n->sum[i] = (squares){0, 0, 0};
    for (int64_t i = 0, at = 0; i < p->count; i++) {
        squares *to = &n->sum[n->group[i]];
        for (const int64_t end = at + chunks_of(p->item[i]); at < end; at++) {
            to->grad += n->part[at].grad;
            to->weight += n->part[at].weight;
            to->update += n->part[at].update;
        }
    }
    for (int i = 0; i < n->groups; i++) {
        const squares *s = &n->sum[i];
        const double weight = sqrt(s->weight), update = sqrt(s->update);
        const double value[KINDS] = {sqrt(s->grad) * n->scale, weight, update, update / weight};
        const int other = i - n->model->sites;
        for (int k = 0; k < KINDS; k++) {
            if (other >= 0)
                sr_put_step_scalar(n->recorder, n->other_id[other][k], value[k]);
            else if (n->site[i] >= 0)
                sr_put_scalar(n->recorder, n->site[i], n->id[k], value[k]);
        }
    }
}
