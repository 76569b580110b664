/* models.h -- models: one file model_*.c and one row of the table each. A model owns its
 * parameters and normalization sites and turns a batch into a summed loss. */
#ifndef STATNET_MODELS_H
#define STATNET_MODELS_H

#include "statnet/batch.h"
#include "statnet/norm.h"
#include "statnet/ops.h"
#include "statnet/params.h"

enum { MODEL_TEXT = 512 };

typedef struct model_options {
    char name[MODEL_TEXT];         /* row of the table: "resnet20" */
    char preset[MODEL_TEXT];       /* "" or a preset of that model */
    char norm[MODEL_TEXT];         /* method of every site; encoder sites of a transformer */
    char decoder_norm[MODEL_TEXT]; /* transformer: decoder sites */
    char norm_at[MODEL_TEXT]; /* "PATTERN=METHOD,...", first match wins, before the two above */
    double norm_eps,
        norm_alpha;      /* NaN: the method's default (alpha: 0.9 instead of 0.95 for images) */
    int64_t layer_scale; /* groups; 0 = none */
    /* transformer; 0 or NaN: what the preset says */
    int64_t embed_dim, ffn_dim, heads, encoder_layers, decoder_layers;
    char placement[MODEL_TEXT]; /* "pre", "post" or "" = the preset's */
    double dropout, attention_dropout, relu_dropout;
    double label_smoothing;
    smoothing_form smoothing;
    uint64_t seed;
} model_options;

typedef struct model model;
typedef struct model_row {
    const char *name, *citation, *summary;
    task task;
    const char *presets; /* "mini|transformer|..." or "" */
    sr_status (*build)(model *m, const model_options *o, const data_shape *shape, sr_failure *why);
    tensor *(*loss)(model *m, tape *t, const batch *b, norm_mode mode,
                    cross_entropy_report *report);
    void (*free)(model *m);
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
/* Summed loss over the batch's tokens, count 1; NULL after a failure (kept in the tape). */
tensor *model_loss(model *m, tape *t, const batch *b, norm_mode mode, cross_entropy_report *report);
/* For model files: a new site at the next depth, normalized by what norm_at says for its name, else
 * by `norm`. NULL on failure. */
norm_site *model_add_site(model *m, const model_options *o, const char *name, const char *kind,
                          int64_t features, const char *norm, sr_failure *why);
/* Names of sites, as --norm-at and --record-sites match them ("*" and "?"). */
bool model_glob(const char *pattern, const char *name);

#endif
