/* task_trees.c -- dependency parsing (docs/models.md 8). The loss is cross entropy over the static
 * oracle's transitions, legal or not. Metrics are attachment scores of greedy parsing with legal
 * transitions, trees that are not projective included.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "task/parse_split.h"
#include "task/task_rows.h"

enum { UAS, LAS, UAS_NOPUNCT, LAS_NOPUNCT };

static tensor *trees_loss(const task_options *o, const pass *p, tensor *output, task_sums *sum) {
    return task_cross_entropy(o, &task_trees, p, output, p->batch->label, -1, -1, sum);
}

static void trees_describe(const task_result *r, char text[TASK_TEXT]) {
    double value[TASK_METRICS];
    task_measure_cross_entropy(r->sum, value);
    snprintf(
        text, TASK_TEXT,
        "%s accuracy: %.2f %% of %lld transitions of projective sentences (running statistics)",
        r->split, value[METRIC_ACCURACY], (long long)r->sum->tokens);
}

static int trees_arrays(const batch *b, task_array array[TASK_ARRAYS]) {
    array[0] = (task_array){"feature", {NPZ_INT32, 2, {b->count, b->features}, (void *)b->feature}};
    array[1] = (task_array){"label", {NPZ_INT32, 1, {b->count}, (void *)b->label}};
    return 2;
}

/* -- parsing */

/* The label as in a file. */
static const char *label_text(const parsed_split *p, int64_t i) {
    return p->of.labels ? vocab_word(p->of.labels, TOKEN_FIRST_WORD + p->label[i]) : NULL;
}

static attachments count_arcs(const parsed_split *p) {
    attachments sum = {0};
    for (int64_t i = 0; i < p->words; i++) {
        const char *text = label_text(p, i);
        int32_t size = 0;
        while (text && text[size]) size++;
        const tree_field label = {text ? text : "_", text ? size : 1};
        attachment_count(&sum, &p->of.rules, &p->of.bank->word[p->first_word + i], p->head[i],
                         &label);
    }
    return sum;
}

static sr_status trees_decode(const task_decoding *d, double *value, char text[TASK_DECODED],
                              bool *stopped, sr_failure *why) {
    parsed_split p;
    const sr_status status = parse_split(d, &p, stopped, why);
    if (status != SR_OK || *stopped) return status;
    const attachments sum = count_arcs(&p);
    value[UAS] = attachment_percent(sum.all.head, sum.all.words);
    value[UAS_NOPUNCT] = attachment_percent(sum.plain.head, sum.plain.words);
    value[LAS] = p.of.labels ? attachment_percent(sum.all.both, sum.all.words) : NAN;
    value[LAS_NOPUNCT] = p.of.labels ? attachment_percent(sum.plain.both, sum.plain.words) : NAN;
    char labels[TASK_DECODED / 2] = "no labels";
    if (p.of.labels)
        snprintf(labels, sizeof labels, "LAS %.2f %%, without punctuation %.2f %%; labels %s",
                 value[LAS], value[LAS_NOPUNCT], tree_subtypes_text(p.of.rules.subtypes));
    snprintf(text, TASK_DECODED,
             "UAS %.2f %% of %lld words, without punctuation %.2f %% of %lld; %s; punctuation %s",
             value[UAS], (long long)sum.all.words, value[UAS_NOPUNCT], (long long)sum.plain.words,
             labels, tree_punctuation_text(p.of.rules.punctuation));
    parsed_split_free(&p);
    return SR_OK;
}

/* Writes the sentences of their file with other trees. */
static sr_status write_trees(const parsed_split *p, FILE *to, sr_failure *why) {
    const char **label = malloc((size_t)p->words * sizeof *label);
    bool written = label != NULL;
    if (!label) return sr_fail(why, SR_MEMORY, "out of memory for labels");
    for (int64_t i = 0; i < p->words; i++) label[i] = label_text(p, i);
    for (int64_t i = p->of.first; i < p->of.first + p->of.count && written; i++) {
        const int64_t at = p->of.bank->start[i] - p->first_word;
        written = treebank_write(p->of.bank, i, p->head + at, label + at, to);
    }
    free(label);
    return written ? SR_OK : sr_fail(why, SR_IO, "the trees could not be written");
}

static sr_status trees_predict(const task_decoding *d, FILE *to, sr_failure *why) {
    parsed_split p;
    bool stopped;
    sr_status status = parse_split(d, &p, &stopped, why);
    if (status == SR_OK && stopped) return sr_fail(why, SR_STATE, "stopped by a signal");
    if (status != SR_OK) return status;
    status = write_trees(&p, to, why);
    parsed_split_free(&p);
    return status;
}

const task_row task_trees = {
    .id = TASK_TREES,
    .name = "trees",
    .takes = "dependency trees",
    .summary = "the transitions of a dependency parser, cross entropy; then greedy parsing",
    .text = true,
    .metric = {CROSS_ENTROPY_METRICS("transition"),
               {"uas", "percent", "words with the right head, all of the parsed trees", BETTER_MORE,
                .decoded = true},
               {"las", "percent", "words with the right head and label", BETTER_MORE,
                .decoded = true},
               {"uas_nopunct", "percent",
                "words with the right head, of those that the rule of --punctuation does not take "
                "for punctuation",
                BETTER_MORE, .decoded = true},
               {"las_nopunct", "percent", "the same with the right label too", BETTER_MORE,
                .decoded = true}},
    .leading = METRIC_ACCURACY + 1 + UAS_NOPUNCT,
    .example =
        {.task = TASK_TREES, .vocabulary = 64, .pos_tags = 16, .arc_labels = 12, .classes = 17},
    .loss = trees_loss,
    .measure = task_measure_cross_entropy,
    .describe = trees_describe,
    .arrays = trees_arrays,
    .decode = trees_decode,
    .predict = trees_predict,
};
