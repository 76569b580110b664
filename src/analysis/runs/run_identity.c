/* Row and column of a run in a result table: normalization, placement, task and differing settings.
 *
 * A run of statrec train has them in its configuration, since the file may have only some of the
 * sites. A run of another program has them in its sites and its data. Its configuration may use
 * names of options for something else: all lines but the seed are settings, and `norm` if it is not
 * the method of the sites.
 */

#include "analysis/runs/run_identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/globs.h"
#include "base/options/norm_value.h"

/* -- configurations -------------------------------------------------------------------------- */

static bool config_is(const char *config, const char *key, const char *value) {
    run_word text;
    options_line_value(config, key, text, sizeof text);
    return strcmp(text, value) == 0;
}

/* -- identity -------------------------------------------------------------------------------- */

/* The parts of the stored --norm; empty if it is missing, or not the normalization. */
static norm_value norm_of(const run_identity *r) {
    option_line l;
    norm_value v;
    if (!options_find_line(r->info->config, "norm", 4, &l) ||
        !norm_value_split(l.value, l.value_length, &v))
        return (norm_value){0};
    const bool of_sites = (int)strlen(r->of_sites) == v.method_length &&
                          strncmp(r->of_sites, v.method, (size_t)v.method_length) == 0;
    return of_sites || run_is_trained(r->info) ? v : (norm_value){0};
}

static bool norm_has(const norm_value *v, const char *name, const char *value) {
    option_line p;
    return norm_value_find(v, name, (int)strlen(name), &p) &&
           p.value_length == (int)strlen(value) && !strncmp(p.value, value, strlen(value));
}

/* Marks another formula of a method of this name. */
static void add_form(const sr_run_info *info, const norm_value *v, run_word norm) {
    const char *config = run_is_trained(info) ? info->config : "";
    option_line l;
    const bool given = options_find_line(config, "layer-scale", (int)strlen("layer-scale"), &l);
    const bool scaled = (given && !(l.value_length == 1 && l.value[0] == '0')) ||
                        norm_value_find(v, "layer_scale", (int)strlen("layer_scale"), &l);
    if (scaled || v->layer_scale) text_append(norm, sizeof(run_word), "", "+ls");
    if (config_is(config, "norm-unbiased", "1") || norm_has(v, "unbiased", "1"))
        text_append(norm, sizeof(run_word), "/", "unbiased");
    if (config_is(config, "norm-placement", "outside") || norm_has(v, "placement", "outside"))
        text_append(norm, sizeof(run_word), "/", "outside");
}

/* Methods of the sites in the decoder, or of all others: "bn", or "bn,ln". */
static void norm_of_sites(const sr_runfile *run, bool decoder, run_word norm) {
    const sr_run_site *site;
    run_word word;
    norm[0] = 0;
    for (int64_t i = 0; (site = sr_run_get_site(run, i)); i++) {
        if ((strcmp(site->kind, "decoder") == 0) != decoder) continue;
        snprintf(word, sizeof word, "%s", site->called);
        if (!globs_match(norm, word)) text_append(norm, sizeof(run_word), ",", word);
    }
}

static void set_norms(run_identity *r) {
    run_word at;
    norm_of_sites(r->run, false, r->of_sites);
    const norm_value v = norm_of(r);
    snprintf(r->norm, sizeof r->norm, "%.*s", v.method_length, v.method_length ? v.method : "");
    run_option(r->run, "norm-at", at, sizeof at);
    if (r->norm[0]) add_form(r->info, &v, r->norm);
    if (r->norm[0] && at[0]) text_append(r->norm, sizeof r->norm, " with", " norm-at");
    if (!r->norm[0]) memcpy(r->norm, r->of_sites, sizeof r->norm);
    norm_of_sites(r->run, true, r->decoder);
    if (r->decoder[0]) return;
    run_option(r->run, "decoder-norm", r->decoder, sizeof r->decoder);
    norm_value d;
    if (norm_value_split(r->decoder, (int)strlen(r->decoder), &d))
        snprintf(r->decoder + d.method_length, sizeof r->decoder - (size_t)d.method_length, "%s",
                 d.layer_scale ? "+ls" : "");
}

/* Only pre-norm has a norm after the last layer; the recorded sites may lack it. */
static void set_placement(run_identity *r) {
    const sr_run_site *site;
    run_word recorded;
    bool last = false;
    run_option(r->run, "placement", r->placement, sizeof r->placement);
    const bool may = r->decoder[0] || run_has_option(r->run, "placement");
    if (r->placement[0] || !may) return;
    for (int64_t i = 0; (site = sr_run_get_site(r->run, i)); i++) {
        const char *dot = strrchr(site->name, '.');
        last = last || (dot && strcmp(dot, ".final") == 0);
    }
    run_option(r->run, "record-sites", recorded, sizeof recorded);
    const bool all = strcmp(recorded, "*") == 0;
    snprintf(r->placement, sizeof r->placement, "%s", last ? "pre" : all ? "post" : "?");
}

void run_identify(run_identity *r, const sr_runfile *run, const char *path) {
    *r = (run_identity){.run = run, .info = sr_run_get_info(run), .path = path};
    set_norms(r);
    set_placement(r);
    run_data_name(run, r->task, sizeof r->task);
    if (!r->norm[0]) snprintf(r->norm, sizeof r->norm, "none");
    if (!r->task[0]) snprintf(r->task, sizeof r->task, "?");
}

/* -- settings that differ -------------------------------------------------------------------- */

/* Options that are part of the identity, and options that do not change results. */
static const char ignored[] =
    "norm,decoder-norm,layer-scale,norm-unbiased,norm-placement,placement,data-dir,source,"
    "target,seed,output,force,threads,quiet,profile,config,record,record-sites,vectors-every,"
    "size-limit,spectra-every,activations-every,parameter-norms-every,theorems-every,svd-every,"
    "flush-steps,flush-"
    "seconds,sync,on-write-error,observe,attention-stats,"
    "final-tid,final-batches,pairs,validate-batch,validate-train,test,dump-weights,dump-batches,"
    "dump-steps";

/* Skips runs without a configuration. A key that others lack is a difference, unless it had no
 * effect there. */
static bool differs(const option_line *a, const run_identity *const *runs, int count) {
    option_line b;
    for (int i = 0; i < count; i++) {
        const char *config = runs[i]->info->config;
        if (!config || !config[0]) continue;
        if (!options_find_line(config, a->key, a->key_length, &b)) {
            if (options_left_out(config)) continue;
            return true;
        }
        if (a->value_length != b.value_length ||
            strncmp(a->value, b.value, (size_t)a->value_length) != 0)
            return true;
    }
    return false;
}

/* The identity excludes parameters of the decoder's normalization. */
static bool is_ignored(const run_identity *r, const option_line *l) {
    run_word key;
    snprintf(key, sizeof key, "%.*s", l->key_length, l->key);
    if (!run_is_trained(r->info))
        return !strcmp(key, "seed") || (!strcmp(key, "norm") && norm_of(r).method_length);
    if (!strcmp(key, "decoder-norm") && memchr(l->value, '(', (size_t)l->value_length))
        return false;
    return globs_match(ignored, key);
}

/* Parameters of --norm that are part of the identity. */
static const char forms[] = "layer_scale,unbiased,placement";

/* The next parameter of a's --norm that another run with this method lacks or sets otherwise. */
static bool next_param(const norm_value *a, const char **at, const run_identity *const *runs,
                       int count, option_line *p) {
    while (norm_value_next(a, at, p)) {
        run_word name;
        snprintf(name, sizeof name, "%.*s", p->key_length, p->key);
        for (int i = 0; i < count && !globs_match(forms, name); i++) {
            if (!runs[i]->info->config || !runs[i]->info->config[0]) continue;
            const norm_value b = norm_of(runs[i]);
            option_line other;
            const bool found = norm_value_find(&b, p->key, p->key_length, &other);
            if (!found || p->value_length != other.value_length ||
                strncmp(p->value, other.value, (size_t)p->value_length) != 0)
                return true;
        }
    }
    return false;
}

static int count_params(const run_identity *a, const run_identity *b) {
    const norm_value v = norm_of(a);
    option_line p;
    int count = 0;
    for (const char *at = NULL; next_param(&v, &at, &b, 1, &p);) count++;
    return count;
}

static const char *end_of_line(const option_line *l) {
    const char *end = l->value + l->value_length;
    return *end ? end + 1 : end;
}

/* Settings that a has and b has otherwise, or not at all: `missing` counts only the latter. Runs of
 * one program have most lines alike and in one order. These are skipped, since analyses of many
 * runs compare each pair. */
static int count_other_settings(const run_identity *a, const run_identity *b, bool missing) {
    const char *at = a->info->config, *there = b->info->config;
    option_line l, other;
    int count = 0;
    while (options_skip_equal(&at, &there), options_next_line(&at, &l)) {
        const bool found = options_find_line(b->info->config, l.key, l.key_length, &other);
        if (found) there = end_of_line(&other);
        if (is_ignored(a, &l)) continue;
        count += missing ? !found && !options_left_out(b->info->config) : differs(&l, &b, 1);
    }
    return count;
}

int run_distance(const run_identity *a, const run_identity *b) {
    const int count = count_params(a, b) + count_params(b, a);
    const char *x = a->info->config, *y = b->info->config;
    if (!x || !x[0]) return 0;
    if (!y || !y[0]) return count;
    return count + count_other_settings(a, b, false) + count_other_settings(b, a, true);
}

void run_settings(const run_identity *r, const run_identity *const *runs, int count, char *text,
                  size_t size) {
    const char *at = r->info->config;
    option_line l;
    text[0] = 0;
    while (options_next_line(&at, &l)) {
        run_word key;
        char setting[640];
        snprintf(key, sizeof key, "%.*s", l.key_length, l.key);
        const bool mixed = run_is_trained(r->info) && strcmp(key, "norm-at") == 0 && l.value_length;
        if (is_ignored(r, &l) || (!mixed && !differs(&l, runs, count))) continue;
        if (!l.value_length) l = (option_line){l.key, "default", l.key_length, 7};
        snprintf(setting, sizeof setting, "%s=%.*s", key, l.value_length, l.value);
        text_append(text, size, " ", setting);
    }
    const norm_value v = norm_of(r);
    for (const char *params = NULL; next_param(&v, &params, runs, count, &l);) {
        char setting[640];
        snprintf(setting, sizeof setting, "%.*s=%.*s", l.key_length, l.key, l.value_length,
                 l.value_length ? l.value : "");
        text_append(text, size, " ", setting);
    }
}
