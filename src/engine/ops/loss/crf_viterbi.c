/* crf_viterbi.c -- the best path of a linear-chain conditional random field (docs/models.md 5).
 *
 * In double. The score is the one of op_crf.c with e = log-softmax(logits), and -10000 for every
 * transition that `allowed` forbids, including start and end.
 *
 *   v_1[k] = start[k] + e_1[k]      v_t[k] = e_t[k] + max_j (v_(t-1)[j] + trans[j, k])
 *
 * Ties: the lowest tag. A path contains a forbidden transition only when no other path exists, or
 * when others score 10000 less. */
#include <math.h>
#include <omp.h>

#include "engine/ops/loss/crf_shape.h"
#include "engine/ops/loss/loss_ops.h"
#include "engine/row_math.h"

static const double FORBIDDEN = -10000;

/* Transition scores with the penalty of forbidden ones; rows are from, columns to. */
typedef struct steps {
    int64_t K;
    double *trans, *start, *end; /* [K, K], [K], [K] */
} steps;

static double step(real value, const uint8_t *allowed, int64_t at) {
    return (double)value + (allowed && !allowed[at] ? FORBIDDEN : 0);
}

static bool steps_create(tape *t, const crf_inputs *in, const uint8_t *allowed, steps *s) {
    const int64_t K = in->start->count, side = K + 2;
    double *all = tape_alloc(t, (size_t)(K * K + 2 * K) * sizeof *all);
    if (!all) return false;
    *s = (steps){K, all, all + K * K, all + K * K + K};
    for (int64_t j = 0; j < K; j++) {
        s->start[j] = step(in->start->value[j], allowed, K * side + j);
        s->end[j] = step(in->end->value[j], allowed, j * side + K + 1);
        for (int64_t k = 0; k < K; k++)
            s->trans[j * K + k] = step(in->trans->value[j * K + k], allowed, j * side + k);
    }
    return true;
}

/* Scratch memory of one sentence. */
typedef struct lattice {
    double *v, *next;  /* [K] */
    int32_t *from;     /* [T, K], by word: the best previous tag */
    int64_t *position; /* [T] */
} lattice;

/* Returns the best tag before k; *best = v[tag] + trans[tag, k]. */
static int32_t best_before(const steps *s, const double *v, int64_t k, double *best) {
    int32_t from = 0;
    *best = v[0] + s->trans[k];
    for (int64_t j = 1; j < s->K; j++) {
        const double x = v[j] + s->trans[j * s->K + k];
        if (x > *best) *best = x, from = (int32_t)j;
    }
    return from;
}

/* Computes v of the next word, after w words. */
static void advance(const steps *s, lattice *l, int64_t w, const real *logits) {
    const real m = row_max(s->K, logits);
    const double log_sum = (double)m + log(row_exp_sum(s->K, logits, m));
    for (int64_t k = 0; k < s->K; k++) {
        double before = s->start[k];
        if (w > 0) l->from[w * s->K + k] = best_before(s, l->v, k, &before);
        l->next[k] = (double)logits[k] - log_sum + before;
    }
    double *held = l->v;
    l->v = l->next, l->next = held;
}

static double best_path(const steps *s, lattice *l, int64_t T, const real *logits,
                        const uint8_t *mask, int32_t *path) {
    int64_t L = 0;
    for (int64_t i = 0; i < T; i++) {
        path[i] = 0;
        if (mask && !mask[i]) continue;
        advance(s, l, L, logits + i * s->K);
        l->position[L++] = i;
    }
    if (!L) return 0;
    int32_t tag = 0;
    for (int64_t k = 0; k < s->K; k++) {
        l->v[k] += s->end[k];
        if (l->v[k] > l->v[tag]) tag = (int32_t)k;
    }
    const double score = l->v[tag];
    for (int64_t w = L - 1; w >= 0; w--) {
        path[l->position[w]] = tag;
        if (w > 0) tag = l->from[w * s->K + tag];
    }
    return score;
}

/* One lattice per thread. */
static lattice *lattices_create(tape *t, int64_t T, int64_t K) {
    const int64_t n = t->threads;
    lattice *all = tape_alloc(t, (size_t)n * sizeof *all);
    double *v = all ? tape_alloc(t, (size_t)(n * 2 * K) * sizeof *v) : NULL;
    int32_t *from = v ? tape_alloc(t, (size_t)(n * T * K) * sizeof *from) : NULL;
    int64_t *position = from ? tape_alloc(t, (size_t)(n * T) * sizeof *position) : NULL;
    for (int64_t i = 0; position && i < n; i++)
        all[i] = (lattice){v + i * 2 * K, v + (i * 2 + 1) * K, from + i * T * K, position + i * T};
    return position ? all : NULL;
}

bool crf_viterbi(tape *t, const crf_inputs *in, const uint8_t *mask, const uint8_t *allowed,
                 int32_t *path, double *score) {
    if (!crf_fits(t, in)) return false;
    const int64_t B = in->logits->dim[0], T = in->logits->dim[1], K = in->logits->dim[2];
    steps s;
    lattice *all = steps_create(t, in, allowed, &s) ? lattices_create(t, T, K) : NULL;
    if (!all) return false;
#pragma omp parallel for num_threads(t->threads) schedule(static)
    for (int64_t b = 0; b < B; b++) {
        const double best =
            best_path(&s, &all[omp_get_thread_num()], T, in->logits->value + b * T * K,
                      mask ? mask + b * T : NULL, path + b * T);
        if (score) score[b] = best;
    }
    return true;
}
