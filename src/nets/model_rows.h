/* model_rows.h -- the rows that the model files give to the table. */
#ifndef NETS_MODEL_ROWS_H
#define NETS_MODEL_ROWS_H

#include "statnet/models.h"

extern const model_row model_resnet20, model_transformer;

/* `given` unless it is NaN. */
double model_default(double given, double preset);
/* Refuses a pattern of norm_at that no site matches. */
sr_status model_check_norm_at(const model *m, const model_options *o, sr_failure *why);
/* Refuses a parameter that no site's method has. */
sr_status model_check_norm_params(const model *m, const model_options *o, sr_failure *why);

#endif
