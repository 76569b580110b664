/* task_images.c -- classes of images: softmax cross entropy.
 *
 * Top-5: an image is right when fewer than five classes precede its own. A class precedes with a
 * larger logit, or with an equal one and a lower number; NaN precedes everything. With five classes
 * or fewer every answer would be right: top-5 is NaN there.
 */
#include <math.h>
#include <stdio.h>

#include "task/task_rows.h"

enum { TOP = 5, METRIC_TOP5 = METRIC_ACCURACY + 1 };
enum { COUNT_TOP5, COUNT_RANKED, COUNTS }; /* indices in task_sums */

static tensor *images_loss(const task_options *o, const pass *p, tensor *output, task_sums *sum) {
    tensor *loss = task_cross_entropy(o, &task_images, p, output, p->batch->label, -1, -1, sum);
    const int64_t classes = loss ? tensor_features(output) : 0;
    if (classes <= TOP) return loss;
    sum->count[COUNT_RANKED] = tensor_rows(output);
    for (int64_t r = 0; r < tensor_rows(output); r++) {
        const real *logit = output->value + r * classes;
        const int64_t label = p->batch->label[r];
        int64_t before = logit[label] != logit[label] ? classes : 0; /* classes that precede */
        for (int64_t v = 0; v < label; v++) before += !(logit[v] < logit[label]);
        for (int64_t v = label + 1; v < classes; v++) before += !(logit[v] <= logit[label]);
        sum->count[COUNT_TOP5] += before < TOP;
    }
    return loss;
}

static void images_measure(const task_sums *sum, double *value) {
    const double ranked = (double)sum->count[COUNT_RANKED];
    task_measure_cross_entropy(sum, value);
    value[METRIC_TOP5] = ranked > 0 ? 100 * (double)sum->count[COUNT_TOP5] / ranked : NAN;
}

static void images_describe(const task_result *r, char text[TASK_TEXT]) {
    double value[TASK_METRICS];
    char top[TASK_TEXT / 4] = "";
    images_measure(r->sum, value);
    if (!isnan(value[METRIC_TOP5]))
        snprintf(top, sizeof top, ", top-5 %.2f %%,", value[METRIC_TOP5]);
    snprintf(text, TASK_TEXT, "%s accuracy: %.2f %%%s of %lld images (running statistics)",
             r->split, value[METRIC_ACCURACY], top, (long long)r->sum->tokens);
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
    .metric = {CROSS_ENTROPY_METRICS("image"),
               {"top5", "percent", "targets among the five largest logits; NaN below six classes",
                BETTER_MORE}},
    .counts = COUNTS,
    .leading = METRIC_ACCURACY,
    .example = {.task = TASK_IMAGES, .height = 32, .width = 32, .channels = 3, .classes = 10},
    .loss = images_loss,
    .measure = images_measure,
    .describe = images_describe,
    .arrays = images_arrays,
};
