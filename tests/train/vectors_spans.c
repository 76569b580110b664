/* vectors_spans.c -- span_f1.h5: the entities of gold and predicted tags, how many are right, and
 * the gold tags of IOB1 in BIOES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_vectors.h"
#include "testing/mark_spans.h"
#include "text/tag_set.h"

typedef struct side {
    int64_t words, spans;
    tag_mark *mark;
    tag_span *span;
} side;

/* A tag on each line. */
static side read_side(model_case *c, const char *path, tag_types *types) {
    int64_t size = 0;
    side s = {0};
    sr_failure why = {0};
    const char *text = case_bytes(c, path, &size), *scheme = case_text(c, "scheme");
    s.mark = case_alloc(c, size + 1, sizeof *s.mark);
    s.span = case_alloc(c, size + 1, sizeof *s.span);
    if (!text || !scheme || !s.mark || !s.span) return s;
    if (tag_scheme_find(scheme) == TAG_ANY) case_fail(c, "scheme %s is not known", scheme);
    tag_column column = tag_column_start(path, tag_scheme_find(scheme));
    for (const char *end = text + size; text < end && case_fine(c); s.words++) {
        const size_t length = strcspn(text, "\n");
        if (tag_column_add(&column, types, s.words + 1, text, length, &s.mark[s.words], &why))
            case_fail(c, "%s", why.text);
        text += length + 1;
    }
    s.spans = mark_spans(types, s.mark, s.words, s.span);
    return s;
}

static void compare_spans(model_case *c, const char *name, const side *s, const tag_types *types) {
    char *text = case_alloc(c, s->spans + 1, TAG_NAME + 32), *at = text;
    if (!text) return;
    for (int64_t i = 0; i < s->spans; i++)
        at += sprintf(at, "%s %d %d\n", tag_types_name(types, s->span[i].type),
                      (int)s->span[i].first, (int)s->span[i].last);
    case_compare_text(c, name, text, at - text);
}

static void compare_bioes(model_case *c, const side *s, const tag_types *types) {
    char *text = case_alloc(c, s->words + 1, TAG_NAME + 1), *at = text, tag[TAG_NAME];
    if (!text || !case_has(c, "out/gold_bioes")) return;
    tag_convert(TAG_BIOES, s->mark, s->words, s->mark);
    for (int64_t i = 0; i < s->words; i++) {
        const int32_t type = s->mark[i].type;
        tag_format(TAG_BIOES, s->mark[i].part, type < 0 ? NULL : tag_types_name(types, type), tag);
        at += sprintf(at, "%s\n", tag);
    }
    case_compare_text(c, "gold_bioes", text, at - text);
}

void check_span_f1(model_case *c) {
    tag_types types = {0};
    const side gold = read_side(c, "in/gold", &types), pred = read_side(c, "in/pred", &types);
    if (case_fine(c)) {
        const int64_t right = tag_spans_matching(gold.span, gold.spans, pred.span, pred.spans);
        const double counts[] = {(double)right, (double)pred.spans, (double)gold.spans};
        const entity_scores f = entity_scores_of(right, pred.spans, gold.spans);
        compare_spans(c, "gold_spans", &gold, &types);
        compare_spans(c, "pred_spans", &pred, &types);
        case_compare(c, "counts", counts, 3, NULL, 1);
        case_compare(c, "prf", (const double[]){f.precision, f.recall, f.f1}, 3, NULL, 1);
        compare_bioes(c, &gold, &types);
    }
    tag_types_free(&types);
}
