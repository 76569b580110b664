/* task_sentences.c -- a class for every sentence: mean softmax cross entropy and accuracy
 * (docs/models.md 6). */
#include <stdio.h>

#include "task/task_rows.h"

static tensor *sentences_loss(const task_options *o, const pass *p, tensor *output,
                              task_sums *sum) {
    return task_cross_entropy(o, &task_sentences, p, output, p->batch->label, -1, -1, sum);
}

static void sentences_describe(const task_result *r, char text[TASK_TEXT]) {
    double value[TASK_METRICS];
    task_measure_cross_entropy(r->sum, value);
    snprintf(text, TASK_TEXT, "%s accuracy: %.2f %% of %lld sentences (running statistics)",
             r->split, value[METRIC_ACCURACY], (long long)r->sum->tokens);
}

static int sentences_arrays(const batch *b, task_array array[TASK_ARRAYS]) {
    const int64_t n = b->count, s = b->source_length;
    array[0] = (task_array){"source", {NPZ_INT32, 2, {n, s}, (void *)b->source}};
    array[1] = (task_array){"source_mask", {NPZ_UINT8, 2, {n, s}, (void *)b->source_mask}};
    array[2] = (task_array){"label", {NPZ_INT32, 1, {n}, (void *)b->label}};
    return 3;
}

const task_row task_sentences = {
    .id = TASK_SENTENCES,
    .name = "sentences",
    .takes = "classified sentences",
    .summary = "one class per sentence, cross entropy",
    .text = true,
    .metric = {CROSS_ENTROPY_METRICS("sentence")},
    .leading = METRIC_ACCURACY,
    .example = {.task = TASK_SENTENCES, .vocabulary = 64, .longest = 64, .classes = 5},
    .loss = sentences_loss,
    .measure = task_measure_cross_entropy,
    .describe = sentences_describe,
    .arrays = sentences_arrays,
};
