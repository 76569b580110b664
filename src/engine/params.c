/* params.c -- creates, initializes and finds parameters; allocates gradients and optimizer
 * state. */
#include "engine/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/large_pages.h"

void params_init(params *p, uint64_t seed) {
    *p = (params){.random = rng_create(seed)};
}

static void param_free(param *x, bool grad) {
    if (!x) return;
    free(x->t.value);
    if (grad) free(x->t.grad);
    free(x->slot[0]);
    free(x->slot[1]);
    free(x);
}

void params_free(params *p) {
    for (int i = 0; i < p->count; i++) param_free(p->item[i], !p->block);
    free(p->item);
    free(p->block);
    *p = (params){0};
}

/* 64-byte aligned and zeroed. */
static real *numbers(int64_t count) {
    size_t bytes = ((size_t)count * sizeof(real) + 63) / 64 * 64;
    real *x = large_pages_alloc(bytes);
    if (x) memset(x, 0, bytes);
    return x;
}

static void fill(real *x, int64_t count, init_kind kind, double a, rng r) {
    for (int64_t i = 0; i < count; i++) {
        switch (kind) {
        case INIT_CONSTANT:
            x[i] = (real)a;
            break;
        case INIT_UNIFORM:
            x[i] = (real)(a * (2 * rng_uniform(&r) - 1));
            break;
        case INIT_NORMAL:
            x[i] = (real)(a * rng_normal(&r));
            break;
        }
    }
}

static param *param_create(const char *name, int rank, const int64_t *dim) {
    param *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    snprintf(x->name, sizeof x->name, "%s", name);
    x->t = (tensor){
        .rank = rank, .dim = {1, 1, 1, 1}, .count = 1, .wants_grad = true, .has_grad = true};
    for (int i = 0; i < rank; i++) x->t.count *= x->t.dim[i] = dim[i];
    x->t.value = numbers(x->t.count);
    x->t.grad = numbers(x->t.count);
    if (x->t.value && x->t.grad) return x;
    param_free(x, true);
    return NULL;
}

/* Checks the number of values before allocating memory. */
static bool check_count(params *p, const char *name, int rank, const int64_t *dim) {
    int64_t count = 1, total;
    bool fits = true;
    for (int i = 0; i < rank; i++)
        fits = fits && dim[i] > 0 && !__builtin_mul_overflow(count, dim[i], &count);
    fits = fits && !__builtin_add_overflow(p->total, count, &total);
    if (!fits) sr_fail(&p->failure, SR_USAGE, "parameter %s has no numbers, or too many", name);
    if (fits && p->most && total > p->most)
        fits = sr_fail(&p->failure, SR_FORMAT,
                       "up to parameter %s the model has %lld numbers, the file %lld", name,
                       (long long)total, (long long)p->most) == SR_OK;
    if (fits) p->total = total;
    return fits;
}

tensor *params_add(params *p, const char *name, int rank, const int64_t *dim, init_kind kind,
                   double a) {
    if (p->failure.status != SR_OK) return NULL;
    if (strlen(name) >= PARAM_NAME || params_find(p, name)) {
        sr_fail(&p->failure, SR_USAGE, "parameter name %s is too long or taken", name);
        return NULL;
    }
    if (!check_count(p, name, rank, dim)) return NULL;
    param *x = NULL;
    if (vector_reserve(&p->item, &p->capacity, p->count + 1, sizeof *p->item))
        x = param_create(name, rank, dim);
    if (!x) {
        sr_fail(&p->failure, SR_MEMORY, "out of memory for parameter %s", name);
        return NULL;
    }
    if (!p->most) fill(x->t.value, x->t.count, kind, a, rng_split(&p->random, (uint64_t)p->count));
    p->item[p->count++] = x;
    return &x->t;
}

tensor *params_add_part(params *p, const char *owner, const char *part, int rank,
                        const int64_t *dim, init_kind kind, double a) {
    char name[2 * PARAM_NAME];
    snprintf(name, sizeof name, "%s.%s", owner, part);
    return params_add(p, name, rank, dim, kind, a);
}

param *params_find(const params *p, const char *name) {
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->item[i]->name, name)) return p->item[i];
    return NULL;
}

int64_t params_total(const params *p) {
    int64_t sum = 0;
    for (int i = 0; i < p->count; i++) sum += p->item[i]->t.count;
    return sum;
}

static void zero_grad(tensor *x) {
    memset(x->grad, 0, (size_t)x->count * sizeof *x->grad);
    x->has_grad = true;
}

void params_zero_grad(params *p) {
    if (p->block) memset(p->block, 0, (size_t)(p->blocks * p->block_length) * sizeof *p->block);
    for (int i = 0; i < p->count && !p->block; i++) zero_grad(&p->item[i]->t);
}

/* With blocks, has_grad is known for the block in use only, so all blocks are cleared. */
void params_invalidate_grad(params *p) {
    if (p->block) params_zero_grad(p);
    for (int i = 0; i < p->count && !p->block; i++) p->item[i]->t.has_grad = false;
}

void params_finalize_grad(params *p) {
    for (int i = 0; i < p->count; i++)
        if (!p->item[i]->t.has_grad) zero_grad(&p->item[i]->t);
}

/* -- gradients in one block */

/* Count of a parameter rounded up to whole cache lines. */
static int64_t padded_count(const param *x) {
    const int64_t line = 64 / (int64_t)sizeof(real);
    return (x->t.count + line - 1) / line * line;
}

sr_status params_blocks(params *p, int blocks, sr_failure *why) {
    int64_t length = 0;
    for (int i = 0; i < p->count; i++) length += padded_count(p->item[i]);
    real *block = numbers(blocks * length);
    if (!block) return sr_fail(why, SR_MEMORY, "out of memory for %d gradients", blocks);
    for (int i = 0; i < p->count; i++)
        if (!p->block) free(p->item[i]->t.grad);
    free(p->block);
    p->block = block;
    p->blocks = blocks;
    p->block_length = length;
    params_use_block(p, 0);
    return SR_OK;
}

real *params_block(const params *p, int block) {
    return p->block + block * p->block_length;
}

void params_use_block(params *p, int block) {
    real *at = params_block(p, block);
    for (int i = 0; i < p->count; at += padded_count(p->item[i++])) p->item[i]->t.grad = at;
}

sr_status params_slots(params *p, int count, sr_failure *why) {
    for (int i = 0; i < p->count; i++) {
        for (int s = 0; s < count; s++) {
            param *x = p->item[i];
            if (!x->slot[s]) x->slot[s] = numbers(x->t.count);
            if (!x->slot[s])
                return sr_fail(why, SR_MEMORY, "out of memory for the optimizer state of %s",
                               x->name);
        }
    }
    return SR_OK;
}
