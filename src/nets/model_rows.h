/* model_rows.h -- the rows that the model files give to the table. */
#ifndef NETS_MODEL_ROWS_H
#define NETS_MODEL_ROWS_H

#include "nets/models.h"

#define MODELS(X)                                                                                  \
    X(resnet20)                                                                                    \
    X(resnet18)                                                                                    \
    X(mnist_cnn)                                                                                   \
    X(transformer)                                                                                 \
    X(transformer_classifier)                                                                      \
    X(tener)                                                                                       \
    X(tensorized)                                                                                  \
    X(transformer_lm)                                                                              \
    X(transformer_xl)                                                                              \
    X(mlp_parser)

#define MODEL_DECLARE(name) extern const model_row model_##name;
MODELS(MODEL_DECLARE)
#undef MODEL_DECLARE

/* Finds the preset `name` in a table, "" the first one. NULL and *why when unknown. */
#define MODEL_PRESET(model, name, table, why)                                                      \
    model_preset_find(&(model), name, table, sizeof(table) / sizeof(table)[0], sizeof(table)[0],   \
                      why)
/* table [count], rows of `size` bytes, the name first. */
const void *model_preset_find(const model_row *m, const char *name, const void *table, size_t count,
                              size_t size, sr_failure *why);
/* `given` unless it is NaN. */
double model_default(double given, double otherwise);
/* `given` unless it is 0. */
int64_t model_size(int64_t given, int64_t otherwise);
/* The condition of a language model: its mask. */
const char *lm_mask_condition(bool causal);
/* Sines and cosines of distances [n, d], malloc'd: row n-1-D is [sin(D w) ..., cos(D w) ...],
 * w_i = 10000^(-2i/d). NULL: out of memory. */
real *model_distances(int64_t n, int64_t d, sr_failure *why);
/* Initializes every gain with 1 + N(deviation), for any normalization. */
void model_vary_gains(model *m, double deviation);
/* Fills m->assigned by the site names of `named`, the same model without norm_at. Rejects patterns
 * that match no site, or no remaining site. */
sr_status model_assign_norms(model *m, const model *named, const model_options *o, sr_failure *why);
/* Rejects a parameter that no site's method has. */
sr_status model_check_norm_params(const model *m, const model_options *o, sr_failure *why);

#endif
