/* synth_images.c -- generated images of ten classes, for machines without data.
 *
 * A picture of 32 x 32 pixels shows one object before a background. The class is the object's shape
 * (disc, ring, square, plus, triangle) and
 *     label = 2 * shape + direction
 * the direction of the stripes inside it (across, upright). Everything else is random: centre,
 * radius, tilt of object and stripes, length and phase of the stripes. So are both colours, a
 * background gradient between two colours, and uniform noise on every byte. Mirroring changes no
 * label.
 *
 * A linear function of the pixels cannot separate the classes. Phase and colours give every pixel
 * the same expectation in all classes, as far as the outlines allow. Nor does the nearest neighbour
 * help, since colours and places weigh more than the class. Members of a class share local contrast
 * in a direction and the outline around it.
 *
 * Image n of a split is a function of (seed, split, n): fewer images are the first ones of more.
 */
#include <math.h>

#include "base/rng.h"
#include "data/dataset.h"

enum { SIDE = 32, CHANNELS = 3, CLASSES = 10, TRAIN_COUNT = 6400, VALID_COUNT = 1000 };
typedef enum { DISC, RING, SQUARE, PLUS, TRIANGLE, SHAPES } shape;

static const double radius_low = 8, radius_high = 12, tilt_most = 0.25;     /* pixels; radians */
static const double wave_low = 4, wave_high = 6;                            /* pixels */
static const double contrast_low = 0.15, contrast_high = 0.45, noise = 0.1; /* of full scale */

typedef struct scene {
    shape shape;
    bool upright;
    double x, y, radius, sine, cosine; /* position of the object */
    double wave, phase;                /* length and phase of the stripes */
    double middle[CHANNELS], swing[CHANNELS];
    double from[CHANNELS], to[CHANNELS], down, across; /* background */
} scene;

static double between(rng *r, double low, double high) {
    return low + (high - low) * rng_uniform(r);
}

static scene draw_scene(rng *r, int label) {
    scene s = {.shape = (shape)(label / 2), .upright = label % 2};
    double tilt = between(r, -tilt_most, tilt_most);
    s.radius = between(r, radius_low, radius_high);
    s.x = between(r, s.radius, SIDE - s.radius);
    s.y = between(r, s.radius, SIDE - s.radius);
    s.sine = sin(tilt), s.cosine = cos(tilt);
    s.wave = between(r, wave_low, wave_high);
    s.phase = between(r, 0, 2 * acos(-1.0));
    double angle = between(r, 0, 2 * acos(-1.0));
    s.down = sin(angle) / SIDE, s.across = cos(angle) / SIDE;
    for (int c = 0; c < CHANNELS; c++) {
        s.middle[c] = between(r, 0.3, 0.7);
        s.swing[c] = between(r, contrast_low, contrast_high) * (rng_below(r, 2) ? 1 : -1);
        s.from[c] = between(r, 0.1, 0.9);
        s.to[c] = between(r, 0.1, 0.9);
    }
    return s;
}

/* True inside the shape. u: to the right of its centre, v: downwards, in radii. */
static bool is_inside(shape kind, double u, double v) {
    double distance = u * u + v * v, most = fmax(fabs(u), fabs(v)), least = fmin(fabs(u), fabs(v));
    switch (kind) {
    case DISC:
        return distance < 0.85;
    case RING:
        return distance < 1 && distance > 0.3;
    case SQUARE:
        return most < 0.8;
    case PLUS:
        return most < 1 && least < 0.33;
    default:
        return v < 0.75 && fabs(u) < 0.6 * (v + 0.95);
    }
}

static void shade_pixel(const scene *s, int y, int x, double colour[CHANNELS]) {
    double dx = x - s->x, dy = y - s->y;
    double right = s->cosine * dx + s->sine * dy, below = s->cosine * dy - s->sine * dx;
    double along = 0.5 + s->down * (y - SIDE / 2) + s->across * (x - SIDE / 2);
    bool inside = is_inside(s->shape, right / s->radius, below / s->radius);
    double stripe = 0;
    if (inside) stripe = sin(2 * acos(-1.0) * (s->upright ? right : below) / s->wave + s->phase);
    for (int c = 0; c < CHANNELS; c++)
        colour[c] = inside ? s->middle[c] + s->swing[c] * stripe
                           : s->from[c] + along * (s->to[c] - s->from[c]);
}

static void paint(rng *r, int label, uint8_t *pixel) {
    scene s = draw_scene(r, label);
    for (int i = 0; i < SIDE * SIDE; i++) {
        double colour[CHANNELS];
        shade_pixel(&s, i / SIDE, i % SIDE, colour);
        uint64_t bits = rng_next(r); /* 16 of them for each channel */
        for (int c = 0; c < CHANNELS; c++, bits >>= 16) {
            double v = (double)(bits & 0xffff) / 0xffff;
            v = fmin(1, fmax(0, colour[c] + noise * (2 * v - 1)));
            pixel[i * CHANNELS + c] = (uint8_t)(255 * v + 0.5);
        }
    }
}

static sr_status generate_split(image_set *s, data_split split, int64_t count, sr_failure *why) {
    sr_status status = image_set_grow(s, split, count, why);
    if (status != SR_OK) return status;
    rng root = rng_create(s->seed), uses = rng_split(&root, STREAM_GENERATE);
    rng images = rng_split(&uses, split);
    for (int64_t n = 0; n < count; n++) {
        rng r = rng_split(&images, (uint64_t)n);
        int label = (int)rng_below(&r, CLASSES);
        s->split[split].label[n] = (uint8_t)label;
        paint(&r, label, s->split[split].pixel + n * SIDE * SIDE * CHANNELS);
    }
    return SR_OK;
}

sr_status synth_images_open(dataset *d, const data_options *o, sr_failure *why) {
    sr_status status =
        image_set_create(&d->images, o, (image_size){SIDE, SIDE, CHANNELS, CLASSES}, why);
    int64_t count = o->limit > 0 ? o->limit : TRAIN_COUNT;
    dataset_note(d, "synth-images: generated from seed %llu", (unsigned long long)o->seed);
    if (status == SR_OK) status = generate_split(&d->images, SPLIT_TRAIN, count, why);
    if (status == SR_OK) status = generate_split(&d->images, SPLIT_VALID, VALID_COUNT, why);
    return status == SR_OK ? dataset_finish_images(d, why) : status;
}
