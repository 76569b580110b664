/* running_set.h -- running text in memory and its windows; read_text.c fills it. */
#ifndef DATA_SETS_RUNNING_SET_H
#define DATA_SETS_RUNNING_SET_H

#include "data/data.h"
#include "data/prefetch.h"
#include "data/sets/line_hashes.h"
#include "text/text.h"
#include "text/vocab.h"

enum { RUNNING_SPLITS = 3 };

typedef struct running_split {
    int32_t *id;    /* [tokens] */
    int64_t tokens; /* 0: no such split */
    int64_t lines, unknown;
    int64_t empty;         /* lines without a word */
    line_hashes hashes;    /* hashes of the other lines; none after the checks */
    int64_t pieces, piece; /* sequences side by side, tokens of each */
    int64_t window;        /* tokens of a sequence in a batch */
    int64_t batches;
} running_split;

typedef struct running_set {
    vocab *words;
    running_split split[RUNNING_SPLITS];
    int64_t limit, vocab_size;
    bool eos_of_empty, bytes;
    int32_t *input[PREFETCH_SLOTS], *output[PREFETCH_SLOTS]; /* batches */
} running_set;

/* bytes: tokens are bytes, not words. */
sr_status running_set_create(running_set *s, const data_options *o, bool bytes, sr_failure *why);
void running_set_free(running_set *s);
/* Counts training words, makes the dictionary, converts every text into ids. lines: of each text;
 * byte NULL: no such split. The texts may be freed afterwards. */
sr_status running_set_build(running_set *s, const file_bytes text[RUNNING_SPLITS],
                            const int64_t lines[RUNNING_SPLITS], sr_failure *why);
/* The last step: windows. path [RUNNING_SPLITS]; "": no such split. */
sr_status running_set_plan(running_set *s, const char *const *path, sr_failure *why);
/* In the buffers of a slot. */
void running_set_batch(running_set *s, int slot, data_split split, int64_t index, batch *b);

#endif
