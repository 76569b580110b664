/* models.h -- models: one file model_*.c and one row of the table each. A model owns its parameters
 * and normalization sites. It turns a batch into the input of its task's loss. */
#ifndef NETS_MODELS_H
#define NETS_MODELS_H

#include "batch/batch.h"
#include "engine/ops/attention/attention_ops.h"
#include "engine/params.h"
#include "nets/model_decoder.h"
#include "nets/model_memory.h"
#include "nets/model_options.h"
#include "nets/pass.h"
#include "norm/norm_site.h"

typedef struct model model;
typedef struct model_attention model_attention;

typedef struct model_row {
    const char *name, *citation, *summary;
    task task;
    const char *presets; /* "mini|transformer|..." or "" */
    const char *options; /* keys of the model options that it uses, between blanks; it uses all
                            options of normalizations */
    sr_status (*build)(model *m, const model_options *o, const data_shape *shape, sr_failure *why);
    /* Returns the input of the loss: logits [rows, classes], or with gives_nll the negative
     * log-likelihood of each token [rows]. NULL after a failure of the tape. */
    tensor *(*forward)(model *m, pass *p);
    /* Extends computed positions to sentences of `longest` tokens; NULL: data of any length fit, or
       (running text) the window is a size of the model. */
    sr_status (*reach)(model *m, int64_t longest, sr_failure *why);
    void (*free)(model *m);       /* frees what `self` owns; NULL: nothing */
    size_t size;                  /* size of `self` */
    double alpha;                 /* instead of the 0.95 of methods made for text; 0: theirs */
    const model_decoder *decoder; /* NULL: it writes no sentences */
    const model_scorer *scorer;   /* NULL: it parses none */
} model_row;

/* Called with the statistics of an attention's weights in a pass of mode NORM_TRAIN
 * (attention_report in attention_ops.h). The arrays are valid during the call. */
typedef void attention_hook_fn(void *context, const model_attention *a,
                               const attention_report *found);
struct model_attention {
    const norm_site *site; /* the first norm of its branch, which names it */
    int heads;
    attention_hook_fn *hook; /* NULL: nothing is computed */
    void *context;
};

struct model {
    const model_row *row;
    params params;
    norm_site **site; /* in the order of the forward pass */
    int sites;
    int64_t site_capacity;
    model_attention **attention; /* owned, in the order of the forward pass */
    int attentions;
    int64_t attention_capacity;
    /* for each future site, the assignment of norm_at that decides; -1: none; NULL: no norm_at */
    int *assigned;
    tensor *embedding;        /* word embedding [V, d] or NULL; of the source's words */
    tensor *target_embedding; /* for the target's words, the same one without a second */
    bool gives_nll;           /* set by build */
    /* Set by build: sizes of the memory of a pass, rows in training and in evaluation. */
    int64_t memory_layers, memory_width, memory_rows, memory_eval_rows;
    void *self; /* the model's own struct, initially zero */
    /* Condition that results of this model mention, static, set by build: "mask causal"; NULL:
       none */
    const char *condition;
};

const model_row *model_find(const char *name);
const model_row *model_at(int i); /* NULL past the end */
/* True when the model obeys the option with this key. */
bool model_obeys(const char *name, const char *key);

model *model_create(const model_options *o, const data_shape *shape, sr_failure *why);
void model_free(model *m);
/* The model's condition, "" without one. */
const char *model_condition(const model *m);

/* For model files: a new site at the next depth, normalized as norm_at assigns to its name, else
 * by `norm`. NULL on failure. */
norm_site *model_add_site(model *m, const model_options *o, const char *name, const char *kind,
                          int64_t features, const char *norm, sr_failure *why);
/* For model files: a new attention in the branch of `site`. NULL on failure. */
model_attention *model_add_attention(model *m, const norm_site *site, int64_t heads,
                                     sr_failure *why);
/* Weight of the OLD value in the method's running averages: the option, else the method's. A
 * model's own value replaces the 0.95 of the text methods. */
double model_norm_alpha(const model *m, const model_options *o, const norm_method *method);
/* The rows for this site's method. With token_samples every token is a separate sample. NULL when
 * out of memory. */
const norm_rows *model_rows_for(const norm_site *s, tape *t, const norm_rows *rows);

#endif
