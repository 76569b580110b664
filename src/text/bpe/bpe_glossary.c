/* bpe_glossary.c -- cuts words at matches of glossary expressions, after _isolate_glossaries and
 * isolate_glossary of subword-nmt 0.3.8.
 *
 * Each glossary splits the segments of earlier ones at every match, unless "^GLOSSARY$" matches. In
 * "^a|b$", ^ belongs to a only and $ to b only. Segments that match any glossary completely are
 * kept. */
#include "text/bpe/bpe_glossary.h"

#include <stdlib.h>
#include <string.h>

typedef struct expressions {
    pattern *inside; /* GLOSSARY */
    pattern *edges;  /* GLOSSARY$, searched at the start: ^GLOSSARY$ */
} expressions;

typedef struct segments {
    bpe_segment *at; /* [count] */
    int64_t count, capacity;
} segments;

struct bpe_glossary {
    expressions *of; /* [count] */
    int count;
    segments now, next;
};

void bpe_glossary_free(bpe_glossary *g) {
    if (!g) return;
    for (int i = 0; g->of && i < g->count; i++) {
        pattern_free(g->of[i].inside);
        pattern_free(g->of[i].edges);
    }
    free(g->of);
    free(g->now.at);
    free(g->next.at);
    free(g);
}

static sr_status compile(expressions *e, const char *text, sr_failure *why) {
    bool empty;
    size_t start, end;
    e->inside = pattern_compile(text, false, why);
    e->edges = e->inside ? pattern_compile(text, true, why) : NULL;
    if (!e->edges) return SR_USAGE;
    sr_status status =
        pattern_search(e->inside, "", 0, 0, PATTERN_WHOLE, &empty, &start, &end, why);
    if (status != SR_OK || !empty) return status;
    return sr_fail(why, SR_USAGE, "glossary '%.200s' matches the empty text", text);
}

bpe_glossary *bpe_glossary_create(const char *const *expression, int count, sr_failure *why) {
    bpe_glossary *g = calloc(1, sizeof *g);
    if (g) g->of = calloc((size_t)count, sizeof *g->of);
    sr_status status = g && g->of ? SR_OK : bpe_out_of_memory(why);
    for (int i = 0; status == SR_OK && i < count; i++) {
        g->count = i + 1;
        status = compile(&g->of[i], expression[i], why);
    }
    if (status == SR_OK) return g;
    bpe_glossary_free(g);
    return NULL;
}

static sr_status add_segment(segments *s, const char *text, size_t length, sr_failure *why) {
    if (length == 0) return SR_OK;
    if (!vector_reserve(&s->at, &s->capacity, s->count + 1, sizeof *s->at))
        return bpe_out_of_memory(why);
    s->at[s->count++] = (bpe_segment){text, length, false};
    return SR_OK;
}

/* Appends the parts of one segment to g->next. */
static sr_status isolate(bpe_glossary *g, expressions *e, const bpe_segment *segment,
                         sr_failure *why) {
    const char *text = segment->text;
    bool found;
    size_t start, end, at = 0, length = segment->length;
    sr_status status =
        pattern_search(e->edges, text, length, 0, PATTERN_AT_START, &found, &start, &end, why);
    while (status == SR_OK && !found) {
        status = pattern_search(e->inside, text, length, at, PATTERN_ANYWHERE, &found, &start, &end,
                                why);
        if (status != SR_OK || !found) break;
        status = add_segment(&g->next, text + at, start - at, why);
        if (status == SR_OK) status = add_segment(&g->next, text + start, end - start, why);
        at = end;
        found = false;
    }
    return status == SR_OK ? add_segment(&g->next, text + at, length - at, why) : status;
}

sr_status bpe_glossary_cut(bpe_glossary *g, const char *word, size_t length,
                           const bpe_segment **segment, int64_t *count, sr_failure *why) {
    g->now.count = 0;
    sr_status status = add_segment(&g->now, word, length, why);
    for (int i = 0; status == SR_OK && i < g->count; i++) {
        g->next.count = 0;
        for (int64_t k = 0; status == SR_OK && k < g->now.count; k++)
            status = isolate(g, &g->of[i], &g->now.at[k], why);
        segments swap = g->now;
        g->now = g->next;
        g->next = swap;
    }
    for (int64_t k = 0; status == SR_OK && k < g->now.count; k++) {
        bpe_segment *s = &g->now.at[k];
        size_t start, end;
        for (int i = 0; status == SR_OK && !s->kept && i < g->count; i++)
            status = pattern_search(g->of[i].inside, s->text, s->length, 0, PATTERN_WHOLE, &s->kept,
                                    &start, &end, why);
    }
    *segment = g->now.at;
    *count = g->now.count;
    return status;
}
