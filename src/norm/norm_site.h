/* norm_site.h -- a normalization layer. norm.c does all that is not a method's mathematics: valid
 * rows, parameters, tape, layer scale, hooks. */
#ifndef NORM_NORM_SITE_H
#define NORM_NORM_SITE_H

#include "engine/params.h"
#include "norm/kernels/norm_method.h"

typedef struct norm_site norm_site;

/* A hook's view of one pass of a layer. Pointers are valid during the call only. */
typedef struct norm_view {
    const norm_site *site;
    const norm_call *call;
    /* [rows, d] the input of the method. NULL after a layer scale without norm_site.want_input,
     * when it is not in memory. */
    const real *x;
    const real *y;  /* [rows, d] forward only */
    const real *dy; /* [rows, d] backward only */
    /* [rows, d] backward only: dL/dx of the x above, before any sum. NULL after a layer scale
     * without want_input. */
    const real *dx;
} norm_view;

typedef void norm_hook_fn(void *context, const norm_view *o);

/* Statistics of batch normalization and PN-V at a site with another method (bn_observer.c). */
typedef struct norm_observer_state {
    double eps, alpha; /* the method's own, if it has them */
    uint32_t vectors;  /* NORM_BITs that it fills in norm_call.stat */
    /* [features] running statistics; owned; not part of the model's state */
    double *mu, *sigma2, *psi2;
} norm_observer_state;

struct norm_site {
    char name[PARAM_NAME]; /* "encoder.0.norm1" */
    char kind[16];         /* "conv", "linear", "encoder", "decoder" */
    int depth;             /* index in the order of the forward pass, from 0 */
    int parameters_before; /* parameters of the model before this layer's own */
    int64_t features;
    const norm_method *method;
    norm_options options;
    tensor *gamma, *beta;          /* parameters, or NULL */
    tensor *own[NORM_OWN_MAX];     /* the method's own, or NULL */
    double *state[NORM_STATE_MAX]; /* [state_count] each; owned; NULL past the method's last */
    int64_t state_count[NORM_STATE_MAX]; /* features, or rows * features */
    real *ones, *zeros;                  /* [features]; owned */
    int64_t calls;
    /* Called in training, with frozen statistics too; may be NULL. */
    norm_hook_fn *forward_hook, *backward_hook;
    void *hook_context;
    bool takes_positions;    /* rows->position_mean is part of the mean of this site's input */
    bool hook_in_batch_mode; /* the forward hook is called in NORM_BATCH too */
    bool never_running; /* treat NORM_RUNNING as NORM_BATCH, except for rows outside the batch */
    bool frozen;        /* treat NORM_TRAIN as NORM_RUNNING, with rows->frozen */
    bool want_rows;
    bool want_input;               /* hooks see x and dx even after a layer scale */
    norm_observer_state *observer; /* owned; NULL before norm_site_observe_batch */
};

/* Makes a layer. Its parameters go into p as NAME.gamma and NAME.beta, and NAME with the method's
 * own names. */
sr_status norm_site_init(norm_site *s, params *p, const char *name, const char *kind, int depth,
                         int64_t features, const norm_method *method, const norm_options *options,
                         sr_failure *why);
void norm_site_free(norm_site *s);

/* From now on every NORM_TRAIN call also fills the statistics of bn and pnv in norm_call.stat,
 * computed with this site's gain. y, dx, gradients and state keep their bits. sum_g and sum_gx then
 * belong to xhat = (x - mu_B)/sqrt(sigma2_B + eps). alpha: for methods without running
 * statistics. */
sr_status norm_site_observe_batch(norm_site *s, double alpha, sr_failure *why);
/* Whether evaluation uses running statistics, so that NORM_RUNNING and NORM_BATCH differ. */
bool norm_site_has_running(const norm_site *s);
/* Freezes running statistics (or ends it): they keep their values, and training normalizes with
 * them, if the site has some (docs/norms.md 24). */
void norm_site_freeze(norm_site *s, bool frozen);
/* The method whose statistics the observer computes. Its defaults apply where a site has none. */
const norm_method *norm_observer(void);
/* NORM_BITs and NORM_SCALAR_BITs of the statistics that a hook of this site finds. */
uint32_t norm_site_vectors(const norm_site *s);
uint32_t norm_site_scalars(const norm_site *s);

/* y = method(x). x [..., d]; rows->rows equals tensor_rows(x). rows must stay valid until
 * backward. */
tensor *norm_apply(norm_site *s, tape *t, tensor *x, const norm_rows *rows);

/* The weight before a site as its method wants it: w, or w minus its mean over the inputs of each
 * output unit (MABN). w [outputs, ...]. */
tensor *norm_weight(const norm_site *s, tape *t, tensor *w);

#endif
