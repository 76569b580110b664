/* norm_method.h -- a normalization method: a file of mathematics on plain arrays with a row that
 * declares its forward and backward pass, the persistent vectors it wants and its citation. Formulas
 * and names: docs/norms.md, cited by section in each method's file.
 *
 * Contract for padded rows: the layer behaves as if the valid rows had been gathered into an
 * n x d matrix, normalized and scattered back; y and dx are 0 in padded rows. n = 0: y and dx are
 * 0, all running state is left alone and the call is not counted; hooks are called with
 * statistics that are NaN. A method whose row says `padded` reproduces a release that does not
 * follow this contract, and writes the padded rows itself.
 */
#ifndef NORM_KERNELS_NORM_METHOD_H
#define NORM_KERNELS_NORM_METHOD_H

#include "norm/kernels/norm_rows.h"
#include "norm/kernels/norm_statistics.h"

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

/* -- one call of one layer --------------------------------------------------------------------- */

typedef struct norm_call {
    const norm_rows *rows;
    int64_t features; /* d */
    const norm_options *options;
    int64_t calls; /* training-mode calls of this layer, this one included */
    int threads;
    bool has_hook;            /* a watcher will look at stat and scalar */
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
    sr_status (*recompute)(norm_call *c, const real *x, real *y);
    /* x, dy [rows, d] -> dx (overwritten in every valid row), stat sum_g and sum_gx; state only
     * where the method's backward has one (PN). */
    sr_status (*backward)(norm_call *c, const real *x, const real *dy, real *dx);
};

#endif
