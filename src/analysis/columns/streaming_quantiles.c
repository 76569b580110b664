/* Summaries of columns that may be longer than memory: exact order statistics in a few passes.
 *
 * Columns that fit are read once and given to summary_make. Of the others each value x becomes a
 * whole number of 64 bits in the same order: with b the bits of x as a double,
 *
 *     key(x) = ~b            x < 0 or -0
 *              b + 2^63      else
 *
 * whose digits, DIGIT_BITS each from the top, are found one in a pass: a histogram of the digit of those
 * values that begin with the digits that are known tells the next digit of the order statistic of rank k,
 * and its rank among the values that have that digit too. Each pass reads the columns again; all ranks of
 * all columns go through it together. Lower digits that are zero in all values need no pass: values of
 * float32 take 3 passes, others 5.
 *
 * -0 is below 0 here, where summary_make takes them for equal; a quantile between two of them is 0
 * either way.
 */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns/order_statistics.h"

enum {
    DIGIT_BITS = 13,
    BINS = 1 << DIGIT_BITS,
    DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS,
    FIRST_SHIFT = DIGIT_BITS * (DIGITS - 1), /* the first digit has what is left */
    PASSES = 3,                              /* as of float32 */
    RANKS = 2 * QUANTILES_MOST,
    MOST_ROWS = 1 << 16, /* of a block */
    KEPT_PART = 8        /* of the room, for one column that is kept beside what is made of it */
};

/* -- one column ------------------------------------------------------------------------------ */

typedef struct order_statistic {
    int64_t rank;   /* among the values that begin with `known` */
    uint64_t known; /* leading digits of its key */
    int bins;       /* which histogram is theirs */
} order_statistic;

/* Upwards. */
typedef struct quantile_list {
    const double *p;
    int count;
} quantile_list;

/* On its way to the order statistics around each quantile. */
typedef struct selection {
    quantile_list q;
    finite_sum sum;
    uint64_t bits; /* that are set in any value */
    int shift;     /* of the digit that is counted now */
    bool done;     /* the digits below are zero in all values */
    int ranks, histograms;
    order_statistic order[RANKS];
    uint64_t begins[RANKS]; /* [histograms] digits before the one that each counts, no two alike */
    int64_t *count;         /* [ranks, BINS] */
} selection;

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static uint64_t key_of(uint64_t bits) {
    const uint64_t sign = (uint64_t)1 << 63;
    return bits & sign ? ~bits : bits | sign;
}

/* Of the digits above shift, where the bits below are zero in all values. */
static double value_of(uint64_t digits, int shift) {
    const uint64_t sign = (uint64_t)1 << 63, key = digits << shift;
    const uint64_t bits = (key & sign ? key ^ sign : ~key) >> shift << shift;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static sr_status selection_create(selection *w, quantile_list q, sr_failure *why) {
    *w = (selection){.sum = finite_sum_begin(), .shift = FIRST_SHIFT, .q = q, .ranks = 2 * q.count};
    w->histograms = 1; /* of all values */
    w->count = calloc((size_t)w->ranks * BINS, sizeof *w->count);
    return w->count ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

static int histogram_of(const selection *w, uint64_t digits) {
    int i = 0;
    while (i < w->histograms && w->begins[i] != digits) i++;
    return i;
}

/* value [count] is finite. */
static void selection_count(selection *w, const double *value, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const uint64_t bits = bits_of(value[i]), digits = key_of(bits) >> w->shift;
        const int h = histogram_of(w, digits >> DIGIT_BITS);
        w->bits |= bits;
        if (h < w->histograms) w->count[h * BINS + (int)(digits & (BINS - 1))]++;
    }
}

/* How many values there are is known after the first pass. */
static void selection_set_ranks(selection *w) {
    for (int i = 0; i < w->q.count; i++) {
        const double p = w->q.p[i];
        w->order[2 * i].rank = quantile_rank(w->sum.finite, p);
        w->order[2 * i + 1].rank = quantile_rank_above(w->sum.finite, p);
    }
}

/* The last bin is not looked at: a file that changes between two passes must not lead beyond it. */
static void order_narrow(order_statistic *o, const int64_t *count) {
    uint64_t digit = 0;
    while (digit < BINS - 1 && o->rank >= count[digit]) o->rank -= count[digit++];
    o->known = o->known << DIGIT_BITS | digit;
}

/* The histograms of the next digit. */
static void selection_shift(selection *w) {
    memset(w->count, 0, (size_t)(w->histograms * BINS) * sizeof *w->count);
    w->shift -= DIGIT_BITS;
    w->histograms = 0;
    for (int i = 0; i < w->ranks; i++) {
        const int h = histogram_of(w, w->order[i].known);
        if (h == w->histograms) w->begins[w->histograms++] = w->order[i].known;
        w->order[i].bins = h;
    }
}

/* After a pass: the digit of each order statistic that was counted. */
static void selection_narrow(selection *w) {
    for (int i = 0; i < w->ranks; i++)
        order_narrow(&w->order[i], w->count + w->order[i].bins * BINS);
    w->done = (w->bits & (((uint64_t)1 << w->shift) - 1)) == 0;
    if (!w->done) selection_shift(w);
}

static column_quantiles selection_end(const selection *w) {
    column_quantiles found = {.finite = w->sum.finite, w->sum.least, w->sum.largest, {NAN}};
    for (int i = 0; i < w->q.count; i++) {
        const order_statistic *o = &w->order[2 * i];
        found.at[i] = !found.finite ? NAN
                                    : quantile_between(found.finite, w->q.p[i],
                                                       value_of(o[0].known, w->shift),
                                                       value_of(o[1].known, w->shift));
    }
    return found;
}

static summary selection_summary(const selection *w, bool range) {
    const column_quantiles found = selection_end(w);
    summary s = finite_sum_end(&w->sum);
    if (found.finite) summary_set_quantiles(&s, quantile_span_of(range), found.at);
    return s;
}

/* Of the one quantile that there is. The middle one of an odd number of values is both. */
static bucket_range selection_range(const selection *w) {
    const int64_t n = w->sum.finite;
    if (n == 0) return (bucket_range){NAN, NAN, NAN};
    const double low = value_of(w->order[0].known, w->shift);
    const double high = value_of(w->order[n % 2 ? 0 : 1].known, w->shift);
    return (bucket_range){w->sum.least, bucket_middle(low, high), w->sum.largest};
}

/* -- columns side by side -------------------------------------------------------------------- */

/* Rows [rows] of each of the columns. */
typedef struct column_block {
    int64_t rows;
    double **value; /* [columns], in a column_space */
} column_block;

void column_space_free(column_space *space) {
    free(space->memory);
    *space = (column_space){0};
}

/* What was in it is lost. */
static sr_status space_reserve(column_space *space, size_t size, sr_failure *why) {
    if (size <= space->size) return SR_OK;
    column_space_free(space);
    space->memory = malloc(size * sizeof *space->memory);
    if (!space->memory) return sr_fail(why, SR_MEMORY, "out of memory");
    space->size = size;
    return SR_OK;
}

static sr_status block_create(column_block *b, column_space *space, int columns, int64_t rows,
                              sr_failure *why) {
    *b = (column_block){.rows = rows};
    if (space_reserve(space, (size_t)(columns * rows), why) != SR_OK) return why->status;
    b->value = malloc((size_t)(columns + 1) * sizeof *b->value);
    if (!b->value) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < columns; i++) b->value[i] = space->memory + i * rows;
    return SR_OK;
}

/* The sums are those of the first pass. */
static void stream_add(selection *w, double *value, int64_t count) {
    finite_sum again = w->sum;
    finite_sum *sum = w->shift == FIRST_SHIFT ? &w->sum : &again;
    if (!w->done) selection_count(w, value, finite_sum_add(sum, value, count));
}

static sr_status stream_pass(const column_source *c, const column_block *b, selection *w,
                             sr_failure *why) {
    sr_status status = SR_OK;
    for (int64_t first = 0; first < c->rows && status == SR_OK; first += b->rows) {
        const int64_t count = c->rows - first < b->rows ? c->rows - first : b->rows;
        status = c->read(c->context, first, count, b->value, why);
        for (int i = 0; i < c->columns && status == SR_OK; i++)
            stream_add(&w[i], b->value[i], count);
    }
    return status;
}

static sr_status stream_passes(const column_source *c, const column_block *b, selection *w,
                               sr_failure *why) {
    sr_status status = SR_OK;
    for (int left = c->columns; left && status == SR_OK;) {
        status = stream_pass(c, b, w, why);
        left = 0;
        for (int i = 0; i < c->columns && status == SR_OK; i++) {
            if (w[i].shift == FIRST_SHIFT) selection_set_ranks(&w[i]);
            if (!w[i].done) selection_narrow(&w[i]);
            left += !w[i].done;
        }
    }
    return status;
}

static int64_t block_rows(const column_source *c) {
    const int64_t fit = column_memory_limit() / (8 * (int64_t)sizeof(double) * c->columns);
    return fit < 1 ? 1 : fit < MOST_ROWS ? fit : MOST_ROWS;
}

/* w [columns], all zero; the histograms stay his who calls. */
static sr_status stream_select(const column_source *c, column_space *space, quantile_list q,
                               selection *w, sr_failure *why) {
    column_block b;
    sr_status status = block_create(&b, space, c->columns, block_rows(c), why);
    for (int i = 0; i < c->columns && status == SR_OK; i++)
        status = selection_create(&w[i], q, why);
    if (status == SR_OK) status = stream_passes(c, &b, w, why);
    free(b.value);
    return status;
}

static void selections_free(selection *w, int columns) {
    for (int i = 0; i < columns && w; i++) free(w[i].count);
    free(w);
}

/* Where what was selected goes: to one of these. */
typedef struct stream_result {
    summary *summaries;
    bucket_range *ranges;
    column_quantiles *quantiles;
} stream_result;

static void stream_tell(const selection *w, bool range, const stream_result *to, int column) {
    if (to->summaries) to->summaries[column] = selection_summary(w, range);
    if (to->ranges) to->ranges[column] = selection_range(w);
    if (to->quantiles) to->quantiles[column] = selection_end(w);
}

static sr_status stream_into(const column_source *c, column_space *space, quantile_list q,
                             stream_result to, sr_failure *why) {
    selection *w = calloc((size_t)c->columns, sizeof *w);
    sr_status status =
        w ? stream_select(c, space, q, w, why) : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < c->columns && status == SR_OK; i++) stream_tell(&w[i], c->range, &to, i);
    selections_free(w, c->columns);
    return status;
}

static quantile_list summary_quantiles(bool range) {
    const quantile_span q = quantile_span_of(range);
    return (quantile_list){summary_quantile + q.first, q.count};
}

sr_status ranges_stream(const column_source *c, column_space *space, bucket_range *result,
                        sr_failure *why) {
    return stream_into(c, space, summary_quantiles(true), (stream_result){.ranges = result}, why);
}

static void summarise_kept(const column_source *c, const column_block *b, summary *result) {
    const bool many = c->rows * c->columns > MOST_ROWS;
#pragma omp parallel for schedule(dynamic) num_threads(many ? omp_get_max_threads() : 1)
    for (int i = 0; i < c->columns; i++)
        (c->range ? summary_range : summary_make)(b->value[i], c->rows, &result[i]);
}

/* All rows, in a block whose `value` is his who calls. */
static sr_status keep_all(const column_source *c, column_space *space, column_block *b,
                          sr_failure *why) {
    sr_status status = block_create(b, space, c->columns, c->rows, why);
    return status == SR_OK && c->rows ? c->read(c->context, 0, c->rows, b->value, why) : status;
}

static sr_status summary_keep(const column_source *c, column_space *space, summary *result,
                              sr_failure *why) {
    column_block b;
    sr_status status = keep_all(c, space, &b, why);
    if (status == SR_OK) summarise_kept(c, &b, result);
    free(b.value);
    return status;
}

static sr_status quantiles_keep(const column_source *c, column_space *space, quantile_list q,
                                column_quantiles *result, sr_failure *why) {
    column_block b;
    sr_status status = keep_all(c, space, &b, why);
    for (int i = 0; i < c->columns && status == SR_OK; i++) {
        finite_sum f = finite_sum_begin();
        const int64_t n = finite_sum_add(&f, b.value[i], c->rows);
        result[i] = (column_quantiles){.finite = n, f.least, f.largest, {NAN}};
        quantiles_find(b.value[i], n, q.p, q.count, result[i].at);
    }
    free(b.value);
    return status;
}

/* Columns that fit: kept, or as the histograms of their ranks. */
static int64_t columns_kept(int64_t rows) {
    return column_memory_limit() / ((rows + 1) * (int64_t)sizeof(double));
}

static int64_t columns_streamed(bool range) {
    const int64_t ranks = 2 * quantile_span_of(range).count;
    const int64_t fit = column_memory_limit() / (ranks * BINS * (int64_t)sizeof(int64_t));
    return fit > 1 ? fit : 1;
}

sr_status summary_read(const column_source *c, column_space *space, summary *result,
                       sr_failure *why) {
    if (c->columns <= columns_kept(c->rows)) return summary_keep(c, space, result, why);
    return stream_into(c, space, summary_quantiles(c->range), (stream_result){.summaries = result},
                       why);
}

sr_status quantiles_read(const column_source *c, column_space *space, const double *quantile,
                         int quantiles, column_quantiles *result, sr_failure *why) {
    const quantile_list q = {quantile, quantiles};
    if (c->columns <= columns_kept(c->rows)) return quantiles_keep(c, space, q, result, why);
    return stream_into(c, space, q, (stream_result){.quantiles = result}, why);
}

int columns_together(int64_t rows, int columns, bool range) {
    const int64_t kept = columns_kept(rows), streamed = columns_streamed(range);
    const int64_t groups = (columns + streamed - 1) / streamed;
    const int64_t fit = kept * PASSES * groups >= columns ? kept : streamed;
    return fit < columns ? (int)fit : columns;
}

/* -- one column as it is --------------------------------------------------------------------- */

sr_status finite_values(const column_source *c, finite_taker *take, void *into, sr_failure *why) {
    column_space space = {0};
    column_block b;
    sr_status status = block_create(&b, &space, 1, block_rows(c), why);
    for (int64_t first = 0; first < c->rows && status == SR_OK; first += b.rows) {
        const int64_t count = c->rows - first < b.rows ? c->rows - first : b.rows;
        status = c->read(c->context, first, count, b.value, why);
        finite_sum unused = finite_sum_begin();
        if (status == SR_OK) take(into, *b.value, finite_sum_add(&unused, *b.value, count));
    }
    free(b.value);
    column_space_free(&space);
    return status;
}

static sr_status read_memory(void *context, int64_t first, int64_t count, double *const *value,
                             sr_failure *why) {
    (void)why;
    memcpy(*value, (const double *)context + first, (size_t)count * sizeof **value);
    return SR_OK;
}

column_source column_in_memory(const double *value, int64_t count) {
    return (column_source){1, count, false, read_memory, (void *)value};
}

sr_status column_keep(column_source *c, column_space *space, sr_failure *why) {
    column_block b;
    if (c->rows * (int64_t)sizeof(double) > column_memory_limit() / KEPT_PART) return SR_OK;
    const sr_status status = keep_all(c, space, &b, why);
    free(b.value);
    if (status == SR_OK) *c = column_in_memory(space->memory, c->rows);
    return status;
}
