/* norm_method.h -- a normalization method: a file of mathematics on plain arrays and a row. The row
 * declares its passes, its persistent vectors and its citation. Each method's file cites the
 * section of docs/norms.md with its formulas and names.
 *
 * Contract for padded rows: y and dx are 0 there. The layer behaves as if the valid rows were
 * gathered into an n x d matrix, normalized and scattered back. n = 0: y and dx are 0, running
 * state is unchanged, the call is not counted, and hooks get NaN statistics. A method with `padded`
 * reproduces a release that breaks this contract, and writes the padded rows itself. */
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
    double low, high; /* accepted range, both ends included */
    /* "diff diff2": names of the values 0, 1, ...; NULL: a number */
    const char *words;
    const char *help;
    bool whole; /* only integers are valid */
    /* Option of `statrec train` that sets it, in every method that names the same; NULL: "norm-"
     * and the name, with '-' for '_'. place: rank among these options in --help and in run files;
     * of methods that share an option the least counts. 0: after all with a place. */
    const char *option;
    int place;
} norm_param_row;

typedef struct norm_options {
    double eps;                   /* inside the root except where the method's file differs */
    double alpha;                 /* weight of the OLD running value */
    int64_t layer_scale;          /* groups of a layer scale before the method; 0 = none */
    double param[NORM_PARAM_MAX]; /* the method's own, in the order of its row */
    uint32_t given; /* bit i: param[i] was set; norm_site_init sets the others to defaults */
} norm_options;

typedef struct norm_method norm_method;

/* A learnable parameter of a layer besides gain and bias, declared in its method's row:
 * NAME.alpha. */
enum { NORM_OWN_MAX = 3 };
typedef struct norm_own_row {
    const char *name; /* "alpha" */
    bool wide;        /* [features]; else one number */
    /* Initial value: `initial`, or the method's parameter of this name unless it is NULL. */
    const char *from;
    double initial;
    /* Initial value that needs the number of features; NULL: as above. */
    double (*first)(const norm_options *o, int64_t features);
    const char *when; /* exists if this parameter of the method is not 0; NULL: always */
} norm_own_row;

/* -- one call of one layer --------------------------------------------------------------------- */

typedef struct norm_call {
    const norm_method *method;
    const norm_rows *rows;
    int64_t features; /* d */
    const norm_options *options;
    int64_t calls; /* training-mode calls of this layer, this one included */
    int threads;
    bool has_hook;            /* a hook reads stat and scalar */
    bool want_rows;           /* and wants the scalars that need the rows again */
    const real *gamma, *beta; /* [d], never NULL (ones and zeros where the method has none) */
    /* The method's own learnable parameters in declared order, or NULL, and their gradients:
     * initially zero, backward adds the terms of this process's rows. */
    const real *own[NORM_OWN_MAX];
    double *own_grad[NORM_OWN_MAX];
    double *const *state;            /* the method's persistent vectors in declared order */
    double *stat[NORM_VECTOR_COUNT]; /* [d] each, all allocated, NaN until the method fills them */
    double scalar[NORM_SCALAR_COUNT];
    /* [d] gradients of gain and bias. Equal to stat sum_gx and sum_g, with three exceptions. In
     * BRN, MABN and RepBN y is not gamma * xhat + beta. In synchronized layers each process has its
     * part; stat has the total. At observed sites stat has the observer's. */
    const double *dgamma, *dbeta;
    void *kept; /* [kept_bytes] of the method, initially zero, from forward to backward */
    tape *tape; /* scratch memory and failures; no ops */
    /* The layer scale before a method that fuses it; NULL: x itself is normalized. */
    const struct layer_scale *scale;
} norm_call;

typedef struct norm_state_row {
    const char *name; /* "mu" */
    double initial;
    const char *rows; /* names the parameter with the number of rows: [rows, d]; NULL: [d] */
} norm_state_row;

enum { NORM_STATE_MAX = 4 };

/* Formulas for the parts of dx that flow through batch statistics (g_mu, g_sigma2, g_psi2;
 * docs/norms.md 18.2), from the vectors of a method. Another divisor, another xhat in sum_gx or
 * another backward pass is another family. n valid rows, sums over them. */
typedef enum {
    NORM_FAMILY_NONE, /* no normalization */
    /* dx = gamma/s (g - sum_g/n - xhat sum_gx/n), xhat = (x - mu_B)/s, s = sqrt(sigma2_B + eps) */
    NORM_FAMILY_SIGMA,
    /* dx = gamma/s (g - xhat sum_gx/n), xhat = x/s, s = sqrt(psi2_B + eps) */
    NORM_FAMILY_PSI,
    /* dx = (gamma g - nu xhat)/s, xhat = x/s, s = sqrt(psi2 + eps): both running values */
    NORM_FAMILY_PN,
    NORM_FAMILY_ROW, /* statistics of rows or samples: no part of dx flows through a batch */
    /* other: the method itself fills the scalars g_mu, g_sigma2, g_psi2 of the statistics that it
     * uses */
    NORM_FAMILY_OWN,
} norm_family;

struct norm_method {
    const char *name;     /* "bn" */
    const char *citation; /* "Ioffe and Szegedy, ICML 2015" */
    const char *axis;     /* axis of the statistics: "batch" "row" "sample" "-" */
    norm_family family;
    /* NORM_BITs of mu, sigma2, psi2. uses: statistics that normalize, over the axis. constants: the
     * statistics in `uses` that backward treats as constants. Over a batch, running statistics in
     * `vectors` belong to them. */
    uint32_t uses, constants;
    const char *summary; /* one line for `statrec list norms` */
    bool affine;         /* has gamma and beta */
    bool centralize;     /* needs norm_weight on the weights before it (MABN) */
    bool token_samples;  /* in text a sample is a token, not a sentence (GroupNorm) */
    bool padded;         /* writes y and dx of padded rows too, as its release does */
    bool synchronises;   /* its batch may be distributed over processes (docs/norms.md 17) */
    bool fuses_scale;    /* its passes over columns divide by norm_call.scale */
    double eps, alpha;   /* defaults; alpha 0 without running statistics */
    int64_t layer_scale; /* default groups of the layer scale in the method; 0: none */
    bool scale_by_heads; /* the default is one group per attention head */
    norm_param_row param[NORM_PARAM_MAX]; /* name NULL ends */
    norm_own_row own[NORM_OWN_MAX];       /* name NULL ends */
    norm_state_row state[NORM_STATE_MAX]; /* name NULL ends */
    uint32_t vectors, scalars;            /* statistics of this method: NORM_BIT, NORM_SCALAR_BIT */
    /* Rejects features or options that do not fit; NULL: all fit. */
    sr_status (*check)(int64_t features, const norm_options *o, sr_failure *why);
    size_t (*kept_bytes)(const norm_call *c); /* NULL: none */
    int kept_arrays; /* methods over a batch: further arrays [d] in batch_kept.own */
    /* Writes y in every valid row (norm.c zeroes padded ones), fills the forward statistics, and
     * advances state in NORM_TRAIN. x, y [rows, d]. n >= 1, or a synchronized layer. norm.c has
     * copied state to the vectors of the same name. */
    sr_status (*forward)(norm_call *c, const real *x, real *y);
    /* Recomputes y between forward and backward, from x and kept memory, without advancing state.
     * NULL: y must stay in memory. */
    sr_status (*recompute)(norm_call *c, const real *x, real *y);
    /* x, dy [rows, d] -> dx (overwritten in every valid row), stat sum_g and sum_gx. Advances state
     * only in methods with a backward state (PN). */
    sr_status (*backward)(norm_call *c, const real *x, const real *dy, real *dx);
};

#endif
