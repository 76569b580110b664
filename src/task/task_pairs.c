/* task_pairs.c -- sentence pairs: label-smoothed cross entropy over the target's tokens, </s> and
 * <unk> counted (docs/models.md 2.5). */
#include <stdio.h>

#include "task/task_rows.h"
#include "task/translator.h"

static tensor *pairs_loss(const task_options *o, const pass *p, tensor *output, task_sums *sum) {
    return task_cross_entropy(o, &task_pairs, p, output, p->batch->target_out, TOKEN_PAD, TOKEN_UNK,
                              sum);
}

static void pairs_describe(const task_result *r, char text[TASK_TEXT]) {
    const task_sums *sum = r->sum;
    double value[TASK_METRICS];
    task_measure_cross_entropy(sum, value);
    const double ppl = value[METRIC_PPL];
    snprintf(text, TASK_TEXT,
             "%s perplexity: %.*g per target token (%lld tokens, </s> and <unk> counted, %.2f %% "
             "are <unk>; running statistics)",
             r->split, ppl < 1e6 ? 6 : 3, ppl, (long long)sum->tokens,
             100 * (double)sum->unknown / (double)sum->tokens);
}

static int pairs_arrays(const batch *b, task_array array[TASK_ARRAYS]) {
    const int64_t n = b->count, s = b->source_length, t = b->target_length;
    array[0] = (task_array){"source", {NPZ_INT32, 2, {n, s}, (void *)b->source}};
    array[1] = (task_array){"source_mask", {NPZ_UINT8, 2, {n, s}, (void *)b->source_mask}};
    array[2] = (task_array){"target_in", {NPZ_INT32, 2, {n, t}, (void *)b->target_in}};
    array[3] = (task_array){"target_out", {NPZ_INT32, 2, {n, t}, (void *)b->target_out}};
    array[4] = (task_array){"target_mask", {NPZ_UINT8, 2, {n, t}, (void *)b->target_mask}};
    return 5;
}

static translator translator_for(const task_decoding *d) {
    translator t = {.model = d->model, .codec = data_codec(d->data)};
    t.options = translate_options_default();
    t.options.beam.beam = d->options->beam;
    t.options.beam.best = 1;
    const int64_t longest = 1024 + t.options.beam.beam * (beam_longest(&t.options.beam, 1024) + 1);
    if (t.options.max_tokens < longest) t.options.max_tokens = longest;
    t.options.threads = d->tape->threads;
    t.options.stop = d->stop, t.options.context = d->context;
    return t;
}

static sr_status pairs_decode(const task_decoding *d, double *value, char text[TASK_DECODED],
                              bool *stopped, sr_failure *why) {
    const bleu_form form = BLEU_MULTI_FORM;
    const translator t = translator_for(d);
    char line[TASK_DECODED / 2 - 1], signature[TASK_DECODED / 2 - 1];
    bleu_scorer *s = translator_bleu(&t, d->data, d->split, &form, why);
    *stopped = !s && why->status == SR_OK;
    if (!s) return why->status;
    const bleu_counts sum = bleu_sum(s);
    value[0] = bleu_compute(&form, &sum).bleu;
    bleu_print_multi(&sum, line, sizeof line);
    bleu_signature(s, NULL, signature, sizeof signature);
    snprintf(text, TASK_DECODED, "%s %s", line, signature);
    bleu_free(s);
    return SR_OK;
}

const task_row task_pairs = {
    .id = TASK_PAIRS,
    .name = "pairs",
    .takes = "sentence pairs",
    .summary = "target sentences given their sources, label-smoothed cross entropy",
    .text = true,
    .label_smoothing = 0.1,
    .metric = {CROSS_ENTROPY_METRICS("token"),
               {"bleu", "BLEU",
                "BLEU of multi-bleu's form: words as in the training text, subwords joined",
                BETTER_MORE, .decoded = true}},
    .leading = METRIC_PPL,
    .example = {.task = TASK_PAIRS, .vocabulary = 64, .longest = 64},
    .loss = pairs_loss,
    .measure = task_measure_cross_entropy,
    .describe = pairs_describe,
    .arrays = pairs_arrays,
    .decode = pairs_decode,
    .decode_asked = true,
};
