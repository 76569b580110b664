/* The points of one curve, on their way into a data file of gnuplot. */
#include "plot/plot_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/containers/vector.h"
#include "base/float_text.h"

double *points_add(points *p) {
    const int64_t cells = (p->rows + 1) * p->columns;
    if (!vector_reserve(&p->cell, &p->capacity, cells, sizeof *p->cell)) return NULL;
    return p->cell + p->columns * p->rows++;
}

sr_status points_smooth(points *p, int most, sr_failure *why) {
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

static bool point_has_value(const points *p, int64_t row) {
    const double *cell = p->cell + row * p->columns;
    for (int c = 1; c < p->columns; c += 3)
        if (!isnan(cell[c + 1])) return true;
    return false;
}

/* Whether a run was recorded at some steps only. Then most of its values have empty rows before
 * them; or several, where a bucket spans about as much as two records. One or two holes are NaN of
 * a run that was recorded at each step. */
static bool are_sparse(int64_t holes, int64_t steps, int64_t empty) {
    return 2 * holes > steps || (holes > 2 && 20 * empty > steps);
}

void points_join(points *p) {
    int64_t first = 0, last = p->rows - 1, valued = 0, holes = 0, kept = 0;
    while (first < last && !point_has_value(p, first)) first++;
    while (last > first && !point_has_value(p, last)) last--;
    for (int64_t i = first; i <= last; i++) {
        const bool here = point_has_value(p, i);
        valued += here;
        holes += !here && i > first && point_has_value(p, i - 1);
    }
    const int64_t steps = valued - 1, empty = last - first + 1 - valued; /* from value to value */
    const bool sparse = valued > 0 && are_sparse(holes, steps, empty);
    for (int64_t i = 0, next; i < p->rows; i = next) {
        for (next = i; next < p->rows && !point_has_value(p, next);) next++;
        const bool between = next > i && i > first && next <= last;
        if (between && sparse && (next - i + 1) * steps <= 3 * (steps + empty)) continue;
        if (next == i) next++;
        memmove(p->cell + kept * p->columns, p->cell + i * p->columns,
                (size_t)((next - i) * p->columns) * sizeof *p->cell);
        kept += next - i;
    }
    p->rows = kept;
}

void points_write(const points *p, FILE *out) {
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
