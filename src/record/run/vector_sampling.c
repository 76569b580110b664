/* vector_sampling.c -- chooses the steps whose vectors are recorded, so that they cover a run of
 * unknown length within options.size_limit.
 *
 * Five eighths of the limit are for rows of vectors; R rows fit. The first R/4 steps all record
 * vectors. Each doubling k = 0, 1, ... of the run's length then gets this part of the other 3R/4:
 *
 *     8 / ((k + 8)(k + 9)); the parts of all k sum to 1
 *     spacing = 2^k (k + 8)(k + 9) / 24, rounded to a power of two
 *
 * The rest of the limit is for data of every step. These may outgrow it, and a planned run may
 * exceed its plan. Vectors are then recorded while the file with them stays below the limit.
 */
#include "record/run/vector_sampling.h"

static int64_t rows_within(const sr_recorder *r, int64_t row_bytes) {
    run_layout l = r->writer.layout;
    int64_t chunk[2];
    l.planned_steps = 0;
    run_chunk_vectors(&r->writer.layout, chunk);
    const int64_t rows =
        (r->options.size_limit / 8 * 5 - run_project(&l, 0)) / row_bytes - chunk[0];
    return rows > 4 ? rows : 4;
}

static int64_t vector_sampling_at(int64_t steps, int64_t rows) {
    const int64_t whole = rows / 4;
    int64_t end = whole, k = -1, every = 1;
    for (; steps >= end && end < INT64_MAX / 4; end *= 2) k++;
    if (k < 0) return 1;
    const double wanted = (double)(end / whole / 2) * (double)((k + 8) * (k + 9)) / 24;
    while (1.41 * (double)every < wanted && every < INT64_MAX / 4) every *= 2;
    return every;
}

/* Whether the file stays below the limit with this row, the rows since the last flush, and a new
 * chunk of each column. */
static bool fits(const sr_recorder *r, int64_t row_bytes) {
    const run_writer *w = &r->writer;
    int64_t chunk[2], scalars[2], steps[2];
    run_chunk_vectors(&w->layout, chunk);
    run_chunk_scalars(&w->layout, scalars);
    run_chunk_steps(&w->layout, steps);
    const int64_t rows = w->vectors.written + w->vectors.count - r->file_vectors;
    const double begun =
        (double)(rows + chunk[0]) * (double)row_bytes +
        4.0 * (double)(scalars[0] * scalars[1]) * (SR_SCALAR_COUNT + w->declared_count) +
        8.0 * (double)steps[0] * (RUN_STEPS + w->declared_count);
    return (double)r->file_bytes + begun <= (double)r->options.size_limit;
}

bool vector_sampling_wants_vectors(sr_recorder *r, int64_t step) {
    const run_writer *w = &r->writer;
    const int64_t steps = w->steps.written + w->steps.count, planned = r->options.planned_steps;
    const int64_t row_bytes = run_vector_bytes(&w->layout);
    if (!w->layout.vectors || r->every <= 0) return false;
    const bool bounded = r->options.vectors_every == -1 && row_bytes > 0;
    if (bounded && planned == 0) {
        const int64_t least = vector_sampling_at(steps, rows_within(r, row_bytes));
        /* keeps every / least_every, the factor of overhead_limit.c */
        while (r->least_every < least) r->every *= 2, r->least_every *= 2;
    }
    if (step % r->every != 0) return false;
    return !bounded || (planned > 0 && steps < planned) || fits(r, row_bytes);
}
