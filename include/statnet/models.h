/* models.h -- models: one file model_*.c and one row of the table each. A model owns its
 * parameters and normalization sites and turns a batch into what its task takes a loss of. */
#ifndef STATNET_MODELS_H
#define STATNET_MODELS_H

#include "statnet/batch.h"
#include "statnet/norm.h"
#include "statnet/ops.h"
#include "statnet/params.h"
#include "statnet/pass.h"

enum { MODEL_TEXT = 512 };

/* Parameters of single methods (norm_param_row of norm.h) that the user may set, for every site
 * whose method has them: X(id, option, parameter, help). */
#define MODEL_NORM_PARAMS(X)                                                                       \
    X(pn_alpha_bkw, "pn-alpha-bkw", "alpha_bwd", "pn: weight of the OLD nu in the backward pass")  \
    X(norm_warmup, "norm-warmup", "warmup", "pn-released, brn, mabn: calls of the warm-up")        \
    X(norm_groups, "norm-groups", "groups", "groupnorm: groups of features")                       \
    X(norm_unbiased, "norm-unbiased", "unbiased",                                                  \
      "LN family: 1 = variance over d-1; bn: 1 = running variance n/(n-1)")                        \
    X(rbn_lambda_mean, "rbn-lambda-mean", "lambda", "rbn: weight of the penalty on the mean")      \
    X(rbn_lambda_std, "rbn-lambda-std", "nu", "rbn: weight of the penalty on the deviation")       \
    X(rbn_running, "rbn-running", "running",                                                       \
      "rbn: running values of the penalty, before or after the update")                            \
    X(rbn_scale, "rbn-scale", "scale", "rbn: penalty beside the loss's sum or mean")               \
    X(rbn_penalty, "rbn-penalty", "penalty", "rbn-released: diff, diff2, reldiff or mag")          \
    X(adanorm_c, "adanorm-c", "C", "adanorm: scale of phi")                                        \
    X(adanorm_k, "adanorm-k", "k", "adanorm: slope of phi")                                        \
    X(norm_placement, "norm-placement", "placement",                                               \
      "ln-simple, detach-*, adanorm, rmsnorm: eps inside or outside the root")                     \
    X(brn_r_max, "brn-r-max", "r_max", "brn: limit of the scale correction")                       \
    X(brn_d_max, "brn-d-max", "d_max", "brn: limit of the shift correction")                       \
    X(brn_r_calls, "brn-r-calls", "r_calls", "brn: call from which r_max holds")                   \
    X(brn_d_calls, "brn-d-calls", "d_calls", "brn: call from which d_max holds")                   \
    X(mabn_buffer, "mabn-buffer", "buffer", "mabn: calls that statistics are averaged over")       \
    X(mabn_clip_calls, "mabn-clip-calls", "clip_calls", "mabn: calls with r = 1")

#define MODEL_NORM_PARAM_ID(id, ...) MODEL_NORM_PARAM_##id,
enum { MODEL_NORM_PARAMS(MODEL_NORM_PARAM_ID) MODEL_NORM_PARAM_COUNT };

typedef struct model_options {
    char name[MODEL_TEXT];         /* row of the table: "resnet20" */
    char preset[MODEL_TEXT];       /* "" or a preset of that model */
    char norm[MODEL_TEXT];         /* method of every site; encoder sites of a transformer */
    char decoder_norm[MODEL_TEXT]; /* transformer: decoder sites */
    char norm_at[MODEL_TEXT]; /* "PATTERN=METHOD,...", first match wins, before the two above */
    double norm_eps,
        norm_alpha;      /* NaN: the method's default (alpha: the model's, where it has one) */
    int64_t layer_scale; /* groups; 0 = what METHOD+ls or the method asks for */
    char norm_param[MODEL_NORM_PARAM_COUNT][MODEL_TEXT]; /* "" = the method's preset */
    bool count_padding;    /* transformer: control, padded rows take part in normalizations */
    char init[MODEL_TEXT]; /* images: "he" or "pytorch"; "" = he */
    /* transformer; 0 or NaN: what the preset says */
    int64_t embed_dim, ffn_dim, heads, encoder_layers, decoder_layers;
    char placement[MODEL_TEXT]; /* "pre", "post" or "" = the preset's */
    double dropout, attention_dropout, relu_dropout;
    uint64_t seed;
} model_options;

typedef struct model model;
typedef struct model_row {
    const char *name, *citation, *summary;
    task task;
    const char *presets; /* "mini|transformer|..." or "" */
    sr_status (*build)(model *m, const model_options *o, const data_shape *shape, sr_failure *why);
    /* What the task takes its loss of: logits [rows, classes]. NULL after a failure of the tape. */
    tensor *(*forward)(model *m, pass *p);
    void (*free)(model *m);
    double alpha; /* instead of the 0.95 of methods made for text; 0: theirs */
} model_row;

struct model {
    const model_row *row;
    params params;
    norm_site **site; /* in the order of the forward pass */
    int sites, room;
    tensor *embedding; /* word embedding [V, d] or NULL */
    void *self;        /* the model's own struct */
};

const model_row *model_find(const char *name);
const model_row *model_at(int i); /* NULL past the end */

model *model_create(const model_options *o, const data_shape *shape, sr_failure *why);
void model_free(model *m);
/* For model files: a new site at the next depth, normalized by what norm_at says for its name, else
 * by `norm`. NULL on failure. */
norm_site *model_add_site(model *m, const model_options *o, const char *name, const char *kind,
                          int64_t features, const char *norm, sr_failure *why);
/* The method of a name such as "pn", or "pn+ls": the same behind a layer scale (*layer_scale, may
 * be NULL). NULL when unknown. */
const norm_method *model_norm_method(const char *name, bool *layer_scale);
/* Weight of the OLD running value of a method that has one: what the options say, else the method's
 * or the model's instead of the text methods' 0.95. */
double model_norm_alpha(const model *m, const model_options *o, const norm_method *method);
/* The rows as this site's method wants them: every token its own sample where it asks for that.
 * NULL when out of memory. */
const norm_rows *model_rows_for(const norm_site *s, tape *t, const norm_rows *rows);
/* Names of sites, as --norm-at and --record-sites match them ("*" and "?"). */
bool model_glob(const char *pattern, const char *name);

#endif
