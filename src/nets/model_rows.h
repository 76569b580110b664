/* model_rows.h -- the rows that the model files give to the table. */
#ifndef NETS_MODEL_ROWS_H
#define NETS_MODEL_ROWS_H

#include "statnet/models.h"

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

/* `given` unless it is NaN. */
double model_default(double given, double preset);
/* `given` unless it is 0. */
int64_t model_size(int64_t given, int64_t preset);
/* What a language model says of its mask. */
const char *lm_mask_condition(bool causal);
/* Every gain begins at 1 + N(deviation), whatever the normalization. */
void model_vary_gains(model *m, double deviation);
/* Refuses a pattern of norm_at that no site matches. */
sr_status model_check_norm_at(const model *m, const model_options *o, sr_failure *why);
/* Refuses a parameter that no site's method has. */
sr_status model_check_norm_params(const model *m, const model_options *o, sr_failure *why);

#endif
