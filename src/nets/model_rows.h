/* model_rows.h -- the rows that the model files give to the table. */
#ifndef NETS_MODEL_ROWS_H
#define NETS_MODEL_ROWS_H

#include "statnet/models.h"

extern const model_row model_resnet20, model_transformer;

/* The method called `name`, or NULL and *why. */
const norm_method *model_norm_method(const char *name, sr_failure *why);
/* The method's presets with what the model_options set. */
norm_options model_norm_options(const model_options *o, const norm_method *method, task kind);
/* `given` unless it is NaN. */
double model_default(double given, double preset);

#endif
