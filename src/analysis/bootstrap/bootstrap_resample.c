/* Quantiles of resamples of a series that may be longer than memory: exact, one byte for a step.
 *
 * Of a resample (bootstrap.c) six order statistics are wanted: those around its median, around its
 * 99 % quantile, and the largest. Values that are few enough are kept, and a resample is the number of times
 * each of their distinct ranks was drawn: one pass and no sorting.
 *
 * Of more values each step keeps its class, the number of the interval between two splitters that its value
 * lies in. A resample counts how often each class was drawn, which tells in whose values each order statistic
 * is, and its rank among those that were drawn of them. These classes are few: the quantiles of resamples
 * lie close together. Their values are read again and kept, with the places of their steps, and drawn again,
 * the same numbers in the same order. A class of one value alone needs none of that. One that is too
 * large to be kept is taken for a series of its own: its values have new splitters between them, all others
 * are of class 0, which no one asks for.
 *
 * Threads share the resamples: what is counted for one belongs to one thread, and it depends on nothing but where the
 * resample begins in the stream of random numbers (bootstrap_draws.h).
 *
 * Splitters are quantiles of a sample. Where they lie decides how much work there is, and no result: counts
 * are of all values.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bootstrap/bootstrap_draws.h"
#include "analysis/columns/order_statistics.h"
#include "base/sort.h"

enum {
    SPLITTERS = CLASSES - 2, /* class 0 is what lies outside */
    LANES = 4, /* neighbours are often of one class: the same counter twice has to wait */
    SAMPLE = 1 << 15,
    /* of column_memory_limit() for a value of a series that is kept as a whole: classes are faster behind that, with long
     * blocks sooner */
    WHOLE_BYTES = 512,
    WHOLE_BYTES_LONG = 4096,
    LONG_BLOCK = 16
};

/* -- classes --------------------------------------------------------------------------------- */

/* Values next to each other. */
typedef struct span {
    int number;
    double least, largest;
    int64_t members;
} span;

/* Of a series whose values do not stay. */
typedef struct resampler {
    const column_source *source;
    int64_t n, kept;     /* values, and at most at once in memory */
    uint8_t *step_class; /* [n] */
    int numbers;         /* of spans, that are given away */
    int64_t count;       /* resamples of now, at most TOGETHER */
    resampling *drawing;
    order *order; /* [count, WANTED] */
} resampler;

/* One member of each of `count` equal parts. */
typedef struct sampler {
    span of;
    double *value; /* [count] */
    int64_t count, taken, member, next;
    double least;
    rng random;
} sampler;

static void sampler_place_next(sampler *s) {
    const int64_t begin = s->taken * s->of.members / s->count;
    const int64_t end = (s->taken + 1) * s->of.members / s->count;
    s->next = begin + (int64_t)rng_below(&s->random, (uint64_t)(end - begin));
}

static void sampler_add(void *into, const double *value, int64_t count) {
    sampler *s = into;
    for (int64_t i = 0; i < count && s->taken < s->count; i++) {
        if (value[i] < s->of.least || value[i] > s->of.largest) continue;
        if (value[i] < s->least) s->least = value[i];
        if (s->member++ != s->next) continue;
        s->value[s->taken++] = value[i];
        if (s->taken < s->count) sampler_place_next(s);
    }
}

typedef struct classes {
    resampler *r;
    span of, span[CLASSES];
    int64_t at;                     /* step that is next */
    double splitter[SPLITTERS + 1]; /* class 1 is below the first; infinite behind the last */
} classes;

/* A value that is met twice has a class to itself, so each class has fewer values than all of them: the
 * least is taken for a splitter, of which no class is below. */
static void classes_split(classes *c, const double *sorted, int64_t count, double least) {
    double last = least;
    int found = 0;
    for (int j = 1; j <= SPLITTERS; j++) {
        const double next = sorted[count * j / (SPLITTERS + 1)];
        if (next < last) continue;
        last = next > last ? next : nextafter(last, INFINITY);
        c->splitter[found++] = last;
    }
    while (found <= SPLITTERS) c->splitter[found++] = INFINITY;
}

static sr_status classes_sample(classes *c, sr_failure *why) {
    sampler s = {.of = c->of,
                 .count = c->of.members < SAMPLE ? c->of.members : SAMPLE,
                 .least = INFINITY,
                 .random = rng_create(1)};
    s.value = malloc((size_t)s.count * sizeof *s.value);
    if (!s.value) return sr_fail(why, SR_MEMORY, "out of memory");
    sampler_place_next(&s);
    const sr_status status = finite_values(c->r->source, sampler_add, &s, why);
    sort_reals(s.value, s.taken);
    if (status == SR_OK) classes_split(c, s.value, s.taken, s.least);
    free(s.value);
    return status;
}

/* Splitters that are not above it. */
static int class_of(const double *splitter, double value) {
    int below = 0;
    for (int step = CLASSES / 2; step; step /= 2)
        below += splitter[below + step - 1] <= value ? step : 0;
    return below;
}

static void classes_add(void *into, const double *value, int64_t count) {
    classes *c = into;
    for (int64_t i = 0; i < count && c->at < c->r->n; i++) {
        const bool outside = value[i] < c->of.least || value[i] > c->of.largest;
        const int here = outside ? 0 : 1 + class_of(c->splitter, value[i]);
        span *s = &c->span[here];
        c->r->step_class[c->at++] = (uint8_t)here;
        s->members++;
        if (value[i] < s->least) s->least = value[i];
        if (value[i] > s->largest) s->largest = value[i];
    }
}

static sr_status classes_create(classes *c, resampler *r, const span *of, sr_failure *why) {
    *c = (classes){.r = r, .of = *of};
    for (int i = 0; i < CLASSES; i++)
        c->span[i] = (span){.number = r->numbers++, .least = INFINITY, .largest = -INFINITY};
    sr_status status = classes_sample(c, why);
    return status == SR_OK ? finite_values(r->source, classes_add, c, why) : status;
}

/* -- resamples of classes -------------------------------------------------------------------- */

static void count_piece(const uint8_t *of, index_range p, uint32_t count[LANES][CLASSES]) {
    int64_t i = p.at;
    for (; i + LANES <= p.end; i += LANES)
        for (int k = 0; k < LANES; k++) count[k][of[i + k]]++;
    for (; i < p.end; i++) count[0][of[i]]++;
}

static void count_resample(const uint8_t *of, draw *d, uint32_t count[LANES][CLASSES]) {
    index_range next[PIECES];
    memset(count, 0, LANES * CLASSES * sizeof count[0][0]);
    for (int pieces; (pieces = draw_next(d, next)) > 0;)
        for (int k = 0; k < pieces; k++) count_piece(of, next[k], count);
    for (int i = 0; i < CLASSES; i++)
        for (int k = 1; k < LANES; k++) count[0][i] += count[k][i];
}

/* The class of an order statistic, and its rank in it. */
static void order_descend(order *o, const classes *c, const uint32_t *count) {
    int at = 1;
    while (at < CLASSES - 1 && o->rank >= count[at]) o->rank -= count[at++];
    const span *s = &c->span[at];
    o->span = s->least < s->largest ? s->number : FOUND;
    o->value = s->least;
}

static void descend_resample(void *context, int64_t b, draw *d, int thread) {
    const classes *c = context;
    uint32_t count[LANES][CLASSES];
    order *o = c->r->order + b * WANTED;
    (void)thread;
    if (!orders_ask(o, c->of.number, 1)) return;
    count_resample(c->r->step_class, d, count);
    for (int i = 0; i < WANTED; i++)
        if (o[i].span == c->of.number) order_descend(&o[i], c, count[0]);
}

static void begin_resample(void *context, int64_t b, draw *d, int thread) {
    const classes *c = context;
    orders_begin(c->r->order + b * WANTED, c->r->n);
    descend_resample(context, b, d, thread);
}

/* All values are the first span that is divided. */
static void descend(classes *c) {
    const bool first = c->of.number == 0;
    (first ? resamples_draw : resamples_draw_again)(c->r->drawing, c->r->count,
                                                    omp_get_max_threads(),
                                                    first ? begin_resample : descend_resample, c);
}

static bool is_wanted(const classes *c, int number) {
    bool any = false;
    for (int64_t i = 0; i < c->r->count * WANTED && !any; i++)
        any = c->r->order[i].span == c->span[number].number;
    return any;
}

/* -- values of some classes ------------------------------------------------------------------ */

typedef struct gathering {
    pool *p;
    const resampler *r;
    int64_t at; /* step that is next */
} gathering;

static void gather(void *into, const double *value, int64_t count) {
    gathering *g = into;
    pool *p = g->p;
    for (int64_t i = 0; i < count && g->at < g->r->n; i++, g->at++) {
        if (p->begin[g->r->step_class[g->at]] < 0 || p->count == p->capacity) continue;
        p->member[g->at / WORD] |= (uint64_t)1 << g->at % WORD;
        p->value[p->count++] = value[i];
    }
}

static sr_status pool_create_places(pool *p, int64_t n, sr_failure *why) {
    const size_t words = (size_t)(n / WORD + 1);
    p->member = calloc(words, sizeof *p->member);
    p->before = malloc(words * sizeof *p->before);
    return p->member && p->before ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

static void pool_count_before(pool *p, int64_t n) {
    uint32_t count = 0;
    for (int64_t i = 0; i <= n / WORD; i++) {
        p->before[i] = count;
        count += (uint32_t)__builtin_popcountll(p->member[i]);
    }
}

/* The classes of p->begin. */
static sr_status pool_gather(pool *p, const classes *c, int64_t members, sr_failure *why) {
    gathering g = {p, c->r, 0};
    p->first = c->span[0].number;
    sr_status status = pool_create(p, members, why);
    if (status == SR_OK) status = pool_create_places(p, c->r->n, why);
    if (status == SR_OK) status = finite_values(c->r->source, gather, &g, why);
    if (status == SR_OK) pool_count_before(p, c->r->n);
    return status == SR_OK ? pool_sort(p, why) : status;
}

typedef struct gathered {
    const pool *p;
    order *order; /* [resamples, WANTED] */
} gathered;

static void find_resample(void *context, int64_t b, draw *d, int thread) {
    const gathered *g = context;
    order *o = g->order + b * WANTED;
    if (!orders_ask(o, g->p->first, CLASSES)) return;
    pool_draw(g->p, d, thread);
    pool_find(g->p, o, thread);
}

static sr_status find_gathered(pool *p, const classes *c, int64_t members, sr_failure *why) {
    gathered g = {p, c->r->order};
    sr_status status = members ? pool_gather(p, c, members, why) : SR_OK;
    if (members && status == SR_OK)
        resamples_draw_again(c->r->drawing, c->r->count, p->threads, find_resample, &g);
    pool_free(p);
    return status;
}

static void pool_clear(pool *p) {
    for (int i = 0; i < CLASSES; i++) p->begin[i] = -1;
}

/* Of the classes that may be kept, as many at once as fit. */
static sr_status find_small(const classes *c, sr_failure *why) {
    pool p = {0};
    int64_t members = 0;
    sr_status status = SR_OK;
    pool_clear(&p);
    for (int i = 1; i < CLASSES && status == SR_OK; i++) {
        const int64_t more = c->span[i].members;
        if (more > c->r->kept || !is_wanted(c, i)) continue;
        if (members + more > c->r->kept) {
            status = find_gathered(&p, c, members, why);
            pool_clear(&p);
            members = 0;
        }
        p.begin[i] = members;
        members += more;
    }
    if (status == SR_OK) status = find_gathered(&p, c, members, why);
    return status;
}

/* What is asked for among the values of a span. Classes that are too large are spans of their own, each
 * smaller than the one that it is in. */
static sr_status resolve(resampler *r, const span *of, sr_failure *why) {
    classes *c = malloc(sizeof *c);
    if (!c) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = classes_create(c, r, of, why);
    if (status == SR_OK) {
        descend(c);
        status = find_small(c, why);
    }
    for (int i = 1; i < CLASSES && status == SR_OK; i++)
        if (c->span[i].members > r->kept && is_wanted(c, i)) status = resolve(r, &c->span[i], why);
    free(c);
    return status;
}

/* -- all resamples --------------------------------------------------------------------------- */

static void keep(void *into, const double *value, int64_t count) {
    pool *p = into;
    for (int64_t i = 0; i < count && p->count < p->capacity; i++) p->value[p->count++] = value[i];
}

/* Of a series that is kept, resamples of now. */
typedef struct kept_tails {
    const pool *p;
    int64_t n, resamples; /* of all */
    double *result;       /* as of bootstrap_tails, from the first of now */
} kept_tails;

static void tails_of_resample(void *context, int64_t b, draw *d, int thread) {
    const kept_tails *t = context;
    order o[WANTED];
    orders_begin(o, t->n);
    pool_draw(t->p, d, thread);
    pool_find(t->p, o, thread);
    orders_end(o, t->n, t->resamples, t->result + b);
}

/* Those of now, of all that are left. */
static int64_t together(int64_t left) {
    return left < TOGETHER ? left : TOGETHER;
}

static sr_status tails_kept(const column_source *c, resampling *r, int64_t count, double *result,
                            sr_failure *why) {
    pool p = {0};
    sr_status status = pool_create(&p, r->first.n, why);
    if (status == SR_OK) status = finite_values(c, keep, &p, why);
    if (status == SR_OK) status = pool_sort(&p, why);
    for (int64_t b = 0; b < count && status == SR_OK; b += TOGETHER) {
        kept_tails t = {&p, r->first.n, count, result + b};
        const int64_t now = together(count - b);
        resamples_draw(r, now, p.threads, tails_of_resample, &t);
        r->begin[0] = r->begin[now];
    }
    pool_free(&p);
    return status;
}

static sr_status tails_together(resampler *r, int64_t resamples, double *result, sr_failure *why) {
    const span all = {0, -INFINITY, INFINITY, r->n};
    r->numbers = 1;
    const sr_status status = resolve(r, &all, why);
    for (int64_t b = 0; b < r->count && status == SR_OK; b++)
        orders_end(r->order + b * WANTED, r->n, resamples, result + b);
    return status;
}

static sr_status tails_read(const column_source *c, resampling *drawing, int64_t kept,
                            int64_t count, double *result, sr_failure *why) {
    resampler r = {.source = c, .n = drawing->first.n, .kept = kept, .drawing = drawing};
    r.step_class = calloc((size_t)r.n, sizeof *r.step_class);
    r.order = calloc(TOGETHER * WANTED, sizeof *r.order);
    sr_status status =
        r.step_class && r.order
            ? SR_OK
            : sr_fail(why, SR_MEMORY, "out of memory for resamples of %lld values", (long long)r.n);
    for (int64_t b = 0; b < count && status == SR_OK; b += TOGETHER) {
        r.count = together(count - b);
        status = tails_together(&r, count, result + b, why);
        drawing->begin[0] = drawing->begin[r.count];
    }
    free(r.step_class);
    free(r.order);
    return status;
}

sr_status bootstrap_tails(const column_source *c, int64_t n, int64_t block, rng random,
                          int64_t resamples, double *result, sr_failure *why) {
    const int64_t room = column_memory_limit() / KEPT_BYTES, kept = room > 1 ? room : 1;
    const bool whole =
        n <= column_memory_limit() / (block < LONG_BLOCK ? WHOLE_BYTES : WHOLE_BYTES_LONG);
    resampling drawing = {.first = {random, rng_range_create((uint64_t)n), n, block, n}};
    if (n > UINT32_MAX)
        return sr_fail(why, SR_MEMORY, "resamples are of %lld values at most, not %lld",
                       (long long)UINT32_MAX, (long long)n);
    drawing.begin[0] = random;
    return whole ? tails_kept(c, &drawing, resamples, result, why)
                 : tails_read(c, &drawing, kept, resamples, result, why);
}
