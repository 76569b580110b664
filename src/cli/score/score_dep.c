/* score_dep.c -- `statrec score dep`: heads and labels of parsed sentences against a treebank. */
#include <stddef.h>
#include <string.h>

#include "cli/command_frame.h"
#include "cli/score/scores.h"
#include "parse/trees.h"
#include "text/text.h"

enum { FIRST = 3 };

typedef struct dep_options {
    option_text ref, format, punctuation, subtypes;
} dep_options;

#define AT(field) offsetof(dep_options, field)
static const option rows[] = {
    TEXT_OPTION(NULL, "ref", AT(ref), "", "read the right trees in this treebank", .value = "FILE"),
    CHOICE_OPTION(NULL, "format", AT(format), "auto", TREE_FORMAT_WORDS,
                  "set the format of both files"),
    CHOICE_OPTION(NULL, "punctuation", AT(punctuation), "auto", TREE_PUNCTUATION_WORDS,
                  "skip this punctuation; auto: ptb-tags for malt-tab, else unicode"),
    CHOICE_OPTION(NULL, "subtypes", AT(subtypes), "auto", TREE_SUBTYPES_WORDS,
                  "treat label parts after a colon; auto: ignored for conllu only"),
};

static const command_frame frame = {
    "usage: statrec score dep --ref GOLD [OPTIONS] < PRED\n"
    "       statrec score dep --ref GOLD [OPTIONS] PRED\n\n"
    "Prints UAS (right heads), LAS (right heads and labels) and the right labels of PRED,\n"
    "in percent. Words count with and without punctuation. Both files contain the same\n"
    "sentences in CoNLL-X, CoNLL-U or malt-tab (3 or 4 columns). Multiword tokens and empty\n"
    "nodes are no words. Words, POS and punctuation come from GOLD. Trees of PRED may have\n"
    "cycles and any number of roots. Files may be gzip (.gz).\n\n",
    {rows, sizeof rows / sizeof rows[0]},
    "unicode: words of characters of general category P alone, as in eval.pl of CoNLL-X.\n"
    "ptb-tags: the gold POS is one of `` '' : , . (of CoNLL the fine one). upos: the coarse\n"
    "gold POS is PUNCT.\n",
    "0 done, 1 failed, 2 usage.",
    FIRST};

/* The compared treebanks. */
typedef struct dep_files {
    treebank gold, pred;
} dep_files;

/* One sentence ends before the other. */
static sr_status fail_length(const treebank *longer, const tree_word *more, const treebank *shorter,
                             int32_t words, sr_failure *why) {
    return sr_fail(why, SR_FORMAT, "%s:%lld: word %d '%.*s', but that sentence of %s has %d",
                   longer->file.path, (long long)more->line, words + 1,
                   more->form.size > 60 ? 60 : more->form.size, more->form.byte, shorter->file.path,
                   words);
}

static sr_status compare_sentence(const dep_files *f, int64_t i, sr_failure *why) {
    int32_t golds, preds;
    const tree_word *gold = treebank_sentence(&f->gold, i, &golds);
    const tree_word *pred = treebank_sentence(&f->pred, i, &preds);
    for (int32_t k = 0; k < golds && k < preds; k++) {
        const tree_field *a = &gold[k].form, *b = &pred[k].form;
        if (a->size == b->size && memcmp(a->byte, b->byte, (size_t)a->size) == 0) continue;
        return sr_fail(why, SR_FORMAT, "%s:%lld: word '%.*s', but '%.*s' in %s:%lld",
                       f->pred.file.path, (long long)pred[k].line, b->size > 60 ? 60 : b->size,
                       b->byte, a->size > 60 ? 60 : a->size, a->byte, f->gold.file.path,
                       (long long)gold[k].line);
    }
    if (golds > preds) return fail_length(&f->gold, &gold[preds], &f->pred, preds, why);
    if (preds > golds) return fail_length(&f->pred, &pred[golds], &f->gold, golds, why);
    return SR_OK;
}

static void print_row(const char *name, int64_t right, int64_t words, bool known) {
    if (known && words)
        printf("%s\t%.2f\t%lld\t%lld\n", name, attachment_percent(right, words), (long long)right,
               (long long)words);
    else
        printf("%s\tnan\t%s\t%lld\n", name, known ? "0" : "nan", (long long)words);
}

static void print_scores(const dep_files *f, const tree_rules *rules) {
    attachments sum = {0};
    const bool labels = f->gold.labelled && f->pred.labelled;
    for (int64_t i = 0; i < f->gold.words; i++)
        attachment_count(&sum, rules, &f->gold.word[i], f->pred.word[i].head,
                         &f->pred.word[i].label);
    printf("# program: statrec score dep " STATREC_VERSION "\n");
    printf("# gold: %s, %s, %lld sentences, %lld words\n", f->gold.file.path,
           tree_format_name(f->gold.format), (long long)f->gold.sentences,
           (long long)f->gold.words);
    printf("# punctuation: %s\n", tree_punctuation_text(rules->punctuation));
    printf("# labels: %s\n",
           !labels ? "none in one of the files" : tree_subtypes_text(rules->subtypes));
    printf("# UAS: right heads; LAS: right heads with right labels; LA: right labels; -nopunct: of "
           "words that are not punctuation\n");
    printf("score\tpercent\tright\twords\n");
    print_row("UAS", sum.all.head, sum.all.words, true);
    print_row("LAS", sum.all.both, sum.all.words, labels);
    print_row("LA", sum.all.label, sum.all.words, labels);
    print_row("UAS-nopunct", sum.plain.head, sum.plain.words, true);
    print_row("LAS-nopunct", sum.plain.both, sum.plain.words, labels);
    print_row("LA-nopunct", sum.plain.label, sum.plain.words, labels);
}

static sr_status read_files(dep_files *f, const dep_options *o, const char *pred, sr_failure *why) {
    treebank_options gold = {.format = (tree_format)text_find_word(TREE_FORMAT_WORDS, o->format)};
    sr_status status = treebank_read(o->ref, &gold, &f->gold, why);
    const treebank_options parsed = {.format = f->gold.format, .any_heads = true};
    if (status == SR_OK) status = treebank_read(pred, &parsed, &f->pred, why);
    if (status != SR_OK) return status;
    const int64_t both =
        f->gold.sentences < f->pred.sentences ? f->gold.sentences : f->pred.sentences;
    for (int64_t i = 0; i < both && status == SR_OK; i++) status = compare_sentence(f, i, why);
    if (status != SR_OK || f->gold.sentences == f->pred.sentences) return status;
    return sr_fail(why, SR_FORMAT, "%s has %lld sentences, %s has %lld", f->pred.file.path,
                   (long long)f->pred.sentences, f->gold.file.path, (long long)f->gold.sentences);
}

int score_dep(const tool *t) {
    dep_options o = {0};
    dep_files files = {0};
    sr_failure why = {0};
    int preds = 0, code;
    if (command_ends(t, &frame, &o, &preds, &code)) return code;
    if (!*o.ref) return tool_error(t, TOOL_USAGE, "--ref GOLD is missing");
    if (preds > 1) return tool_error(t, TOOL_USAGE, "one file expected, %d given", preds);
    const sr_status status = read_files(&files, &o, preds ? t->argv[FIRST] : "-", &why);
    const tree_rules wanted = {
        (tree_punctuation)text_find_word(TREE_PUNCTUATION_WORDS, o.punctuation),
        (tree_subtypes)text_find_word(TREE_SUBTYPES_WORDS, o.subtypes)};
    const tree_rules rules = tree_rules_for(&wanted, files.gold.format);
    if (status == SR_OK) print_scores(&files, &rules);
    treebank_free(&files.gold);
    treebank_free(&files.pred);
    return status == SR_OK ? TOOL_DONE : tool_report(t, &why);
}
