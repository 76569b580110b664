/* norm.h -- normalization layers.
 *
 * A method (norm_method) is a file of mathematics on plain arrays: forward, backward, the
 * persistent vectors it wants, its citation. norm.c does for all of them what is not mathematics:
 * valid rows, parameters, tape, layer scale, watchers. Formulas and names:
 * docs/norms.md, cited by section in each method's file.
 *
 * Contract for padded rows: the layer behaves as if the valid rows had been gathered into an
 * n x d matrix, normalised and scattered back; y and dx are 0 in padded rows. n = 0: y and dx are
 * 0, all running state is left alone and the call is not counted; watchers are called with
 * statistics that are NaN. A method whose row says `padded` reproduces a release that does not
 * follow this contract, and writes the padded rows itself.
 */
#ifndef STATNET_NORM_H
#define STATNET_NORM_H

#include "statnet/params.h"
#include "statnet/tape.h"

/* -- statistics */

/* Vectors [features], in double, that a method leaves in norm_call.stat for watchers. */
#define NORM_VECTORS(X)                                                                            \
    X(mu_B)     /* mean over valid rows */                                                         \
    X(sigma2_B) /* biased variance */                                                              \
    X(psi2_B)   /* mean square */                                                                  \
    X(mu)       /* running values from BEFORE this call's update */                                \
    X(sigma2)                                                                                      \
    X(psi2)                                                                                        \
    X(gamma) /* gain of this call: 1 where there is none, gamma r in BRN and MABN, (1 - lambda)  \
                 * gamma in RepBN, s in unit */ \
    X(sum_g) /* sum over valid rows of g = dL/dy; also dbeta */                                    \
    X(sum_gx)   /* sum over valid rows of g * xhat; also dgamma */                                 \
    X(nu)       /* pn: before the update */                                                        \
    X(Gamma_t)  /* pn: mean of xhat^2 */                                                           \
    X(Lambda_t) /* pn: mean of gamma g xhat */

/* Scalars a method leaves in norm_call.scalar; NaN where it has none. */
#define NORM_SCALARS(X)                                                                            \
    X(row_grad_mean) /* LN family, Theorem 1: mean over valid rows of the row mean of dx, */       \
    X(row_grad_var)  /* of the row's biased variance of dx, */                                     \
    X(row_g_mean)    /* and the same of q = gamma g */                                             \
    X(row_g_var)                                                                                   \
    X(row_exact_mean) /* and the closed form for dx, from q, xhat and s alone: NaN for rmsnorm */  \
    X(row_exact_var)                                                                               \
    X(g_sigma2_rowmean) /* mean over rows of the row norm of this part of dx, divided by d; */     \
    X(g_psi2_rowmean)   /* only when norm_call.want_rows */                                        \
    X(Gamma_max)        /* pn: largest Gamma_t */                                                  \
    X(dx_norm)          /* ||dx||_F over valid rows, of the tensor that the method normalises */   \
    X(direct_norm)      /* ||gamma/s g||_F: dx if the statistics did not depend on x */            \
    X(dx_norm_bn)       /* observed sites: the same two if bn stood there */                       \
    X(direct_norm_bn)                                                                              \
    X(row_free_var) /* LN family: D/s^2, dx if mean and deviation were constants */                \
    X(g_mu)     /* NORM_FAMILY_OWN alone: root mean square over valid rows of the part of dx */    \
    X(g_sigma2) /* that flows through this statistic, divided by d */                              \
    X(g_psi2)

#define NORM_ENUM_VECTOR(name) NORM_##name,
#define NORM_ENUM_SCALAR(name) NORM_SCALAR_##name,
typedef enum { NORM_VECTORS(NORM_ENUM_VECTOR) NORM_VECTOR_COUNT } norm_vector;
typedef enum { NORM_SCALARS(NORM_ENUM_SCALAR) NORM_SCALAR_COUNT } norm_scalar;

/* -- one batch, as every layer of a model sees it */

typedef enum {
    NORM_TRAIN,   /* batch statistics, running state advances */
    NORM_BATCH,   /* batch statistics, running state stays */
    NORM_RUNNING, /* inference: running statistics */
} norm_mode;

/* Fills all [ranks, width] of a synchronised layer: this rank's row is there, those of the others
 * are wanted; NULL: one process. Every rank calls it the same number of times with the same width, a
 * rank without valid rows too. */
typedef sr_status norm_gather_fn(void *context, double *all, int64_t width);

typedef struct norm_rows {
    int64_t rows;          /* all rows, padded ones too */
    int64_t valid;         /* n */
    const uint8_t *mask;   /* [rows], 1 = valid; NULL: all valid */
    const int32_t *index;  /* [valid] numbers of the valid rows, ascending; NULL: all valid */
    const int32_t *sample; /* [rows] sample of each row, 0 .. samples-1, in any order; NULL: each
                              row is its own sample */
    int64_t samples;
    norm_mode mode;
    /* NORM_RUNNING in training (norm_site_freeze): watchers look, and find the statistics of the batch too.
     * The running ones are constants in both passes. */
    bool frozen;
    bool outside;    /* of no batch of this pass: NORM_RUNNING stays, never_running or not */
    double tokens;   /* token count that the loss will be divided by (docs/norms.md 11, 14) */
    double *penalty; /* RBN adds its loss here; may be NULL */
    /* [features] mean over the valid rows of the position encoding that the model added to them;
     * NULL: none. For watchers of the sites that have takes_positions. */
    const double *position_mean;
    norm_gather_fn *gather;
    void *gather_context;
    int rank, ranks; /* of gather */
} norm_rows;

/* Fills rows, valid, mask, index from a mask (NULL: all valid); the index is memory of the tape.
 * A mask of ones leaves mask and index NULL. Other fields are zeroed, mode as given. */
sr_status norm_rows_init(norm_rows *r, tape *t, int64_t rows, const uint8_t *mask, norm_mode mode);

/* -- options */

enum { NORM_PARAM_MAX = 6 };

/* A parameter of one method, declared in its row. */
typedef struct norm_param_row {
    const char *name; /* "lambda" */
    double default_value;
    double low, high;  /* accepted range, both ends included */
    const char *words; /* "diff diff2": the value is the number of a word, from 0; NULL: a number */
    const char *help;
    bool whole; /* only whole numbers have a meaning */
    /* Option of `statrec train` that sets it, in every method that names the same; NULL: "norm-" and
     * the name, with '-' for '_'. place: among these options in --help and in what a run file keeps
     * of them, the least of all that share one; 0: behind those that have a place. */
    const char *option;
    int place;
} norm_param_row;

typedef struct norm_options {
    double eps;                   /* inside the root unless the method's file says otherwise */
    double alpha;                 /* weight of the OLD running value */
    int64_t layer_scale;          /* groups of a layer scale in front of the method; 0 = none */
    double param[NORM_PARAM_MAX]; /* the method's own, in the order of its row */
    uint32_t given; /* bit i: param[i] was set; the others take their defaults in norm_site_init */
} norm_options;

typedef struct norm_method norm_method;

/* A learnable parameter of a layer besides gain and bias, declared in its method's row: NAME.alpha. */
enum { NORM_OWN_MAX = 3 };
typedef struct norm_own_row {
    const char *name; /* "alpha" */
    bool wide;        /* [features]; else one number */
    /* What it begins with. */
    double (*first)(const norm_options *o, int64_t features);
    const char *when; /* only where this parameter of the method is not 0; NULL: always */
} norm_own_row;

/* eps, alpha, layer scale and every param of the method at their defaults. */
norm_options norm_options_default(const norm_method *m);
/* Sets one parameter of the method by name; text is a number or one of its words. SR_USAGE for an
 * unknown name, a malformed value or one out of range. */
sr_status norm_options_set(norm_options *o, const norm_method *m, const char *name,
                           const char *text, sr_failure *why);
/* "rbn eps=1e-05 alpha=0.95 lambda=0.1 nu=0.01 running=after scale=sum": the method and every
 * option in use, as far as `size` bytes go. */
void norm_options_format(const norm_options *o, const norm_method *m, char *text, size_t size);
/* Place of a parameter in norm_options.param, or -1. */
int norm_param_find(const norm_method *m, const char *name);

/* An option that sets a parameter of one or several methods, gathered from their rows. */
enum { NORM_OPTION_MAX = 64, NORM_OPTION_KEY = 48, NORM_OPTION_HELP = 1024 };
typedef struct norm_option {
    char key[NORM_OPTION_KEY];   /* "rbn-lambda-mean" */
    char help[NORM_OPTION_HELP]; /* "bn: what it does; ln, adanorm: what it does there" */
    int place;
} norm_option;
const norm_option *norm_option_at(int i); /* in the order of their places; NULL past the end */
/* Place in norm_options.param of the parameter that the option sets in this method, or -1. */
int norm_option_param(const norm_option *o, const norm_method *m);

/* -- one call of one layer --------------------------------------------------------------------- */

typedef struct norm_call {
    const norm_rows *rows;
    int64_t features; /* d */
    const norm_options *options;
    int64_t calls; /* training-mode calls of this layer, this one included */
    int threads;
    bool watched;             /* a watcher will look at stat and scalar */
    bool want_rows;           /* and asked for the scalars that need the rows again */
    const real *gamma, *beta; /* [d], never NULL (ones and zeros where the method has none) */
    /* The method's own learnable parameters in declared order, and their gradients, zeros until
     * backward adds to them, of the rows of this process; NULL where there is none. */
    const real *own[NORM_OWN_MAX];
    double *own_grad[NORM_OWN_MAX];
    double *const *state;            /* the method's persistent vectors in declared order */
    double *stat[NORM_VECTOR_COUNT]; /* [d] each, all allocated, NaN until the method fills them */
    double scalar[NORM_SCALAR_COUNT];
    /* [d] gradients of gain and bias: stat sum_gx and sum_g, unless a method says otherwise (BRN
     * and MABN, where y is not gamma * xhat + beta; synchronised layers, where each process has its
     * part and stat the total). */
    const double *dgamma, *dbeta;
    void *kept; /* kept_bytes(call) of the method, zeroed, from forward to backward */
    tape *tape; /* scratch memory and failures; no ops */
    /* The layer scale in front of a method that fuses it; NULL: x is what is to be normalised. */
    const struct layer_scale *scale;
} norm_call;

typedef struct norm_state_row {
    const char *name; /* "mu" */
    double initial;
    const char *rows; /* [rows, d] where this names the parameter with the rows; NULL: [d] */
} norm_state_row;

enum { NORM_STATE_MAX = 4 };

/* Which formulas give the parts of dx that flow through the statistics of a batch (g_mu, g_sigma2,
 * g_psi2; docs/norms.md 18.2) from the vectors that a method leaves. They take the vectors at their word:
 * another divisor, another xhat in sum_gx or another backward pass is another family. n valid rows,
 * sums over them. */
typedef enum {
    NORM_FAMILY_NONE, /* nothing normalises */
    /* dx = gamma/s (g - sum_g/n - xhat sum_gx/n), xhat = (x - mu_B)/s, s = sqrt(sigma2_B + eps) */
    NORM_FAMILY_SIGMA,
    /* dx = gamma/s (g - xhat sum_gx/n), xhat = x/s, s = sqrt(psi2_B + eps) */
    NORM_FAMILY_PSI,
    /* dx = (gamma g - nu xhat)/s, xhat = x/s, s = sqrt(psi2 + eps): both running values */
    NORM_FAMILY_PN,
    NORM_FAMILY_ROW, /* statistics of rows or samples: no part of dx flows through a batch */
    /* none of these: the method leaves g_mu, g_sigma2, g_psi2 of what it uses among its scalars */
    NORM_FAMILY_OWN,
} norm_family;

#define NORM_BIT(name)        (1u << NORM_##name)
#define NORM_SCALAR_BIT(name) (1u << NORM_SCALAR_##name)

struct norm_method {
    const char *name;     /* "bn" */
    const char *citation; /* "Ioffe and Szegedy, ICML 2015" */
    const char *axis;     /* what a statistic is taken over: "batch" "row" "sample" "-" */
    norm_family family;
    /* NORM_BITs of mu, sigma2, psi2: what it normalises with, over the axis, and of these what its
     * backward pass takes for constants. Over a batch the running values in `vectors` are of them. */
    uint32_t uses, constants;
    const char *summary; /* one line for `statrec list norms` */
    bool affine;         /* has gamma and beta */
    bool centralize;     /* wants norm_weight on the weights in front of it (MABN) */
    bool token_samples;  /* in text every token is its own sample, not every sentence (GroupNorm) */
    bool padded;         /* writes y and dx of padded rows too, as its release does */
    bool synchronises;   /* its batch may be spread over processes (docs/norms.md 17) */
    bool fuses_scale;    /* its passes over columns divide by norm_call.scale themselves */
    double eps, alpha;   /* defaults; alpha 0 where nothing runs */
    int64_t layer_scale; /* default: groups of the layer scale that is a part of it; 0: none is */
    bool scale_by_heads; /* of which it has as many as the model has attention heads */
    norm_param_row param[NORM_PARAM_MAX]; /* name NULL ends */
    norm_own_row own[NORM_OWN_MAX];       /* name NULL ends */
    norm_state_row state[NORM_STATE_MAX]; /* name NULL ends */
    uint32_t vectors, scalars;            /* statistics of this method: NORM_BIT, NORM_SCALAR_BIT */
    /* Refuses features or options that do not fit each other; NULL: everything fits. */
    sr_status (*check)(int64_t features, const norm_options *o, sr_failure *why);
    size_t (*kept_bytes)(const norm_call *c); /* NULL: none */
    /* x, y [rows, d]. Writes y in every valid row (norm.c zeroes padded ones), fills its forward
     * statistics, advances state when mode is NORM_TRAIN. n >= 1, or a synchronised layer. */
    sr_status (*forward)(norm_call *c, const real *x, real *y);
    /* Between forward and backward of a call: the same y again, from x and what is kept; no state moves. NULL: y
     * has to stay in memory. */
    sr_status (*again)(norm_call *c, const real *x, real *y);
    /* x, dy [rows, d] -> dx (overwritten in every valid row), stat sum_g and sum_gx; state only
     * where the method's backward has one (PN). */
    sr_status (*backward)(norm_call *c, const real *x, const real *dy, real *dx);
};

const norm_method *norm_find(const char *name); /* NULL when unknown */
const norm_method *norm_at(int i);              /* i-th row of the table; NULL past the end */

/* -- a layer ----------------------------------------------------------------------------------- */

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

typedef void norm_watcher_fn(void *context, const norm_view *o);

/* What batch normalization and PN-V would find at a site that uses something else (shadow.c). */
typedef struct norm_shadow {
    double eps, alpha;          /* in use: the method's own where it has them */
    uint32_t vectors;           /* NORM_BITs that it leaves in norm_call.stat */
    double *mu, *sigma2, *psi2; /* [features] running values; owned; no part of the model's state */
} norm_shadow;

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
    norm_watcher_fn *forward_watcher, *backward_watcher; /* NORM_TRAIN calls only; may be NULL */
    void *watcher_context;
    bool takes_positions; /* rows->position_mean is part of the mean of this site's input */
    bool watch_frozen;    /* the forward watcher is called in NORM_BATCH too */
    bool never_running;   /* NORM_RUNNING calls are NORM_BATCH ones here, but of rows outside */
    bool frozen;          /* NORM_TRAIN calls are NORM_RUNNING ones here, with rows->frozen */
    bool want_rows;
    bool want_input;     /* watchers look at x and dx even behind a layer scale */
    norm_shadow *shadow; /* owned; NULL unless norm_site_observe_batch asked for it */
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
/* From now on (or no longer) running values stay as they are and training normalises by them, where the
 * site has some: docs/norms.md 24. */
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
