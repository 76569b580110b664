/* config_applies.c -- which options the chosen model, data set and optimizer obey, by their
   rows. */
#include "train/config/config_rows.h"

bool config_model_lists(const void *values, const char *key) {
    const train_config *c = values;
    return model_obeys(c->model.name, key);
}

bool config_data_lists(const void *values, const char *key) {
    const train_config *c = values;
    return data_obeys(c->data.name, key);
}

bool config_optim_lists(const void *values, const char *key) {
    const train_config *c = values;
    return optim_obeys(c->optimizer, key);
}
