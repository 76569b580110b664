/* line_hashes.h -- hashes of the sentences of a split, to count those that occur again. */
#ifndef DATA_SETS_LINE_HASHES_H
#define DATA_SETS_LINE_HASHES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct hashed_line {
    uint64_t hash;
    int64_t words;
} hashed_line;

/* Zeros at first. */
typedef struct line_hashes {
    hashed_line *line; /* [count] */
    int64_t count, capacity;
} line_hashes;

void line_hashes_free(line_hashes *h);
/* False when out of memory. */
bool line_hashes_add(line_hashes *h, uint64_t hash, int64_t words);

/* Lines, and their words. */
typedef struct line_count {
    int64_t lines, words;
} line_count;

/* Lines of b that a has, too; repeated: lines of h that an earlier one equals. Both take time in
 * proportion to the lines. False when out of memory. */
bool line_hashes_common(const line_hashes *a, const line_hashes *b, line_count *common);
bool line_hashes_repeated(const line_hashes *h, line_count *repeated);

#endif
