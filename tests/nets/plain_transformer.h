/* plain_transformer.h -- a transformer's formulas in plain loops in double (docs/models.md 2.3,
 * 2.9). Takes one sentence without padding and the parameters of a model of these sizes. */
#ifndef TESTS_NETS_PLAIN_TRANSFORMER_H
#define TESTS_NETS_PLAIN_TRANSFORMER_H

#include "nets/models.h"

enum { D = 12, FFN = 10, HEADS = 3, DH = D / HEADS, LAYERS = 3, WORDS = 15, LONGEST = 7 };

typedef struct plain {
    const model *m;
    const char *placement;
} plain;

/* Returns zeros. The caller frees all returned arrays. */
double *plain_numbers(int64_t count);
double *plain_linear(const plain *p, const char *name, int64_t n, int64_t in, int64_t out,
                     const double *x);
/* Returns the output of a side's embedding, layers and final norm, [n, D]. memory [keys, D]: for a
 * decoder, else NULL. pad: number of <pad>, -1: none. */
double *plain_stack(const plain *p, const char *side, const int32_t *token, int64_t n, int pad,
                    bool causal, const double *memory, int64_t keys);
/* logits [n, WORDS]. */
void plain_logits(const plain *p, int64_t n, const double *x, double *logits);

#endif
