/* image_set.h -- labelled images in memory, filled by read_*.c and synth_*.c, and their batches. */
#ifndef DATA_SETS_IMAGE_SET_H
#define DATA_SETS_IMAGE_SET_H

#include "data/prefetch.h"
#include "data/sets/epoch_order.h"

enum { IMAGE_CHANNELS_MOST = 3, IMAGE_PAD = 4, IMAGE_SPLITS = 3 };

typedef struct image_size {
    int64_t height, width, channels, classes; /* 1 <= channels <= IMAGE_CHANNELS_MOST */
} image_size;

typedef struct image_split {
    int64_t count;  /* 0: no such split */
    uint8_t *pixel; /* [count, height, width, channels] */
    uint8_t *label; /* [count] */
} image_split;

/* Buffers of a batch. */
typedef struct image_buffers {
    epoch_order order; /* [training count], shuffled by epoch_order_set */
    real *image;       /* [batch_size, height, width, channels] */
    int32_t *label;    /* [batch_size] */
} image_buffers;

typedef struct image_set {
    image_size size;
    image_split split[IMAGE_SPLITS];
    /* Statistics of the training pixels scaled to [0, 1], per channel. */
    double mean[IMAGE_CHANNELS_MOST], deviation[IMAGE_CHANNELS_MOST];
    /* Value of a byte: (byte / 255 - mean) / deviation. */
    real value[IMAGE_CHANNELS_MOST][256];
    int64_t batch_size;
    bool augment;
    uint64_t seed;
    image_buffers slot[PREFETCH_SLOTS];
} image_set;

/* Sizes and options of an empty set. */
sr_status image_set_create(image_set *s, const data_options *o, image_size size, sr_failure *why);
void image_set_free(image_set *s);
/* Appends `more` images to a split, contents undefined. */
sr_status image_set_grow(image_set *s, data_split split, int64_t more, sr_failure *why);
/* Moves the last `held_out` training images to the validation split, which must be empty. Keeps the
 * first `limit` of the others; 0: all. SR_USAGE when nothing is left to learn from. */
sr_status image_set_divide(image_set *s, int64_t held_out, int64_t limit, sr_failure *why);
/* After the last image: mean, deviation, table, buffers. SR_FORMAT without training images. */
sr_status image_set_finish(image_set *s, sr_failure *why);

int64_t image_set_batches(const image_set *s, data_split split);
void image_set_batch(image_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                     batch *b);

#endif
