/* task_images.c -- classes of images: softmax cross entropy. */
#include <stdio.h>

#include "task_rows.h"

static tensor *images_loss(const task_options *o, const pass *p, tensor *output, task_sums *sum) {
    return task_cross_entropy(o, &task_images, p, output, p->batch->label, -1, -1, sum);
}

static void images_describe(const task_result *r, char text[TASK_TEXT]) {
    double value[TASK_METRICS];
    task_measure_cross_entropy(r->sum, value);
    snprintf(text, TASK_TEXT, "%s accuracy: %.2f %% of %lld images (running statistics)", r->split,
             value[METRIC_ACCURACY], (long long)r->sum->tokens);
}

static int images_arrays(const batch *b, task_array array[TASK_ARRAYS]) {
    const npz_type type = sizeof(real) == sizeof(double) ? NPZ_FLOAT64 : NPZ_FLOAT32;
    array[0] = (task_array){
        "image", {type, 4, {b->count, b->height, b->width, b->channels}, (void *)b->image}};
    array[1] = (task_array){"label", {NPZ_INT32, 1, {b->count}, (void *)b->label}};
    return 2;
}

const task_row task_images = {
    .id = TASK_IMAGES,
    .name = "images",
    .takes = "images",
    .summary = "one class per image, cross entropy",
    .metric = {CROSS_ENTROPY_METRICS("image")},
    .leading = METRIC_ACCURACY,
    .example = {.task = TASK_IMAGES, .height = 32, .width = 32, .channels = 3, .classes = 10},
    .loss = images_loss,
    .measure = task_measure_cross_entropy,
    .describe = images_describe,
    .arrays = images_arrays,
};
