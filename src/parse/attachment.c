/* attachment.c -- compares heads and labels with a treebank: punctuation, equal labels, counts of
 * UAS and LAS (docs/models.md 8, docs/scores.md). */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "parse/trees.h"
#include "text/unicode.h"

tree_rules tree_rules_for(const tree_rules *rules, tree_format format) {
    tree_rules r = *rules;
    if (r.punctuation == TREE_PUNCTUATION_AUTO)
        r.punctuation =
            format == TREES_MALT_TAB ? TREE_PUNCTUATION_PTB_TAGS : TREE_PUNCTUATION_UNICODE;
    if (r.subtypes == TREE_SUBTYPES_AUTO)
        r.subtypes = format == TREES_CONLLU ? TREE_SUBTYPES_IGNORE : TREE_SUBTYPES_COMPARE;
    return r;
}

const char *tree_punctuation_text(tree_punctuation p) {
    static const char *const text[] = {
        "auto",
        "unicode: words of characters of general category P alone (eval.pl)",
        "ptb-tags: words whose gold POS is one of `` '' : , . (Chen and Manning)",
        "upos: words whose gold coarse POS is PUNCT",
    };
    return text[p];
}

const char *tree_subtypes_text(tree_subtypes s) {
    static const char *const text[] = {
        "auto",
        "compare: whole labels",
        "ignore: labels up to a colon, nsubj of nsubj:pass (conll18_ud_eval.py)",
    };
    return text[s];
}

static bool is(const tree_field *f, const char *word) {
    return (size_t)f->size == strlen(word) && memcmp(f->byte, word, (size_t)f->size) == 0;
}

bool tree_is_punctuation(const tree_word *w, tree_punctuation p) {
    static const char *const tags[] = {"``", "''", ":", ",", "."};
    if (p == TREE_PUNCTUATION_UNICODE) {
        /* a tab or line end follows each field, so that no character reaches beyond it */
        for (int32_t at = 0; at < w->form.size;) {
            uint32_t code;
            const size_t length = utf8_decode((const uint8_t *)w->form.byte + at, &code);
            if (length == 0 || !unicode_is_punctuation(code)) return false;
            at += (int32_t)length;
        }
        return w->form.size > 0;
    }
    if (p == TREE_PUNCTUATION_UPOS) return is(&w->coarse, "PUNCT");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (is(&w->fine, tags[i])) return true;
    return false;
}

static size_t compared(const tree_field *f, tree_subtypes s) {
    const char *colon = s == TREE_SUBTYPES_IGNORE ? memchr(f->byte, ':', (size_t)f->size) : NULL;
    return colon ? (size_t)(colon - f->byte) : (size_t)f->size;
}

bool tree_labels_agree(const tree_field *a, const tree_field *b, tree_subtypes s) {
    const size_t size = compared(a, s);
    return size == compared(b, s) && memcmp(a->byte, b->byte, size) == 0;
}

static void count_into(attachment *a, bool head, bool label) {
    a->words++;
    a->head += head;
    a->label += label;
    a->both += head && label;
}

void attachment_count(attachments *sum, const tree_rules *rules, const tree_word *gold,
                      int32_t head, const tree_field *label) {
    const bool head_right = gold->head == head;
    const bool label_right = tree_labels_agree(&gold->label, label, rules->subtypes);
    count_into(&sum->all, head_right, label_right);
    if (!tree_is_punctuation(gold, rules->punctuation))
        count_into(&sum->plain, head_right, label_right);
}

double attachment_percent(int64_t right, int64_t words) {
    return words ? 100.0 * (double)right / (double)words : NAN;
}
