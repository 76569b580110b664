/* pair_text.c -- texts of sentence pairs: steps before words are counted, and lines as read. */
#include <stdlib.h>
#include <string.h>

#include "data/sets/pair_set.h"

void pair_text_free(pair_text *t) {
    for (int i = 0; i < SIDES; i++) {
        file_free(&t->side[i]);
        free(t->number[i]);
        t->number[i] = NULL;
    }
}

int64_t pair_set_lines(const pair_set *s, data_split split, const pair_text *t) {
    return split == SPLIT_TRAIN && s->limit > 0 && s->limit < t->lines ? s->limit : t->lines;
}

/* -- steps */

/* The first lines of a text, not copied; do not free. */
static pair_text first_lines(const pair_text *t, int64_t lines) {
    pair_text first = {.side = {t->side[0], t->side[1]}, .lines = lines};
    for (int i = 0; i < SIDES && t->side[i].byte && lines < t->lines; i++) {
        const uint8_t *end = t->side[i].byte;
        for (int64_t k = 0; k < lines; k++)
            end = (const uint8_t *)strchr((const char *)end, '\n') + 1;
        first.side[i].size = (size_t)(end - t->side[i].byte);
    }
    return first;
}

/* Both sides of one split. */
static sr_status take_step(const line_transform *step, const pair_text *from, pair_text *to,
                           sr_failure *why) {
    sr_status status = SR_OK;
    to->lines = from->lines;
    for (int i = 0; i < SIDES && status == SR_OK && from->side[i].byte; i++) {
        file_bytes next;
        status = line_transform_text(step, i, &from->side[i], &next, why);
        file_free(&to->side[i]);
        to->side[i] = next;
    }
    return status;
}

sr_status pair_text_take_steps(pair_set *s, const pair_text text[PAIR_SPLITS],
                               pair_text out[PAIR_SPLITS], sr_failure *why) {
    sr_status status = SR_OK;
    for (int k = 0; k < s->steps && status == SR_OK; k++) {
        const line_transform *step = &s->step[k];
        pair_text from[PAIR_SPLITS];
        for (int i = 0; i < PAIR_SPLITS; i++) {
            const pair_text *before = k ? &out[i] : &text[i];
            from[i] = first_lines(before, pair_set_lines(s, (data_split)i, before));
        }
        if (step->begin)
            status = step->begin(step->self, from[SPLIT_TRAIN].side, SIDES, from[SPLIT_TRAIN].lines,
                                 why);
        for (int i = 0; i < PAIR_SPLITS && status == SR_OK; i++)
            status = take_step(step, &from[i], &out[i], why);
    }
    return status;
}

/* -- lines as they were read */

sr_status pair_split_keep_raw(pair_split *p, pair_text *t, sr_failure *why) {
    p->raw = *t;
    *t = (pair_text){.lines = t->lines};
    for (int i = 0; i < SIDES && p->raw.side[i].byte; i++) {
        const file_bytes *f = &p->raw.side[i];
        size_t at = 0;
        p->start[i] = malloc((size_t)(p->raw.lines + 1) * sizeof *p->start[i]);
        if (!p->start[i])
            return sr_fail(why, SR_MEMORY, "%s: out of memory for its lines", f->path);
        for (int64_t k = 0; k <= p->raw.lines; k++) {
            const uint8_t *end = at < f->size ? memchr(f->byte + at, '\n', f->size - at) : NULL;
            p->start[i][k] = at;
            at = end ? (size_t)(end - f->byte) + 1 : f->size;
        }
    }
    return SR_OK;
}

data_line pair_split_line(const pair_split *p, data_side side, int64_t line) {
    if (!p->start[side]) return (data_line){0};
    const char *byte = (const char *)p->raw.side[side].byte;
    size_t first = p->start[side][line], end = p->start[side][line + 1];
    return (data_line){byte + first, line_content(byte + first, end - first)};
}

text_codec pair_set_codec(const pair_set *s) {
    return (text_codec){
        {s->dictionary[SIDE_SOURCE], s->dictionary[SIDE_TARGET]}, s->step, s->steps};
}
