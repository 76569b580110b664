/* model_common.c -- what every model asks of its options. */
#include <math.h>

#include "model_rows.h"

const norm_method *model_norm_method(const char *name, sr_failure *why) {
    const norm_method *method = norm_find(name);
    if (!method) sr_fail(why, SR_USAGE, "normalization '%s' is not known", name);
    return method;
}

double model_default(double given, double preset) {
    return isnan(given) ? preset : given;
}

/* The 0.95 in a method's row is the value of the text releases; image networks run PyTorch's 0.9
 * (norms.md 2). */
norm_options model_norm_options(const model_options *o, const norm_method *method, task kind) {
    norm_options n = norm_options_preset(method);
    if (kind == TASK_IMAGES && n.alpha == 0.95) n.alpha = 0.9;
    n.eps = model_default(o->norm_eps, n.eps);
    if (method->alpha > 0) n.alpha = model_default(o->norm_alpha, n.alpha);
    n.layer_scale = o->layer_scale;
    return n;
}
