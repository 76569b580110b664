/* norm_site.h -- a normalization layer: norm.c does for every method what is not mathematics: valid rows,
 * parameters, tape, layer scale, hooks. */
#ifndef NORM_NORM_SITE_H
#define NORM_NORM_SITE_H

#include "engine/params.h"
#include "norm/kernels/norm_method.h"

typedef struct norm_site norm_site;

/* What a watcher sees: a function that a layer calls with what it found in a pass. Pointers are valid
 * during the call only. */
typedef struct norm_view {
    const norm_site *site;
    const norm_call *call;
    const real *x;  /* [rows, d] the tensor that the method normalises. After a layer scale be sure
                       of it only with norm_site.want_input: NULL where it is not in memory */
    const real *y;  /* [rows, d] forward only */
    const real *dy; /* [rows, d] backward only */
    const real *dx; /* [rows, d] backward only: dL/dx of the x above, before any sum; after a layer
                       scale only with want_input, otherwise NULL */
} norm_view;

typedef void norm_hook_fn(void *context, const norm_view *o);

/* What batch normalization and PN-V would find at a site that uses something else (bn_observer.c). */
typedef struct norm_observer_state {
    double eps, alpha;          /* in use: the method's own where it has them */
    uint32_t vectors;           /* NORM_BITs that it leaves in norm_call.stat */
    double *mu, *sigma2, *psi2; /* [features] running values; owned; no part of the model's state */
} norm_observer_state;

struct norm_site {
    char name[PARAM_NAME]; /* "encoder.0.norm1" */
    char kind[16];         /* "conv", "linear", "encoder", "decoder" */
    int depth;             /* place in the order of the forward pass, from 0 */
    int parameters_before; /* of the model, made before this layer and its own */
    int64_t features;
    const norm_method *method;
    norm_options options;
    tensor *gamma, *beta;          /* parameters, or NULL */
    tensor *own[NORM_OWN_MAX];     /* the method's own, or NULL */
    double *state[NORM_STATE_MAX]; /* [state_count] each; owned; NULL past the method's last */
    int64_t state_count[NORM_STATE_MAX]; /* features, or rows * features */
    real *ones, *zeros;                  /* [features]; owned */
    int64_t calls;
    norm_hook_fn *forward_hook, *backward_hook; /* NORM_TRAIN calls only; may be NULL */
    void *hook_context;
    bool takes_positions; /* rows->position_mean is part of the mean of this site's input */
    bool hook_frozen;     /* the forward watcher is called in NORM_BATCH too */
    bool never_running;   /* NORM_RUNNING calls are NORM_BATCH ones here, but of rows outside */
    bool frozen;          /* NORM_TRAIN calls are NORM_RUNNING ones here, with rows->frozen */
    bool want_rows;
    bool want_input;               /* watchers look at x and dx even behind a layer scale */
    norm_observer_state *observer; /* owned; NULL unless norm_site_observe_batch asked for it */
};

/* Makes a layer; its parameters go into p as NAME.gamma, NAME.beta and NAME with the method's own
 * names. */
sr_status norm_site_init(norm_site *s, params *p, const char *name, const char *kind, int depth,
                         int64_t features, const norm_method *method, const norm_options *options,
                         sr_failure *why);
void norm_site_free(norm_site *s);

/* From now on every NORM_TRAIN call also leaves the statistics of bn and pnv in norm_call.stat, as
 * if they stood here with this site's gain; y, dx, gradients and state keep their bytes. sum_g and
 * sum_gx are then those of xhat = (x - mu_B)/sqrt(sigma2_B + eps). alpha: for running values of a
 * method that has none. */
sr_status norm_site_observe_batch(norm_site *s, double alpha, sr_failure *why);
/* Whether evaluation takes running values, so that NORM_RUNNING and NORM_BATCH differ. */
bool norm_site_has_running(const norm_site *s);
/* From now on (or no longer) running statistics keep their values and training normalizes by them, where
 * the site has some: docs/norms.md 24. */
void norm_site_freeze(norm_site *s, bool frozen);
/* The method whose batch statistics the observer takes: its defaults hold where a site's own has
 * none. */
const norm_method *norm_observer(void);
/* NORM_BITs and NORM_SCALAR_BITs of the statistics that a watcher of this site finds filled. */
uint32_t norm_site_vectors(const norm_site *s);
uint32_t norm_site_scalars(const norm_site *s);

/* y = method(x). x [..., d]; rows->rows must be tensor_rows(x). rows must stay until backward. */
tensor *norm_apply(norm_site *s, tape *t, tensor *x, const norm_rows *rows);

/* The weight in front of a site as its method wants it: w, or w minus its mean over the inputs of
 * each output unit (MABN). w [outputs, ...]: the first dimension is the output units. */
tensor *norm_weight(const norm_site *s, tape *t, tensor *w);

#endif
