/* optim.h -- optimizers (one file optim_*.c and one table row each), learning rate schedules and
 * the norm of all gradients. Formulas: docs/models.md 9. */
#ifndef TRAIN_OPTIM_OPTIM_H
#define TRAIN_OPTIM_OPTIM_H

#include "engine/params.h"

typedef struct optim_options {
    double momentum;     /* sgd */
    bool nesterov;       /* sgd */
    double beta1, beta2; /* adam family */
    double eps;          /* adam family */
    double adagrad_eps;
    double weight_decay;
} optim_options;

/* One update: gradient of every number is grad * scale. */
typedef struct optim_step {
    const optim_options *options;
    int64_t count; /* updates, this one included: t of the formulas */
    double lr;
    double scale; /* 1/tokens times the clipping factor */
    int threads;
} optim_step;

typedef struct optim_row {
    const char *name, *citation, *summary;
    /* keys of the options that it obeys and not each one does, between blanks */
    const char *options;
    int slots; /* state vectors per parameter */
    /* p, slot[0], slot[1] [n] are updated from g [n]. */
    void (*update)(const optim_step *s, int64_t n, real *p, const real *g, real *first,
                   real *second);
} optim_row;

const optim_row *optim_find(const char *name); /* NULL when unknown */
const optim_row *optim_at(int i);              /* NULL past the end */

/* True when the optimizer obeys the option with this key. */
bool optim_obeys(const char *name, const char *key);

/* Every parameter once. */
void optim_apply(const optim_row *row, const optim_step *s, params *p);

/* Euclidean norm of all gradients, in double, fixed chunks: same bytes for any thread count.
 * SR_USAGE where one is forgotten and not settled (params.h). */
sr_status optim_grad_norm(const params *p, int threads, double *norm, sr_failure *why);

/* Every gradient to [-bound, bound]. */
void optim_clip_values(params *p, int threads, double bound);
/* Factor that clips gradients of this norm to the limit. */
double optim_clip_factor(double norm, double bound);

typedef enum {
    SCHEDULE_FIXED,
    SCHEDULE_STEP,
    SCHEDULE_COSINE,
    SCHEDULE_LINEAR,
    SCHEDULE_INVERSE_SQRT,
    SCHEDULE_INVERSE_SQRT_XL
} schedule_kind;

enum { SCHEDULE_STEPS_MAX = 16 };

typedef struct schedule {
    schedule_kind kind;
    double lr;          /* the peak */
    double warmup_init; /* value at update 0 of a warm-up */
    int64_t warmup;     /* updates of linear warm-up; 0 = none */
    int64_t total;      /* cosine, linear: updates until the end */
    double lowest;      /* cosine: value at the end */
    double factor;      /* step: multiplied at each milestone */
    int milestones;
    double milestone[SCHEDULE_STEPS_MAX]; /* step: in epochs or updates */
    bool milestone_updates;               /* they count updates */
} schedule;

/* Learning rate of update u + 1, u = updates already made, `epoch` = epochs already passed
 * (a fraction). */
double schedule_lr(const schedule *s, int64_t u, double epoch);

/* Appends the milestones of "6,9", positive and ascending. */
sr_status schedule_read_milestones(schedule *s, const char *text, sr_failure *why);

#endif
