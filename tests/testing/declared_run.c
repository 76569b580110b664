#include "testing/declared_run.h"

#include <math.h>

#include "testing/programs.h"

static void add_sites(sr_recorder *r, const declared_run *run) {
    static const char *const names[] = {"stem", "top"};
    for (int i = 0; i < 2; i++) {
        sr_add_site(r, &(sr_site){.size = sizeof(sr_site),
                                  .name = names[i],
                                  .norm = "mine",
                                  .kind = "block",
                                  .width = run->width,
                                  .depth = i,
                                  .eps = 0,
                                  .alpha = NAN});
        if (run->observed) sr_set_observed(r, i);
    }
}

typedef struct numbers {
    int clip, cosine, share, another;
} numbers;

static numbers declare(sr_recorder *r, const declared_run *run) {
    return (numbers){
        .clip = sr_declare_scalar(r, "g_clip", run->unit, "what was cut off", SR_PER_SITE),
        .cosine = sr_declare_scalar(r, "net-cosine", "1", "of two gradients", SR_PER_SITE),
        .share = sr_declare_scalar(r, "clip_share", "percent", "steps cut so far", SR_PER_STEP),
        .another = run->another
                       ? sr_declare_scalar(r, run->another, "metres", "another", SR_PER_SITE)
                       : -1};
}

static void put(sr_recorder *r, const declared_run *run, const numbers *n, int step) {
    for (int i = 0; i < 2; i++) {
        sr_put_scalar(r, i, n->clip, run->scale * (i + 1) * step);
        if (i == 1) sr_put_scalar(r, i, n->cosine, (step % 2 ? 1 : -1) * (step > 20 ? 0.5 : 1));
        if (run->another) sr_put_scalar(r, i, n->another, 5);
    }
    sr_put_step_scalar(r, n->share, run->scale * step);
}

void write_declared_run(const declared_run *run) {
    sr_options o = run_options();
    o.seed = run->seed;
    sr_recorder *r = run_create(program_file(run->path), o);
    add_sites(r, run);
    numbers n = {0};
    if (run->unit) n = declare(r, run);
    for (int step = 1; step <= DECLARED_STEPS; step++) {
        sr_begin_step(r, step);
        sr_put_rows(r, 0, 4), sr_put_rows(r, 1, 4);
        if (run->unit) put(r, run, &n, step);
        run_end_step(r, step);
    }
    run_finish(r);
}
