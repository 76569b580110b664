/* image_set.c -- batches of labelled images.
 *
 * Normalization (docs/models.md 1.1):
 *     x = (byte / 255 - m) / s                        (s = 1 for a channel that is constant)
 * m and s are mean and standard deviation of a channel of the training images scaled to [0, 1].
 * They cover all pixels; the divisor is their number.
 * Augmentation of training batches: IMAGE_PAD zero pixels on each side, (0 - m) / s after
 * normalization. Then a crop of the original size at an offset uniform on 0 .. 2 IMAGE_PAD in each
 * direction, mirrored with probability 1/2. The draw is a function of (seed, epoch, image number).
 * The last batch of a pass may be smaller. Output is [image, row, column, channel].
 */
#include "data/sets/image_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "data/dataset.h"

sr_status image_set_create(image_set *s, const data_options *o, image_size size, sr_failure *why) {
    *s = (image_set){.size = size};
    s->batch_size = o->batch_size;
    s->augment = o->augment;
    s->seed = o->seed;
    if (o->batch_size < 1)
        return sr_fail(why, SR_USAGE, "batch-size %lld is below 1", (long long)o->batch_size);
    return SR_OK;
}

void image_set_free(image_set *s) {
    for (int i = 0; i < IMAGE_SPLITS; i++) free(s->split[i].pixel), free(s->split[i].label);
    for (int i = 0; i < PREFETCH_SLOTS; i++)
        free(s->slot[i].order.item), free(s->slot[i].image), free(s->slot[i].label);
    *s = (image_set){0};
}

static int64_t pixels_of(const image_set *s) {
    return s->size.height * s->size.width * s->size.channels;
}

sr_status image_set_grow(image_set *s, data_split split, int64_t more, sr_failure *why) {
    image_split *p = &s->split[split];
    if (more > INT64_MAX / pixels_of(s) / 2 - p->count)
        return sr_fail(why, SR_MEMORY, "out of memory for %lld images", (long long)more);
    size_t count = (size_t)(p->count + more);
    uint8_t *pixel = realloc(p->pixel, count * (size_t)pixels_of(s));
    if (pixel) p->pixel = pixel;
    uint8_t *label = realloc(p->label, count);
    if (label) p->label = label;
    if (!pixel || !label) return sr_fail(why, SR_MEMORY, "out of memory for %zu images", count);
    p->count = (int64_t)count;
    return SR_OK;
}

sr_status image_set_divide(image_set *s, int64_t held_out, int64_t limit, sr_failure *why) {
    image_split *train = &s->split[SPLIT_TRAIN], *valid = &s->split[SPLIT_VALID];
    if (held_out > 0) {
        if (held_out >= train->count)
            return sr_fail(why, SR_USAGE, "valid-images %lld: there are %lld training images",
                           (long long)held_out, (long long)train->count);
        sr_status status = image_set_grow(s, SPLIT_VALID, held_out, why);
        if (status != SR_OK) return status;
        train->count -= held_out;
        const size_t size = (size_t)pixels_of(s), from = (size_t)train->count;
        memcpy(valid->pixel, train->pixel + from * size, (size_t)held_out * size);
        memcpy(valid->label, train->label + from, (size_t)held_out);
    }
    if (limit > 0 && train->count > limit) train->count = limit;
    return SR_OK;
}

/* Exact mean and deviation of channel c from the count of each byte value, in two passes. */
static void measure_channel(image_set *s, int c, const int64_t count[256]) {
    double total = 0, sum = 0, squares = 0;
    for (int v = 0; v < 256; v++) total += (double)count[v], sum += (double)count[v] * v / 255;
    double mean = sum / total;
    for (int v = 0; v < 256; v++) squares += (double)count[v] * pow(v / 255.0 - mean, 2);
    double deviation = sqrt(squares / total);
    s->mean[c] = mean;
    s->deviation[c] = deviation > 0 ? deviation : 1;
    for (int v = 0; v < 256; v++) s->value[c][v] = (real)((v / 255.0 - mean) / s->deviation[c]);
}

sr_status image_set_finish(image_set *s, sr_failure *why) {
    int64_t count = s->split[SPLIT_TRAIN].count, most = 0;
    if (count == 0) return sr_fail(why, SR_FORMAT, "no training images");
    for (int i = 0; i < IMAGE_SPLITS; i++)
        if (s->split[i].count > most) most = s->split[i].count;
    if (s->batch_size < most) most = s->batch_size;
    int64_t counts[IMAGE_CHANNELS_MOST][256] = {{0}};
    const int channels = (int)s->size.channels;
    const uint8_t *at = s->split[SPLIT_TRAIN].pixel;
    for (int64_t i = 0; i < count * s->size.height * s->size.width; i++)
        for (int c = 0; c < channels; c++) counts[c][*at++]++;
    for (int c = 0; c < channels; c++) measure_channel(s, c, counts[c]);
    bool made = true;
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        image_buffers *p = &s->slot[i];
        p->order.item = malloc((size_t)count * sizeof *p->order.item);
        p->image = malloc((size_t)most * (size_t)pixels_of(s) * sizeof *p->image);
        p->label = malloc((size_t)most * sizeof *p->label);
        made = made && p->order.item && p->image && p->label;
    }
    if (!made)
        return sr_fail(why, SR_MEMORY, "out of memory for batches of %lld images", (long long)most);
    return SR_OK;
}

int64_t image_set_batches(const image_set *s, data_split split) {
    int64_t count = s->split[split].count;
    return count / s->batch_size + (count % s->batch_size > 0);
}

/* One image, its window moved by (down, right) over the padded image, whose border is 0. */
static void convert_image(const image_set *s, const uint8_t *pixel, int64_t down, int64_t right,
                          bool mirror, real *out) {
    const int64_t width = s->size.width, height = s->size.height, channels = s->size.channels;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            const int64_t row = y + down, column = right + (mirror ? width - 1 - x : x);
            const bool inside = row >= 0 && row < height && column >= 0 && column < width;
            const uint8_t *from = pixel + (row * width + column) * channels;
            for (int64_t c = 0; c < channels; c++) *out++ = s->value[c][inside ? from[c] : 0];
        }
}

void image_set_batch(image_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                     batch *b) {
    image_buffers *to = &s->slot[slot];
    const image_split *p = &s->split[split];
    bool train = split == SPLIT_TRAIN;
    int64_t first = index * s->batch_size, left = p->count - first, size = pixels_of(s);
    *b = (batch){.task = TASK_IMAGES, .count = left < s->batch_size ? left : s->batch_size};
    b->height = s->size.height, b->width = s->size.width, b->channels = s->size.channels;
    b->image = to->image, b->label = to->label, b->tokens = b->count;
    const uint64_t key = data_stream(s->seed, STREAM_AUGMENT, (uint64_t)epoch).key;
    if (train) epoch_order_set(&to->order, s->seed, epoch, p->count, true);
    for (int64_t i = 0; i < b->count; i++) {
        int64_t n = train ? to->order.item[first + i] : first + i;
        int64_t down = 0, right = 0;
        uint64_t draw = 0;
        if (train && s->augment) {
            const uint64_t offsets = 2 * IMAGE_PAD + 1;
            draw = rng_at(key, (uint64_t)n);
            down = (int64_t)(draw % offsets) - IMAGE_PAD;
            right = (int64_t)(draw / offsets % offsets) - IMAGE_PAD;
        }
        convert_image(s, p->pixel + n * size, down, right, draw >> 63, to->image + i * size);
        to->label[i] = p->label[n];
    }
}
