/* task_lm.c -- running text: the next token of every position of a window, cross entropy over all of
 * them, <eos> and <unk> counted (docs/models.md 3.2). Perplexity is that of the plain nll, tokens of
 * all windows alike.
 *
 * A model with gives_nll has no logits: its accuracy is NaN.
 */
#include <math.h>
#include <stdio.h>

#include "task_rows.h"

static tensor *lm_loss(const task_options *o, const pass *p, tensor *output, task_sums *sum) {
    return task_cross_entropy(o, &task_lm, p, output, p->batch->target_out, -1, p->batch->unknown,
                              sum);
}

static tensor *lm_loss_of_nll(const pass *p, tensor *nll, task_sums *sum) {
    const batch *b = p->batch;
    tensor *loss = op_sum(p->tape, nll);
    if (!loss) return NULL;
    *sum = (task_sums){.tokens = nll->count, .correct = -1};
    for (int64_t i = 0; i < nll->count; i++) {
        sum->nll += (double)nll->value[i];
        sum->unknown += b->target_out[i] == b->unknown;
    }
    sum->loss = sum->nll;
    return loss;
}

static void lm_describe(const task_result *r, char text[TASK_TEXT]) {
    double value[TASK_METRICS];
    task_measure_cross_entropy(r->sum, value);
    const double ppl = value[METRIC_PPL], tokens = (double)r->sum->tokens;
    snprintf(text, TASK_TEXT,
             "%s perplexity: %.*g per token (%lld tokens, <eos> and <unk> counted, %.2f %% are "
             "<unk>; %lld left out by the windows; %s%srunning statistics)",
             r->split, ppl < 1e6 ? 6 : 3, ppl, (long long)r->sum->tokens,
             100 * (double)r->sum->unknown / tokens, (long long)r->left_out, r->condition,
             *r->condition ? "; " : "");
}

static int lm_arrays(const batch *b, task_array array[TASK_ARRAYS]) {
    const int64_t n = b->count, t = b->target_length;
    array[0] = (task_array){"target_in", {NPZ_INT32, 2, {n, t}, (void *)b->target_in}};
    array[1] = (task_array){"target_out", {NPZ_INT32, 2, {n, t}, (void *)b->target_out}};
    return 2;
}

const task_row task_lm = {
    .id = TASK_LM,
    .name = "text",
    .takes = "running text",
    .summary = "the next token of running text, cross entropy",
    .text = true,
    .metric = {CROSS_ENTROPY_METRICS("token")},
    .leading = METRIC_PPL,
    .example = {.task = TASK_LM, .vocabulary = 64, .longest = 8},
    .loss = lm_loss,
    .loss_of_nll = lm_loss_of_nll,
    .measure = task_measure_cross_entropy,
    .describe = lm_describe,
    .arrays = lm_arrays,
};
