/* task_lm.c -- running text: the next token of every position of a window, cross entropy over all
 * of them, with <eos> and <unk> (docs/models.md 3.2). Perplexity is exp of the unsmoothed nll.
 *
 * A model with gives_nll has no logits: its accuracy is NaN. Bits per byte, bpc, is nll / ln 2
 * if tokens are bytes (docs/models.md 4). It is NaN for words, whose lengths differ.
 */
#include <math.h>
#include <stdio.h>

#include "task/task_rows.h"

enum { METRIC_BPC = METRIC_ACCURACY + 1, COUNT_BYTES = 0 };

static tensor *lm_loss(const task_options *o, const pass *p, tensor *output, task_sums *sum) {
    tensor *loss = task_cross_entropy(o, &task_lm, p, output, p->batch->target_out, -1,
                                      p->batch->unknown, sum);
    sum->count[COUNT_BYTES] = p->batch->bytes ? sum->tokens : 0;
    return loss;
}

static tensor *lm_loss_of_nll(const pass *p, tensor *nll, task_sums *sum) {
    const batch *b = p->batch;
    tensor *loss = task_sum_nll(p, nll, sum);
    for (int64_t i = 0; loss && i < nll->count; i++) sum->unknown += b->target_out[i] == b->unknown;
    sum->count[COUNT_BYTES] = b->bytes ? sum->tokens : 0;
    return loss;
}

static void lm_measure(const task_sums *sum, double *value) {
    const double bytes = (double)sum->count[COUNT_BYTES];
    task_measure_cross_entropy(sum, value);
    value[METRIC_BPC] = bytes > 0 ? sum->nll / log(2) / bytes : NAN;
}

static void lm_describe(const task_result *r, char text[TASK_TEXT]) {
    double value[TASK_METRICS];
    lm_measure(r->sum, value);
    if (r->sum->count[COUNT_BYTES] > 0) {
        snprintf(
            text, TASK_TEXT,
            "%s bpc: %.5f bits per byte (%lld bytes, perplexity %.6g, %.2f %% are <unk>; %lld left "
            "out by the windows; %s%srunning statistics)",
            r->split, value[METRIC_BPC], (long long)r->sum->tokens, value[METRIC_PPL],
            100 * (double)r->sum->unknown / (double)r->sum->tokens, (long long)r->left_out,
            r->condition, *r->condition ? "; " : "");
        return;
    }
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
    .metric = {CROSS_ENTROPY_METRICS("token"),
               {"bpc", "bits per byte", "nll to the base 2 where tokens are bytes", BETTER_LESS}},
    .counts = 1,
    .leading = METRIC_PPL,
    .example = {.task = TASK_LM, .vocabulary = 64, .longest = 8},
    .loss = lm_loss,
    .loss_of_nll = lm_loss_of_nll,
    .measure = lm_measure,
    .describe = lm_describe,
    .arrays = lm_arrays,
};
