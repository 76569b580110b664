/* read_trees.c -- dependency trees: CoNLL-X, CoNLL-U, malt-tab (parse/trees.h).
 *
 * "trees": DIR/PREFIX or DIR/PREFIX.gz (plain preferred), one file for each split, its prefix the
 * whole name. The name "" of validation or test means none; the test file may also be missing.
 * "trees-cut": one file. The last test_count of the n sentences are the test split, the valid_count
 * before them validation, the rest training. A count below 0 means the whole part of n times the
 * split's fraction. The first 3,132, next 391 and last 391 sentences of the sample of the Penn
 * Treebank are shares of 0.1.
 */

#include <stdlib.h>

#include "data/dataset.h"

/* "" is the first of the words, auto. */
static int word_of(const char *words, const char *word) {
    return *word ? text_find_word(words, word) : 0;
}

/* *found false: an optional file is missing. */
static sr_status read_bank(dataset *d, const data_options *o, const char *name, bool optional,
                           tree_bank *b, bool *found, sr_failure *why) {
    char path[FILE_PATH];
    const treebank_options how = {.format =
                                      (tree_format)word_of(TREE_FORMAT_WORDS, o->tree_format)};
    sr_status status = file_find(o->dir, name, path, found, why);
    if (status != SR_OK || (!*found && optional)) return status;
    if (!*found) return file_missing(path, why);
    status = treebank_read(path, &how, &b->bank, why);
    if (status == SR_OK) {
        dataset_note(d, " %s", path);
        dataset_check_ends(d, &b->bank.file);
    }
    return status;
}

static sr_status create_set(dataset *d, const data_options *o, sr_failure *why) {
    tree_set *s = &d->trees;
    const int format = word_of(TREE_FORMAT_WORDS, o->tree_format);
    const int pos = word_of(TREE_POS_WORDS, o->pos_column);
    const int punctuation = word_of(TREE_PUNCTUATION_WORDS, o->punctuation);
    const int subtypes = word_of(TREE_SUBTYPES_WORDS, o->subtypes);
    if (format < 0 || pos < 0 || punctuation < 0 || subtypes < 0)
        return sr_fail(why, SR_USAGE,
                       "tree-format '%s', pos-column '%s', punctuation '%s' or "
                       "subtypes '%s' is not known",
                       o->tree_format, o->pos_column, o->punctuation, o->subtypes);
    const sr_status status = tree_set_create(s, o, why);
    s->pos_column = (tree_pos)pos;
    s->rules = (tree_rules){(tree_punctuation)punctuation, (tree_subtypes)subtypes};
    return status;
}

/* Describes the columns and rules of scores, in the words of the options. */
static void note_rules(dataset *d) {
    const tree_set *s = &d->trees;
    data_trees t;
    tree_set_trees(s, SPLIT_TRAIN, &t);
    const bool coarse = tree_pos_of(t.bank, t.bank->word, s->pos_column) == &t.bank->word->coarse;
    dataset_note(
        d,
        "; format %s; POS of column %s; dictionary %lld (%lld of %lld words of the training text",
        tree_format_name(t.bank->format),
        t.bank->format == TREES_MALT_TAB ? "POSTAG"
        : t.bank->format == TREES_CONLLU ? (coarse ? "UPOS" : "XPOS")
                                         : (coarse ? "CPOSTAG" : "POSTAG"),
        (long long)vocab_size(s->words), (long long)vocab_words(s->words),
        (long long)vocab_counted(s->words));
    if (s->min_count > 1) dataset_note(d, ", %lld times at least", (long long)s->min_count);
    dataset_note(d, "); %lld POS tags; ", (long long)vocab_words(s->pos));
    if (t.labels)
        dataset_note(d, "%d labels", t.arc_labels);
    else
        dataset_note(d, "no labels");
    dataset_note(d, "; parsed to %s; punctuation %s", t.one_root ? "one root each" : "any roots",
                 tree_punctuation_text(t.rules.punctuation));
    if (t.labels) dataset_note(d, "; labels %s", tree_subtypes_text(t.rules.subtypes));
}

static void note_trees(dataset *d, int split) {
    const tree_split *p = &d->trees.split[split];
    if (!p->of) return;
    dataset_note(d, "; %s %lld sentences, %lld words, %.2f %% <unk>, %lld transitions",
                 dataset_split_titles[split], (long long)p->count, (long long)p->words,
                 100 * (double)p->unknown / (double)p->words, (long long)p->start[p->keeps]);
    if (p->unknown_pos)
        dataset_note(d, " (%lld words with POS tags that training lacks)",
                     (long long)p->unknown_pos);
    if (p->crossing)
        dataset_note(d, " (without %lld sentences that are not projective)",
                     (long long)p->crossing);
    if (p->unlabelled)
        dataset_note(d, " (without %lld with labels that training lacks)",
                     (long long)p->unlabelled);
}

static const char *label_name(const void *labels, int64_t i) {
    return vocab_word(labels, i + TOKEN_FIRST_WORD);
}

/* Labels of one training word. */
static sr_status check_labels(dataset *d, sr_failure *why) {
    const tree_split *p = &d->trees.split[SPLIT_TRAIN];
    const vocab *labels = d->trees.labels;
    if (!labels) return SR_OK;
    const int64_t count = vocab_words(labels), *start = p->of->bank.start;
    int64_t *times = calloc((size_t)count + 1, sizeof *times);
    if (!times) return sr_fail(why, SR_MEMORY, "out of memory for labels");
    for (int64_t i = start[p->first]; i < start[p->first + p->count]; i++) times[p->of->label[i]]++;
    dataset_check_labels(d, "labels of arcs", times, count, label_name, labels);
    free(times);
    return SR_OK;
}

static sr_status finish(dataset *d, const data_options *o, sr_failure *why) {
    tree_set *s = &d->trees;
    data_trees t;
    const sr_status status = tree_set_build(s, o, why);
    if (status != SR_OK) return status;
    tree_set_trees(s, SPLIT_TRAIN, &t);
    d->shape = (data_shape){.task = TASK_TREES,
                            .classes = data_tree_classes(&t),
                            .vocabulary = vocab_size(s->words),
                            .pos_tags = vocab_size(s->pos),
                            .arc_labels = s->labels ? vocab_size(s->labels) : 0};
    note_rules(d);
    for (int i = 0; i < TREE_SPLITS; i++) note_trees(d, i);
    return check_labels(d, why);
}

sr_status trees_open(dataset *d, const data_options *o, sr_failure *why) {
    const char *name[TREE_SPLITS] = {o->trainpref, o->validpref, o->testpref};
    dataset_note(d, "trees: from");
    sr_status status = create_set(d, o, why);
    if (status == SR_OK && !*o->trainpref) status = sr_fail(why, SR_USAGE, "trainpref is empty");
    for (int i = 0; status == SR_OK && i < TREE_SPLITS; i++) {
        tree_bank *b = &d->trees.bank[i];
        bool found = false;
        if (*name[i]) status = read_bank(d, o, name[i], i == SPLIT_TEST, b, &found, why);
        if (status == SR_OK && found)
            d->trees.split[i] = (tree_split){.of = b, .count = b->bank.sentences};
    }
    return status == SR_OK ? finish(d, o, why) : status;
}

/* Sentences of a split: the given count, else by the fraction. */
static sr_status choose_count(const char *split, int64_t count, double given, int64_t sentences,
                              int64_t *size, sr_failure *why) {
    const double share = dataset_share(given, 0.01);
    *size = count >= 0 ? count : (int64_t)(share * (double)sentences);
    if (count >= 0 || share >= 0) return SR_OK;
    return sr_fail(why, SR_USAGE, "%s-share %g is negative", split, share);
}

sr_status trees_cut_open(dataset *d, const data_options *o, sr_failure *why) {
    bool found;
    tree_split *split = d->trees.split;
    tree_bank *b = &d->trees.bank[SPLIT_TRAIN];
    int64_t valid = 0, test = 0;
    dataset_note(d, "trees-cut: from");
    sr_status status = create_set(d, o, why);
    if (status == SR_OK) status = read_bank(d, o, o->file, false, b, &found, why);
    const int64_t n = b->bank.sentences;
    if (status == SR_OK)
        status = choose_count("valid", o->valid_count, o->valid_share, n, &valid, why);
    if (status == SR_OK) status = choose_count("test", o->test_count, o->test_share, n, &test, why);
    if (status != SR_OK) return status;
    if (valid >= n || test >= n - valid)
        return sr_fail(why, SR_USAGE, "%s: %lld validation and %lld test sentences use all %lld",
                       b->bank.file.path, (long long)valid, (long long)test, (long long)n);
    split[SPLIT_TRAIN] = (tree_split){.of = b, .count = n - valid - test};
    if (valid)
        split[SPLIT_VALID] = (tree_split){.of = b, .first = n - valid - test, .count = valid};
    if (test) split[SPLIT_TEST] = (tree_split){.of = b, .first = n - test, .count = test};
    return finish(d, o, why);
}
