/* tree_check.c -- checks that the heads of a sentence form a tree. */
#include <stdio.h>
#include <stdlib.h>

#include "parse/tree_lines.h"

/* Universal Dependencies want exactly one root, as conll18_ud_eval.py does; CoNLL-X allows more. */
static sr_status check_roots(const treebank *t, const tree_word *word, int32_t words,
                             sr_failure *why) {
    int32_t first = -1;
    for (int32_t i = 0; i < words; i++) {
        if (word[i].head != 0) continue;
        if (first >= 0 && t->format == TREES_CONLLU)
            return tree_fail(t->file.path, word[i].line, why,
                             "word %d '%.*s' is a second root after word %d '%.*s'", i + 1,
                             tree_shown(&word[i].form), word[i].form.byte, first + 1,
                             tree_shown(&word[first].form), word[first].form.byte);
        if (first < 0) first = i;
    }
    if (first >= 0) return SR_OK;
    return tree_fail(t->file.path, word[0].line, why, "no word of this sentence has head 0");
}

/* "3 -> 5 -> 3", truncated. */
static void print_cycle(const tree_word *word, int32_t start, char *text, size_t size) {
    enum { SHOWN = 8 };
    int32_t at = start;
    size_t used = (size_t)snprintf(text, size, "%d", start);
    for (int i = 0; i < SHOWN; i++) {
        at = word[at - 1].head;
        used += (size_t)snprintf(text + used, size - used, " -> %d", at);
        if (at == start) return;
    }
    snprintf(text + used, size - used, " ...");
}

/* Follows heads up to ROOT or to a word of an earlier walk. A word of this walk closes a cycle. */
static sr_status check_cycles(const treebank *t, const tree_word *word, int32_t words,
                              sr_failure *why) {
    int32_t *walk = calloc((size_t)words + 1, sizeof *walk);
    if (!walk) return sr_fail(why, SR_MEMORY, "out of memory for a sentence of %d words", words);
    sr_status status = SR_OK;
    for (int32_t i = 1; i <= words && status == SR_OK; i++) {
        int32_t at = i;
        while (at != 0 && walk[at] == 0) {
            walk[at] = i;
            at = word[at - 1].head;
        }
        if (at == 0 || walk[at] != i) continue;
        char cycle[160];
        const tree_word *w = &word[at - 1];
        print_cycle(word, at, cycle, sizeof cycle);
        status =
            tree_fail(t->file.path, w->line, why, "word %d '%.*s' is its own ancestor: cycle %s",
                      at, tree_shown(&w->form), w->form.byte, cycle);
    }
    free(walk);
    return status;
}

sr_status tree_check_sentence(const treebank *t, const tree_word *word, int32_t words,
                              bool any_heads, sr_failure *why) {
    for (int32_t i = 0; i < words; i++)
        if (word[i].head > words)
            return tree_fail(t->file.path, word[i].line, why,
                             "head %d of word %d '%.*s'; the sentence has %d word%s: 0 to %d",
                             word[i].head, i + 1, tree_shown(&word[i].form), word[i].form.byte,
                             words, words == 1 ? "" : "s", words);
    if (any_heads) return SR_OK;
    const sr_status status = check_roots(t, word, words, why);
    return status == SR_OK ? check_cycles(t, word, words, why) : status;
}
