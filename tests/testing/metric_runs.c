#include "testing/metric_runs.h"

#include <math.h>

#include "testing/check.h"
#include "testing/sample_run.h"

const sr_finish metrics_complete = {.size = sizeof(sr_finish), "complete", "", ""};

sr_recorder *metrics_create(const char *name) {
    sr_failure why = {0};
    sr_options o = SR_OPTIONS_DEFAULT;
    o.overhead = 0;
    o.force = true;
    sr_recorder *r = sr_create(sample_path(name), &o, &why);
    if (!r) fail_msg("%s", why.text);
    return r;
}

void metrics_put_step(sr_recorder *r, int64_t step) {
    sr_begin_step(r, step);
    sr_end_step(r, &(sr_step){.size = sizeof(sr_step), step, 1, 1, 1, 1, 1});
}

void metrics_finish(sr_recorder *r) {
    sr_failure why = {0};
    check_ok(sr_close(r, &metrics_complete, &why), &why);
}

double metrics_value(const sr_runfile *f, const char *name, int64_t row) {
    sr_failure why = {0};
    double value = 0;
    check_ok(sr_run_eval(f, name, row, 1, &value, &why), &why);
    return value;
}

void metrics_write(const char *name) {
    sr_recorder *r = metrics_create(name);
    sr_add_metric(r, "wer", "percent", "word errors", SR_BETTER_LESS);
    sr_add_metric(r, "f1", "percent", "span F1 of the validation set", SR_BETTER_MORE);
    sr_add_metric(r, "size", NULL, NULL, SR_BETTER_NEITHER);
    metrics_put_step(r, 1);
    sr_begin_eval(r, 1, 0.25);
    sr_put_metric(r, "f1", 60);
    sr_put_metric(r, "wer", 12);
    sr_end_eval(r);
    metrics_put_step(r, 2);
    sr_begin_eval(r, 2, NAN);
    sr_put_metric(r, "size", 1e9);
    check_ok(sr_end_eval(r), sr_failed(r));
    metrics_finish(r);
}
