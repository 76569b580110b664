/* attention_stats.c -- statistics of attention weights (docs/definitions.md, attention).
 *
 *   logit_max_h = max_i max_j S_ij       entropy_h = sum_i ( - sum_j P_ij ln P_ij )
 *
 * over the counted queries i that see a key, and the visible keys j; sums in double. */
#include "engine/ops/attention/attention_stats.h"

#include <math.h>

#include "engine/ops/attention/attention_ops.h"

attention_chunk *attention_stats_begin(tape *t, int64_t chunks) {
    attention_chunk *chunk = tape_alloc(t, (size_t)chunks * sizeof *chunk);
    for (int64_t i = 0; chunk && i < chunks; i++)
        chunk[i] = (attention_chunk){.logit_max = -INFINITY};
    return chunk;
}

void attention_chunk_add(attention_chunk *to, int64_t n, real largest, const real *P) {
    if (largest == (real)-INFINITY) return;
    for (int64_t j = 0; j < n; j++)
        if (P[j] != 0) to->entropy -= (double)P[j] * log((double)P[j]);
    if ((double)largest > to->logit_max) to->logit_max = (double)largest;
    to->queries++;
}

void attention_stats_end(const attention_chunk *chunk, int64_t sentences, int heads,
                         attention_report *to) {
    for (int h = 0; h < heads; h++) {
        attention_chunk all = {.logit_max = -INFINITY};
        for (int64_t b = 0; b < sentences; b++) {
            const attention_chunk *one = &chunk[b * heads + h];
            if (one->logit_max > all.logit_max) all.logit_max = one->logit_max;
            all.entropy += one->entropy;
            all.queries += one->queries;
        }
        to->logit_max[h] = all.queries ? all.logit_max : NAN;
        to->entropy[h] = all.entropy;
        to->queries[h] = (double)all.queries;
    }
}
