/* trees.h -- dependency trees from files, and scores of heads and labels against them.
 *
 * Formats (docs/models.md 8) have columns between tabs and a blank line after each sentence, in
 * UTF-8. Lines end in LF or CR LF; files may be gzip:
 *
 *   conllx    10 columns: ID FORM LEMMA CPOSTAG POSTAG FEATS HEAD DEPREL PHEAD PDEPREL
 *   conllu    10 columns: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC; comments before a
 *             sentence, multiword tokens (3-4) and empty nodes (8.1) are no words
 *   malt-tab  3 or 4 columns: FORM POSTAG HEAD [DEPREL]; words are numbered from 1
 *
 * HEAD is the number of a word of the sentence; 0: a root. Trees of conllu have exactly one root,
 * others at least one. If DEPREL is `_` for every word, the trees have no labels.
 */
#ifndef PARSE_TREES_H
#define PARSE_TREES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "text/file_bytes.h"

/* Names for command lines, in the order of the enums. */
#define TREE_FORMAT_WORDS      "auto|conllx|conllu|malt-tab"
#define TREE_POS_WORDS         "auto|coarse|fine"
#define TREE_PUNCTUATION_WORDS "auto|unicode|ptb-tags|upos"
#define TREE_SUBTYPES_WORDS    "auto|compare|ignore"

/* AUTO: by the columns of the first line of words. 10 columns are conllu if the file has a comment,
 * a multiword token or an empty node, or is called .conllu; else conllx. */
typedef enum { TREES_AUTO, TREES_CONLLX, TREES_CONLLU, TREES_MALT_TAB } tree_format;
/* Coarse: CPOSTAG or UPOS, fine: POSTAG or XPOS. AUTO: coarse of conllu, else fine. */
typedef enum { TREE_POS_AUTO, TREE_POS_COARSE, TREE_POS_FINE } tree_pos;
/* Rules for punctuation. UNICODE: every character of the word has general category P, as in eval.pl
 * of CoNLL-X. PTB_TAGS: the fine POS is one of `` '' : , . (Chen and Manning). UPOS: the coarse POS
 * is PUNCT. AUTO: ptb-tags for malt-tab, else unicode. */
typedef enum {
    TREE_PUNCTUATION_AUTO,
    TREE_PUNCTUATION_UNICODE,
    TREE_PUNCTUATION_PTB_TAGS,
    TREE_PUNCTUATION_UPOS,
} tree_punctuation;
/* Labels with or without the part after a colon (nsubj:pass). AUTO: ignored for conllu, as in
 * conll18_ud_eval.py, else compared. */
typedef enum { TREE_SUBTYPES_AUTO, TREE_SUBTYPES_COMPARE, TREE_SUBTYPES_IGNORE } tree_subtypes;

/* Bytes of a column in the file's text. */
typedef struct tree_field {
    const char *byte;
    int32_t size;
} tree_field;

typedef struct tree_word {
    tree_field form, coarse, fine, label; /* one POS: coarse is fine; label "_": none */
    int32_t head;
    int64_t line;    /* line of the file, from 1 */
    size_t at, size; /* bytes of that line in the file, without its end */
} tree_word;

/* Sentence i has the words start[i] .. start[i+1]-1. */
typedef struct treebank {
    file_bytes file; /* its text; the fields point into it */
    tree_format format;
    int columns;
    bool labelled;
    tree_word *word; /* [words] */
    int64_t words, word_capacity;
    int64_t *start; /* [sentences + 1] */
    int64_t sentences, start_capacity;
} treebank;

typedef struct treebank_options {
    tree_format format;
    bool any_heads; /* heads need not form trees, as from some parsers */
} treebank_options;

/* path "-": standard input. Free with treebank_free. SR_FORMAT ("PATH:LINE: head 9 of word 3 'x';
 * ..."); otherwise as file_read. */
sr_status treebank_read(const char *path, const treebank_options *o, treebank *t, sr_failure *why);
void treebank_free(treebank *t); /* zeros are fine */
/* Words of sentence i. */
const tree_word *treebank_sentence(const treebank *t, int64_t i, int32_t *words);
/* Writes sentence i with other heads [words] and a blank line. labels [words] may be NULL or
 * contain NULL: the file's labels stay, or `_`. Columns that repeat the tree (DEPS, PHEAD, PDEPREL)
 * become `_`. False when a write failed. */
bool treebank_write(const treebank *t, int64_t i, const int32_t *head, const char *const *label,
                    FILE *out);

const char *tree_format_name(tree_format format);
const tree_field *tree_pos_of(const treebank *t, const tree_word *w, tree_pos pos);

/* -- scores */

typedef struct tree_rules {
    tree_punctuation punctuation;
    tree_subtypes subtypes;
} tree_rules;

/* The rules with AUTO resolved for the format. */
tree_rules tree_rules_for(const tree_rules *rules, tree_format format);
/* One line each on the rules for punctuation and labels. */
const char *tree_punctuation_text(tree_punctuation p);
const char *tree_subtypes_text(tree_subtypes s);
/* AUTO must be resolved. */
bool tree_is_punctuation(const tree_word *w, tree_punctuation p);
bool tree_labels_agree(const tree_field *a, const tree_field *b, tree_subtypes s);

/* Words; words with the right head, label, and both. */
typedef struct attachment {
    int64_t words, head, label, both;
} attachment;

typedef struct attachments {
    attachment all, plain; /* plain: without punctuation */
} attachments;

/* Counts one word of the reference. */
void attachment_count(attachments *sum, const tree_rules *rules, const tree_word *gold,
                      int32_t head, const tree_field *label);
/* Percent; NaN without words. */
double attachment_percent(int64_t right, int64_t words);

#endif
