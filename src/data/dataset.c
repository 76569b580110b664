/* dataset.c -- the last step of opening a data set: its shape, and its numbers in the description.
 */
#include "data/dataset.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double dataset_share(double given, double otherwise) {
    return isnan(given) ? otherwise : given;
}

int64_t data_left_out(const dataset *d, data_split split, int64_t *tokens) {
    const running_split *p = &d->running.split[split];
    *tokens = p->tokens;
    return p->tokens - p->batches * p->pieces * p->window;
}

/* Why records of a split are left out, and how many. */
typedef struct left_out {
    const char *unit, *reason[2];
    int64_t kept, count[2];
} left_out;

static left_out left_out_of(const dataset *d, data_split split) {
    const pair_split *pairs = &d->pairs.split[split];
    const tree_split *trees = &d->trees.split[split];
    const sentence_split *sentences = &d->sentences.split[split];
    switch (d->shape.task) {
    case TASK_PAIRS:
        return (left_out){"pairs",
                          {"with an empty side", "too long"},
                          pairs->count,
                          {pairs->dropped_empty, pairs->dropped_long}};
    case TASK_TREES:
        return (left_out){"sentences have transitions, which the loss counts",
                          {"not projective", "with a label that training lacks"},
                          trees->keeps,
                          {trees->crossing, trees->unlabelled}};
    case TASK_SENTENCES:
    case TASK_TAGS:
        return (left_out){"sentences", {"without a word"}, sentences->count, {sentences->empty}};
    default:
        return (left_out){0};
    }
}

void data_coverage(const dataset *d, data_split split, char text[DATA_COVERAGE]) {
    const left_out l = left_out_of(d, split);
    const int64_t out = l.count[0] + l.count[1];
    *text = 0;
    if (!out) return;
    int used = snprintf(text, DATA_COVERAGE, "%lld of %lld %s (left out: ", (long long)l.kept,
                        (long long)(l.kept + out), l.unit);
    for (int i = 0; i < 2; i++)
        if (l.count[i])
            used += snprintf(text + used, DATA_COVERAGE - (size_t)used, "%s%lld %s",
                             i && l.count[0] ? ", " : "", (long long)l.count[i], l.reason[i]);
    snprintf(text + used, DATA_COVERAGE - (size_t)used, ")");
}

int64_t data_tokens(const dataset *d, data_split split) {
    const running_split *text = &d->running.split[split];
    switch (d->shape.task) { /* unreached: a value that is no task */
    case TASK_IMAGES:
        return d->images.split[split].count;
    case TASK_PAIRS:
        return d->pairs.split[split].tokens;
    case TASK_LM:
        return text->batches * text->pieces * text->window;
    case TASK_SENTENCES:
    case TASK_TAGS:
        return d->sentences.split[split].words;
    case TASK_TREES:
        return d->trees.split[split].words;
    }
    return 0;
}

int64_t data_sequences(const dataset *d, data_split split) {
    return d->running.split[split].pieces;
}

sr_status dataset_finish_images(dataset *d, sr_failure *why) {
    const image_size *size = &d->images.size;
    sr_status status = image_set_finish(&d->images, why);
    d->shape = (data_shape){.task = TASK_IMAGES,
                            .height = size->height,
                            .width = size->width,
                            .channels = size->channels,
                            .classes = size->classes};
    if (status == SR_OK) {
        const image_split *p = d->images.split;
        dataset_note(d, "; %lld training and %lld validation images, ",
                     (long long)p[SPLIT_TRAIN].count, (long long)p[SPLIT_VALID].count);
        if (p[SPLIT_TEST].count > 0)
            dataset_note(d, "%lld test images", (long long)p[SPLIT_TEST].count);
        else
            dataset_note(d, "no test split");
        dataset_note(d, "; training mean");
        for (int c = 0; c < size->channels; c++) dataset_note(d, " %.4f", d->images.mean[c]);
        dataset_note(d, "; standard deviation");
        for (int c = 0; c < size->channels; c++) dataset_note(d, " %.4f", d->images.deviation[c]);
    }
    return status;
}

static void note_split(dataset *d, int split) {
    const pair_split *p = &d->pairs.split[split];
    if (p->count == 0) return;
    dataset_note(d, "; %s %lld pairs, %lld target tokens, %.2f %% <unk>",
                 dataset_split_titles[split], (long long)p->count, (long long)p->tokens,
                 100 * ((double)p->unknown[SIDE_TARGET] / (double)p->tokens));
    if (p->unknown[SIDE_SOURCE])
        dataset_note(d, ", %.2f %% of the source words",
                     100 * (double)p->unknown[SIDE_SOURCE] /
                         (double)p->side[SIDE_SOURCE].first[p->count]);
    if (p->dropped_empty || p->dropped_long)
        dataset_note(d, " (dropped: %lld with an empty side, %lld too long)",
                     (long long)p->dropped_empty, (long long)p->dropped_long);
}

static void note_dictionary(dataset *d, data_side side, const char *name) {
    const vocab *v = d->pairs.dictionary[side];
    dataset_note(d, "; %s%s %lld (%lld words)", name,
                 d->pairs.dictionary_read[side] ? " as given," : "", (long long)vocab_size(v),
                 (long long)vocab_words(v));
}

void dataset_finish_pairs(dataset *d) {
    const pair_set *s = &d->pairs;
    d->shape =
        (data_shape){.task = TASK_PAIRS,
                     .vocabulary = vocab_size(s->dictionary[SIDE_SOURCE]),
                     .target_vocabulary = s->separate ? vocab_size(s->dictionary[SIDE_TARGET]) : 0,
                     .longest = s->longest};
    note_dictionary(d, SIDE_SOURCE, s->separate ? "source dictionary" : "dictionary");
    if (s->separate) note_dictionary(d, SIDE_TARGET, "target dictionary");
    for (int i = 0; i < s->steps; i++) dataset_note(d, "; lines through %s", s->step[i].name);
    for (int i = 0; i < PAIR_SPLITS; i++) note_split(d, i);
    /* The fill of batches decides which statistics are comparable. */
    const batch_plan *plan = &s->split[SPLIT_TRAIN].plan;
    int64_t words, positions;
    pair_set_fill(&s->split[SPLIT_TRAIN], &words, &positions);
    if (plan->count > 0)
        dataset_note(d, "; %lld training batches of %lld source words on average, %.1f %% padding",
                     (long long)plan->count, (long long)(words / plan->count),
                     100 * (1 - (double)words / (double)positions));
    if (s->shuffle_sources) dataset_note(d, "; sources shuffled among the pairs of each split");
}

sr_status dataset_open_pairs(dataset *d, const data_options *o, pair_reader *read,
                             sr_failure *why) {
    pair_text text[PAIR_SPLITS] = {0};
    sr_status status = pair_set_create(&d->pairs, o, why);
    if (status == SR_OK) status = pair_set_prepare(&d->pairs, o, why);
    if (status == SR_OK) status = read(d, o, text, why);
    if (status == SR_OK) status = pair_set_build(&d->pairs, text, why);
    for (int i = 0; i < PAIR_SPLITS; i++) pair_text_free(&text[i]);
    if (status == SR_OK) dataset_finish_pairs(d);
    return status;
}

/* Reports tokens outside the windows, too. */
static void note_running(dataset *d, data_split split) {
    const running_split *p = &d->running.split[split];
    int64_t tokens;
    if (p->tokens == 0) return;
    const int64_t left = data_left_out(d, split, &tokens);
    const char *unit = d->running.bytes ? "bytes" : "tokens";
    dataset_note(d, "; %s ", dataset_split_titles[split]);
    if (!d->running.bytes) dataset_note(d, "%lld lines, ", (long long)p->lines);
    dataset_note(d,
                 "%lld %s, %.2f %% <unk>, %lld sequences, %lld windows of each, %lld %s left out",
                 (long long)tokens, unit, 100 * (double)p->unknown / (double)tokens,
                 (long long)p->pieces, (long long)p->batches, (long long)left, unit);
}

void dataset_finish_running(dataset *d) {
    const running_set *s = &d->running;
    const int64_t window = s->split[SPLIT_TRAIN].window, eval = s->split[SPLIT_VALID].window;
    d->shape = (data_shape){.task = TASK_LM,
                            .vocabulary = vocab_size(s->words),
                            .longest = window > eval ? window : eval};
    dataset_note(d, s->bytes ? "; %lld symbols" : "; dictionary %lld with <eos>",
                 (long long)d->shape.vocabulary);
    dataset_note(d, "; windows of %lld %s", (long long)window, s->bytes ? "bytes" : "tokens");
    if (eval != window) dataset_note(d, ", in evaluation of %lld", (long long)eval);
    if (!s->eos_of_empty) dataset_note(d, "; no <eos> of empty lines");
    for (int i = 0; i < RUNNING_SPLITS; i++) note_running(d, (data_split)i);
}

static void note_sentences(dataset *d, int split) {
    const sentence_split *p = &d->sentences.split[split];
    if (p->count == 0) return;
    dataset_note(d, "; %s %lld sentences, %lld words, %.2f %% <unk>", dataset_split_titles[split],
                 (long long)p->count, (long long)p->words,
                 100 * (double)p->unknown / (double)p->words);
    if (p->empty) dataset_note(d, " (%lld without a word left out)", (long long)p->empty);
    const bool padded = d->sentences.max_length == d->sentences.pad_to;
    if (p->cut)
        dataset_note(d, " (%lld cut to %s)", (long long)p->cut, padded ? "pad-to" : "max-length");
}

void dataset_finish_sentences(dataset *d, int64_t classes) {
    sentence_set *s = &d->sentences;
    const int64_t batches = sentence_set_batches(s, SPLIT_TRAIN);
    int64_t words, positions;
    d->shape = (data_shape){.task = s->task,
                            .classes = classes,
                            .vocabulary = vocab_size(s->dictionary),
                            .characters = sentence_set_characters(s),
                            .longest = s->longest};
    dataset_note(d, "; %lld %s; dictionary %lld (%lld of %lld words of the training text",
                 (long long)classes, s->task == TASK_TAGS ? "tags" : "classes",
                 (long long)vocab_size(s->dictionary), (long long)vocab_words(s->dictionary),
                 (long long)vocab_counted(s->dictionary));
    if (s->min_count > 1) dataset_note(d, ", %lld times at least", (long long)s->min_count);
    dataset_note(d, ")");
    for (int i = 0; i < SENTENCE_SPLITS; i++) note_sentences(d, i);
    sentence_set_fill(s, &words, &positions);
    dataset_note(d, "; %lld training batches of %lld words on average, %.1f %% padding",
                 (long long)batches, (long long)(words / batches),
                 100 * (1 - (double)words / (double)positions));
}
