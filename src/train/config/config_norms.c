/* config_norms.c -- moves values of options of version 0.1, such as --brn-r-max 3, into --norm. A
   stored configuration contains brn(r_max=3). */
#include <stdio.h>
#include <string.h>

#include "train/config/config_rows.h"

/* Adds the parameter to a value whose method has it, unless the value sets it. False: it does not
   fit. */
static bool add_param(char *text, size_t size, const norm_option *o, const char *value) {
    char longer[2 * MODEL_TEXT];
    norm_value v;
    option_line found;
    const norm_method *m = norm_named(text, &v);
    const int k = m ? norm_option_param(o, m) : -1;
    if (k < 0) return true;
    const char *name = m->param[k].name;
    if (norm_value_find(&v, name, (int)strlen(name), &found)) return true;
    const int length =
        snprintf(longer, sizeof longer, "%s(%.*s%s%s=%s)%s", m->name, v.params_length,
                 v.params_length ? v.params : "", v.params_length ? ";" : "", name, value,
                 v.layer_scale ? "+ls" : "");
    if (length >= (int)size) return false;
    memcpy(text, longer, (size_t)length + 1);
    return true;
}

/* The same in every SITES=METHOD of a list. */
static bool add_to_list(char list[MODEL_TEXT], const norm_option *o, const char *value) {
    char longer[MODEL_TEXT] = "";
    size_t used = 0;
    for (const char *at = list; *at;) {
        const size_t length = norm_value_entry(at), sites = strcspn(at, "=,") + 1;
        char entry[MODEL_TEXT];
        if (sites > length) return true; /* malformed: the model rejects it */
        snprintf(entry, sizeof entry, "%.*s", (int)(length - sites), at + sites);
        if (!add_param(entry, sizeof entry, o, value)) return false;
        used += (size_t)snprintf(longer + used, sizeof longer - used, "%s%.*s%s", used ? "," : "",
                                 (int)sites, at, entry);
        if (used >= sizeof longer) return false;
        at += length + (at[length] == ',');
    }
    memcpy(list, longer, sizeof longer);
    return true;
}

void config_fold_norm_params(train_config *c) {
    model_options *m = &c->model;
    char *const value[] = {m->norm, m->decoder_norm, m->qk_norm};
    enum { VALUES = sizeof value / sizeof value[0] };
    const norm_option *o;
    for (int i = 0; (o = norm_option_at(i)); i++) {
        char text[VALUES][MODEL_TEXT], list[MODEL_TEXT];
        bool fits = !strpbrk(m->norm_param[i], ",;()");
        if (!*m->norm_param[i]) continue;
        memcpy(list, m->norm_at, sizeof list);
        for (int k = 0; k < VALUES; k++) {
            memcpy(text[k], value[k], MODEL_TEXT);
            fits = fits && add_param(text[k], MODEL_TEXT, o, m->norm_param[i]);
        }
        if (!fits || !add_to_list(list, o, m->norm_param[i])) continue;
        for (int k = 0; k < VALUES; k++) memcpy(value[k], text[k], MODEL_TEXT);
        memcpy(m->norm_at, list, sizeof list);
        m->norm_param[i][0] = 0;
    }
}
