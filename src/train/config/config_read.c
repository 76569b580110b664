/* config_read.c -- reads a configuration from arguments or a stored text: defaults, then settings
   of the model and preset, then the given options. */
#include <stdlib.h>
#include <string.h>

#include "train/config/config_rows.h"

static void copy_seed_and_forms(train_config *c) {
    c->model.seed = (uint64_t)c->seed;
    c->data.seed = (uint64_t)c->seed;
    c->bf16 = !strcmp(c->precision, "bf16");
    c->smoothing = !strcmp(c->smoothing_form, "others") ? SMOOTHING_OTHERS : SMOOTHING_ALL;
}

sr_status train_config_check(train_config *c, sr_failure *why) {
    sr_status status = trainer_check_names(c, why);
    if (status == SR_OK) status = trainer_check_together(c, why);
    copy_seed_and_forms(c);
    return status;
}

/* The run decides on validation both ways if neither the command line nor a file sets it. */
static void leave_open(train_config *c, const option_table all, const option_origin *origin) {
    for (int i = 0; i < all.count; i++)
        if (!strcmp(all.row[i].key, "validate-batch"))
            c->validate_batch_open = origin[i] == OPTION_PRESET;
}

/* Settings of the preset first: the text lacks those without effect. */
sr_status train_config_read(train_config *c, const char *text, const char *where, sr_failure *why) {
    train_config wanted;
    memset(c, 0, sizeof *c);
    options_set_defaults(train_options(), c);
    sr_status status = options_read_text(train_options(), c, text, where, why);
    wanted = *c;
    options_set_defaults(train_options(), c);
    if (status == SR_OK)
        status = train_preset_apply(c, wanted.model.name, wanted.model.preset, why);
    if (status == SR_OK) status = options_read_text(train_options(), c, text, where, why);
    config_fold_norm_params(c);
    return status == SR_OK ? train_config_check(c, why) : status;
}

sr_status train_config_parse(train_config *c, int argc, char **argv, int first, int *positional,
                             sr_failure *why) {
    const option_table all = train_options();
    memset(c, 0, sizeof *c);
    options_set_defaults(all, c);
    sr_status status = options_parse(all, c, argc, argv, first, positional, why);
    if (status != SR_OK) return status;
    const model_options wanted = c->model;
    options_set_defaults(all, c);
    status = train_preset_apply(c, wanted.name, wanted.preset, why);
    const train_config base = *c;
    option_origin *origin = calloc((size_t)all.count, sizeof *origin);
    if (!origin) return sr_fail(why, SR_MEMORY, "out of memory for the options");
    if (status == SR_OK)
        status = options_parse_noting(all, c, origin, argc, argv, first, positional, why);
    if (status == SR_OK) status = trainer_check_names(c, why);
    if (status == SR_OK) status = options_check_use(all, c, &base, origin, why);
    leave_open(c, all, origin);
    if (status == SR_OK) status = trainer_check_together(c, why);
    copy_seed_and_forms(c);
    free(origin);
    return status;
}
