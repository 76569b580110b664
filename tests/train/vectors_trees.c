/* vectors_trees.c -- oracle.h5 and uas.h5: transitions with their feature positions, and the counts
 * for UAS. */
#include <string.h>

#include "model_vectors.h"
#include "parse/arc_standard.h"
#include "parse/trees.h"

/* -- oracle */

/* Transitions of the oracle, and the feature positions before each. -1: out of memory. */
static int64_t follow(arc_state *s, const int32_t *head, int32_t words, double *kind,
                      double *places) {
    int64_t steps = 0;
    if (!arc_oracle_begin(s, head, words)) return -1;
    while (!arc_done(s)) {
        int32_t node[ARC_PLACES];
        const int said = arc_oracle(s, head);
        if (said < 0) break;
        arc_places(s, node);
        for (int i = 0; i < ARC_PLACES; i++) places[steps * ARC_PLACES + i] = node[i];
        kind[steps++] = said;
        arc_oracle_apply(s, (arc_kind)said, 0);
    }
    return steps;
}

void check_oracle(model_case *c) {
    arc_state s = {0};
    int64_t dim[4], built = 0;
    const int32_t *head = case_ints(c, "in/heads", 1, dim);
    const int64_t reachable = case_whole(c, "reachable", 0, 1);
    if (!head || !case_fine(c)) return;
    for (int64_t i = 0; i < dim[0]; i++)
        if (head[i] < 0 || head[i] > dim[0]) case_fail(c, "head %d of %lld", head[i], (long long)i);
    double *kind = case_alloc(c, 2 * dim[0], sizeof *kind);
    double *places = case_alloc(c, 2 * dim[0] * ARC_PLACES, sizeof *places);
    if (!kind || !places || !case_fine(c)) return;
    const int64_t steps = follow(&s, head, (int32_t)dim[0], kind, places);
    if (steps < 0) case_fail(c, "out of memory");
    if ((steps == 2 * dim[0]) != (reachable == 1))
        case_fail(c, "%lld transitions of %lld words, reachable %lld", (long long)steps,
                  (long long)dim[0], (long long)reachable);
    if (case_fine(c)) {
        case_compare(c, "actions", kind, steps, NULL, 1);
        case_compare(c, "features", places, steps * ARC_PLACES, NULL, 1);
        for (int64_t i = 0; i < dim[0]; i++) built += s.head[i + 1] == head[i];
        if (reachable && built != dim[0]) case_fail(c, "the tree that was built is another one");
    }
    arc_free(&s);
}

/* -- uas */

static tree_field cut_tag(const char **at, const char *end) {
    const char *from = *at, *newline = memchr(from, '\n', (size_t)(end - from));
    *at = newline ? newline + 1 : end;
    return (tree_field){from, (int32_t)((newline ? newline : end) - from)};
}

void check_uas(model_case *c) {
    static const tree_rules rules = {TREE_PUNCTUATION_PTB_TAGS, TREE_SUBTYPES_COMPARE};
    static const tree_field none = {"_", 1};
    int64_t golds[4], preds[4], size = 0;
    const int32_t *gold = case_ints(c, "in/gold", 1, golds);
    const int32_t *pred = case_ints(c, "in/pred", 1, preds);
    const char *tags = case_bytes(c, "in/tags", &size);
    attachments sum = {0};
    if (!gold || !pred || !tags) return;
    if (golds[0] != preds[0]) case_fail(c, "in/gold and in/pred differ in length");
    const char *end = tags + size;
    for (int64_t i = 0; case_fine(c) && i < golds[0]; i++) {
        const tree_word w = {.fine = cut_tag(&tags, end), .label = none, .head = gold[i]};
        attachment_count(&sum, &rules, &w, pred[i], &none);
    }
    if (case_fine(c) && tags != end) case_fail(c, "more tags than words");
    if (!case_fine(c)) return;
    const double counts[] = {(double)sum.all.head, (double)sum.all.words, (double)sum.plain.head,
                             (double)sum.plain.words};
    const double all = attachment_percent(sum.all.head, sum.all.words);
    const double plain = attachment_percent(sum.plain.head, sum.plain.words);
    case_compare(c, "counts", counts, 4, NULL, 1);
    case_compare(c, "uas", &all, 1, NULL, 1);
    case_compare(c, "uas_nopunct", &plain, 1, NULL, 1);
}
