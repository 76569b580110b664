/* mark_spans.h -- entities of tags that have no dictionary. */
#ifndef TESTS_MARK_SPANS_H
#define TESTS_MARK_SPANS_H

#include "text/tag_set.h"

/* tag_set_spans of the marks [count]; types as in `types`. span may be NULL. */
int64_t mark_spans(const tag_types *types, const tag_mark *mark, int64_t count, tag_span *span);

#endif
