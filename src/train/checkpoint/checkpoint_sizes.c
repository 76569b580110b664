/* checkpoint_sizes.c -- the sizes of the data in a checkpoint: their names and their ranges.
 *
 * A checkpoint may come from a stranger. Its sizes decide how much memory a model takes and where
 * its rows are, so they are checked before a model is built. */
#include <stddef.h>
#include <string.h>

#include "train/checkpoint/checkpoint.h"

enum {
    ABSENT = -1,         /* data of this task have no such size: 0 */
    WORDS = 1 << 30,     /* ids are int32_t */
    SIDE_MOST = 1 << 16, /* side of an image, in pixels */
    OLDEST_SIZES = 7,    /* checkpoints of other tasks have only these */
};
static const int64_t COUNT_MOST = (int64_t)1 << 53; /* steps, tokens: exact as a double */

/* The least value in data of each task, in the order of enum task. */
static const struct {
    const char *name;
    size_t offset;
    int64_t most, least[TASK_TREES + 1];
} size_rows[] = {
#define SIZE(name, most, ...)                                                                      \
    {                                                                                              \
#name, offsetof(data_shape, name), most, {                                                 \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
    /*                       images, pairs, lm, sentences, tags, trees */
    SIZE(height, SIDE_MOST, 1, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT),
    SIZE(width, SIDE_MOST, 1, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT),
    SIZE(channels, SIDE_MOST, 1, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT),
    SIZE(classes, WORDS, 1, ABSENT, ABSENT, 1, 1, 1),
    SIZE(vocabulary, WORDS, ABSENT, TOKEN_FIRST_WORD, 1, TOKEN_FIRST_WORD, TOKEN_FIRST_WORD, 1),
    SIZE(longest, WORDS, ABSENT, 1, 1, 1, 0, ABSENT),
    SIZE(target_vocabulary, WORDS, ABSENT, 0, ABSENT, ABSENT, ABSENT, ABSENT),
    SIZE(characters, WORDS, ABSENT, ABSENT, ABSENT, ABSENT, 1, ABSENT),
    SIZE(pos_tags, WORDS, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, 1),
    SIZE(arc_labels, WORDS, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, 0),
#undef SIZE
};

const char *checkpoint_size(data_shape *shape, int i, int64_t **size) {
    const int count = (int)(sizeof size_rows / sizeof *size_rows);
    const bool has_all = shape->task == TASK_TAGS || shape->task == TASK_TREES;
    if (i >= (has_all ? count : OLDEST_SIZES)) return NULL;
    *size = (int64_t *)((char *)shape + size_rows[i].offset);
    return size_rows[i].name;
}

sr_status checkpoint_check_sizes(const data_shape *shape, const char *path, sr_failure *why) {
    data_shape copy = *shape;
    int64_t *size;
    const char *name;
    for (int i = 0; (name = checkpoint_size(&copy, i, &size)); i++) {
        const int64_t given = size_rows[i].least[shape->task];
        const int64_t least = given == ABSENT ? 0 : given;
        const int64_t most = given == ABSENT ? 0 : size_rows[i].most;
        /* 0, or a second dictionary */
        const bool few = size == &copy.target_vocabulary && *size > 0 && *size < TOKEN_FIRST_WORD;
        if (*size >= least && *size <= most && !few) continue;
        return sr_fail(why, SR_FORMAT, "%s: %s is %lld, not %lld to %lld", path, name,
                       (long long)*size, (long long)(few ? TOKEN_FIRST_WORD : least),
                       (long long)most);
    }
    return SR_OK;
}

sr_status checkpoint_check_progress(const char *path, const char *name, const npz_array *a,
                                    sr_failure *why) {
    if (a->type != NPZ_INT64 || !strcmp(name, "random_key")) return SR_OK; /* any bits are a key */
    /* sums of the last validation; models of a likelihood count -1 correct for each token */
    const int64_t least = strncmp(name, "valid_", 6) ? 0 : -COUNT_MOST;
    for (int64_t i = 0; i < npz_count(a); i++) {
        const int64_t value = ((const int64_t *)a->data)[i];
        if (value < least || value > COUNT_MOST)
            return sr_fail(why, SR_FORMAT, "%s: progress/%s is %lld, not %lld to %lld", path, name,
                           (long long)value, (long long)least, (long long)COUNT_MOST);
    }
    return SR_OK;
}
