/* mark_spans.c -- see mark_spans.h: builds a dictionary of all tags. */
#include "testing/mark_spans.h"

#include <stdlib.h>

#include "testing/check.h"

int64_t mark_spans(const tag_types *types, const tag_mark *mark, int64_t count, tag_span *span) {
    const int64_t known = types->names.count;
    int32_t *number = malloc((size_t)(known + 1) * sizeof *number);
    int32_t *id = malloc((size_t)(count + 1) * sizeof *id);
    tag_set *set = tag_set_create(TAG_BIOES, types, number);
    assert_true(number && id && set);
    for (int64_t i = 0; i < count; i++) {
        const int32_t type = mark[i].type;
        id[i] = tag_set_id(set, (tag_mark){mark[i].part, type < 0 ? -1 : number[type]});
    }
    const int64_t spans = tag_set_spans(set, id, count, span);
    for (int64_t i = 0; span && i < spans; i++) {
        int32_t type = 0;
        while (number[type] != span[i].type) type++;
        span[i].type = type;
    }
    tag_set_free(set);
    free(number), free(id);
    return spans;
}
