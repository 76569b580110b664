/* relative_positions.c -- sinusoidal positions by distance (Dai et al., Transformer-XL, ACL 2019;
 * docs/models.md 3.1 and docs/models.md 4).
 *
 * Row n-1-D of n is [sin(D w) ..., cos(D w) ...], w_i = 10000^(-2i/d). op_embedding.c has other
 * frequencies, 10000^(-i/(d/2-1)). The last column of an odd d is 0. */
#include <math.h>
#include <stdlib.h>

#include "nets/model_rows.h"

real *model_distances(int64_t n, int64_t d, sr_failure *why) {
    const int64_t half = d / 2;
    real *table = calloc((size_t)(n * d), sizeof *table);
    if (!table) sr_fail(why, SR_MEMORY, "out of memory for %lld positions", (long long)n);
    for (int64_t j = 0; table && j < n; j++)
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)(n - 1 - j) * pow(10000, -2 * (double)i / (double)d);
            table[j * d + i] = (real)sin(angle);
            table[j * d + half + i] = (real)cos(angle);
        }
    return table;
}
