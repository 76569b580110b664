/* config_check.c -- checks of a configuration that need the tables of models, normalizations and
 * data, or several options together. */
#include <stdio.h>
#include <string.h>

#include "base/program/tool.h"
#include "train/trainer.h"

typedef const char *name_fn(int i);

static const char *model_name(int i) {
    return model_at(i) ? model_at(i)->name : NULL;
}

static const char *norm_name(int i) {
    return norm_at(i) ? norm_at(i)->name : NULL;
}

/* SR_OK when `given` is a name of the table. */
static sr_status check_name(const char *key, const char *given, name_fn *name, const char *list,
                            sr_failure *why) {
    const char *names[256];
    int count = 0;
    while (count < 256 && (names[count] = name(count))) {
        if (!strcmp(names[count], given)) return SR_OK;
        count++;
    }
    const char *nearest = tool_nearest(given, names, count);
    sr_fail(why, SR_USAGE, "--%s: '%s' is not known", key, given);
    if (nearest)
        sr_hint(why, "did you mean '%s'? all of them: statrec list %s", nearest, list);
    else
        sr_hint(why, "all of them: statrec list %s", list);
    return SR_USAGE;
}

static sr_status check_norm(const char *key, const char *given, sr_failure *why) {
    char method[OPTION_TEXT_SIZE];
    norm_value v;
    sr_failure refused = {0};
    if (!norm_value_split(given, (int)strlen(given), &v))
        return sr_fail(why, SR_USAGE, "--%s: '%s' is not of the form " NORM_VALUE_FORM, key, given);
    snprintf(method, sizeof method, "%.*s", v.method_length, v.method);
    if (check_name(key, method, norm_name, "norms", why) != SR_OK) return SR_USAGE;
    norm_options o = norm_options_default(norm_find(method));
    if (v.layer_scale) o.layer_scale = 1;
    if (norm_options_read(&o, norm_find(method), &v, &refused) == SR_OK) return SR_OK;
    sr_fail(why, SR_USAGE, "--%s: %s", key, refused.text);
    if (*refused.hint) sr_hint(why, "%s", refused.hint);
    return SR_USAGE;
}

bool trainer_has_preset(const model_row *row, const char *preset) {
    const size_t length = strlen(preset);
    for (const char *at = row->presets; *at; at += strcspn(at, "|"), at += *at == '|')
        if (strcspn(at, "|") == length && !memcmp(at, preset, length)) return true;
    return false;
}

sr_status trainer_check_names(const train_config *c, sr_failure *why) {
    sr_status status = check_name("model", c->model.name, model_name, "models", why);
    const model_row *row = model_find(c->model.name);
    if (status == SR_OK && *c->model.preset && !trainer_has_preset(row, c->model.preset)) {
        status = sr_fail(why, SR_USAGE, "--preset: '%s' is not a preset of %s", c->model.preset,
                         row->name);
        if (*row->presets) sr_hint(why, "its presets: %s", row->presets);
    }
    if (status == SR_OK) status = check_norm("norm", c->model.norm, why);
    if (status == SR_OK) status = check_norm("decoder-norm", c->model.decoder_norm, why);
    if (status == SR_OK && *c->model.qk_norm) status = check_norm("qk-norm", c->model.qk_norm, why);
    if (status == SR_OK) status = check_name("data", c->data.name, data_name, "data", why);
    if (status != SR_OK) return status;
    data_shape shape = {0};
    for (int i = 0; data_name(i); i++)
        if (!strcmp(data_name(i), c->data.name)) shape.task = data_task(i);
    return task_check(row, &shape, why);
}

sr_status trainer_check_together(const train_config *c, sr_failure *why) {
    if (!*c->output && strcmp(c->record, "none"))
        return sr_fail(why, SR_USAGE, "no run file: give -o RUN.h5, or --record none");
    schedule milestones = {0};
    sr_status status = schedule_read_milestones(&milestones, c->lr_steps, why);
    if (status == SR_OK && !strcmp(c->scheduler, "cosine") && c->lr_min > c->lr)
        status = sr_fail(why, SR_USAGE, "--lr-min: %g is above --lr %g", c->lr_min, c->lr);
    train_interval every;
    if (status == SR_OK) status = train_interval_read(c->checkpoint_every, &every, why);
    if (status != SR_OK) return status;
    status = trainer_check_patience(c, why);
    if (status != SR_OK) return status;
    if (*c->dump_weights && !strcmp(c->dump_weights, c->dump_batches))
        return sr_fail(why, SR_USAGE, "--dump-weights and --dump-batches are one file, '%s'",
                       c->dump_weights);
    if (*c->output && (!strcmp(c->output, c->dump_weights) || !strcmp(c->output, c->dump_batches)))
        return sr_fail(why, SR_USAGE, "the run file and a dump are one file, '%s'", c->output);
    return SR_OK;
}
