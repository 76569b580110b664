/* data_command.c -- the model for a data set; see data_command.h. */
#include "cli/data/data_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/byte_buffer.h"
#include "base/program/tool.h"

/* The preset is chosen where another one needs no fewer options. */
static const struct {
    const char *data, *model, *preset;
} models[] = {
    {"cifar10", "resnet20", ""},
    {"cifar100", "resnet20", ""},
    {"idx", "mnist_cnn", ""},
    {"parallel", "transformer", "mini"},
    {"tabbed", "transformer", "mini"},
    {"labelled", "transformer_classifier", "rt"},
    {"labelled-csv", "transformer_classifier", "rt"},
    {"polarity", "transformer_classifier", "rt"},
    {"conll", "tener", ""},
    {"text", "transformer_lm", "ptb-mini"},
    {"bytes", "transformer_xl", "enwik8-mini"},
    {"trees", "mlp_parser", "ud-ewt"},
    {"trees-cut", "mlp_parser", "ptb-sample"},
};

static sr_status set_option(train_config *c, const char *key, const char *value, sr_failure *why) {
    return options_set(train_options(), c, key, value, key, why);
}

static const option *find_row(const char *key) {
    const option_table t = train_options();
    for (int i = 0; i < t.count; i++)
        if (!strcmp(t.row[i].key, key)) return &t.row[i];
    return NULL;
}

/* Sets an option, and notes it if it changes the value. */
static sr_status change(data_command *c, const char *key, const char *value, sr_failure *why) {
    char before[DATA_TEXT], after[DATA_TEXT];
    const option *row = find_row(key);
    if (!row) return sr_fail(why, SR_STATE, "no option is called %s", key);
    options_format(row, &c->config, before, sizeof before);
    const sr_status status = set_option(&c->config, key, value, why);
    if (status != SR_OK) return status;
    options_format(row, &c->config, after, sizeof after);
    if (!strcmp(before, after)) return SR_OK;
    int at = 0; /* index of an earlier value */
    while (at < c->options && strcmp(c->option[at].key, key) != 0) at++;
    if (at == COMMAND_OPTIONS) return sr_fail(why, SR_STATE, "too many options for %s", key);
    find_option *o = &c->option[at];
    c->options += at == c->options;
    o->key = key;
    snprintf(o->value, sizeof o->value, "%s", value);
    return SR_OK;
}

static sr_status try_preset(data_command *c, const data_finding *set, const char *dir,
                            const char *of, const char *preset, sr_failure *why) {
    c->options = 0;
    c->preset = preset;
    options_set_defaults(train_options(), &c->config);
    sr_status status = train_preset_apply(&c->config, of, preset, why);
    if (status == SR_OK) status = set_option(&c->config, "model", of, why);
    if (status == SR_OK && *preset) status = set_option(&c->config, "preset", preset, why);
    if (status == SR_OK) status = change(c, "data", set->data, why);
    if (status == SR_OK) status = change(c, "data-dir", dir, why);
    for (int i = 0; status == SR_OK && i < set->options; i++)
        status = change(c, set->option[i].key, set->option[i].value, why);
    return status;
}

/* Presets of a model, between '|'. */
static sr_status try_presets(data_command *c, const data_finding *set, const char *dir,
                             const char *of, sr_failure *why) {
    static char best[64]; /* outlives the command */
    char name[64];
    const char *at = model_find(of)->presets;
    int fewest = c->options;
    snprintf(best, sizeof best, "%s", c->preset);
    while (*at) {
        const size_t length = strcspn(at, "|");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        const sr_status status = try_preset(c, set, dir, of, name, why);
        if (status != SR_OK) return status;
        if (c->options < fewest) {
            fewest = c->options;
            snprintf(best, sizeof best, "%s", name);
        }
        at += length + (at[length] == '|');
    }
    return try_preset(c, set, dir, of, best, why);
}

sr_status data_command_make(data_command *c, const data_finding *set, const char *dir,
                            sr_failure *why) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (strcmp(models[i].data, set->data) != 0) continue;
        const char *name = models[i].model;
        const sr_status status = try_preset(c, set, dir, name, models[i].preset, why);
        return status == SR_OK ? try_presets(c, set, dir, name, why) : status;
    }
    return sr_fail(why, SR_STATE, "no model for --data %s", set->data);
}

sr_status data_command_shrink(data_command *c, int window, sr_failure *why) {
    char tokens[16];
    snprintf(tokens, sizeof tokens, "%d", window);
    sr_status status = change(c, "batch-size", "1", why);
    if (status == SR_OK) status = change(c, "eval-batch-size", "1", why);
    if (status == SR_OK) status = change(c, "tgt-len", tokens, why);
    if (status != SR_OK || !c->config.data.eval_window) return status;
    return change(c, "eval-tgt-len", tokens, why);
}

sr_status data_command_fold(data_command *c, sr_failure *why) {
    return change(c, "fold", "1/10", why);
}

static bool put_word(byte_buffer *b, const char *text) {
    char *word = tool_argument(text);
    const bool done = word && buffer_put(b, " ", 1) && buffer_put(b, word, strlen(word));
    free(word);
    return done;
}

static bool put_option(byte_buffer *b, const char *key, const char *value) {
    char name[64];
    const option *row = find_row(key);
    const bool flag = row && row->type == OPTION_FLAG, off = flag && !strcmp(value, "no");
    snprintf(name, sizeof name, "--%s%s", off ? "no-" : "", key);
    return put_word(b, name) && (flag || put_word(b, value));
}

char *data_command_text(const data_command *c) {
    byte_buffer b = {0};
    static const char begin[] = "statrec train --model";
    bool done = buffer_put(&b, begin, sizeof begin - 1) && put_word(&b, c->config.model.name);
    if (*c->preset) done = done && put_option(&b, "preset", c->preset);
    for (int i = 0; done && i < c->options; i++)
        done = put_option(&b, c->option[i].key, c->option[i].value);
    done = done && put_word(&b, "-o") && put_word(&b, "run.h5") && buffer_put(&b, "", 1);
    if (done) return b.byte;
    buffer_free(&b);
    return NULL;
}
