/* run_config.c -- options, data set and counted units of a run.
 *
 * A configuration of statrec train lists the options with an effect in the run. So the presence of
 * an option describes the run: with `source` it translates, with `decoder-norm` it has a decoder.
 * The first files list all options (options_left_out); the table below lists those without effect.
 */

#include "analysis/runs/run_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/globs.h"
#include "base/options/options.h"

/* The unit that losses are divided by, and options without effect then. Configurations with all
 * options belong to images or to sentence pairs. */
static const struct {
    const char *counts, *unused;
} whole[] = {
    {"image", "decoder-norm,placement,source,target,max-tokens,max-tokens-of,batching"},
    {"token", "batch-size"},
};

void text_append(char *text, size_t size, const char *separator, const char *more) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? separator : "", more);
}

bool run_is_trained(const sr_run_info *info) {
    const char *program = info->program ? info->program : "";
    return strcmp(program, "statrec train") == 0 || strcmp(program, "statrec study") == 0;
}

void run_counts(const sr_runfile *run, run_word what) {
    static const char begin[] = "nats per ";
    const sr_run_metric *m;
    what[0] = 0;
    for (int64_t i = 0; (m = sr_run_get_metric(run, i)) && !what[0]; i++)
        if (strncmp(m->unit, begin, sizeof begin - 1) == 0)
            snprintf(what, sizeof(run_word), "%s", m->unit + sizeof begin - 1);
}

bool run_has_option(const sr_runfile *run, const char *key) {
    const char *config = sr_run_get_info(run)->config;
    option_line l;
    run_word counts;
    if (!run_is_trained(sr_run_get_info(run))) return false;
    if (!options_find_line(config, key, (int)strlen(key), &l)) return false;
    if (options_left_out(config)) return true;
    run_counts(run, counts);
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(whole[i].counts, counts) == 0) return !globs_match(whole[i].unused, key);
    return true;
}

void run_option(const sr_runfile *run, const char *key, char *value, size_t size) {
    value[0] = 0;
    if (run_has_option(run, key))
        options_line_value(sr_run_get_info(run)->config, key, value, size);
}

double run_option_number(const sr_runfile *run, const char *key) {
    option_text text;
    char *end;
    run_option(run, key, text, sizeof text);
    const double value = strtod(text, &end);
    return end == text ? NAN : value;
}

/* -- data ------------------------------------------------------------------------------------ */

/* alpha_bwd in a comment "# SITE: pn alpha_bwd=0.9" or "# SITE and 2 more: pn alpha_bwd=0.9" of a
 * configuration (config_text.c). *named: it is this site; else it may be one of the 2. NaN: it is
 * about other sites. */
static double commented_alpha(const char *line, const sr_run_site *site, bool *named) {
    static const char key[] = " alpha_bwd=";
    const size_t name = strcspn(site->name, "@"), norm = strlen(site->norm); /* NAME of a shard */
    char text[2 * SR_NAME_SIZE + 256];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    const char *method = strstr(text, ": "), *value = strstr(text, key);
    if (strncmp(text, "# ", 2) != 0 || !method || !value) return NAN;
    if (strncmp(method + 2, site->norm, norm) != 0 || method[2 + norm] != ' ') return NAN;
    *named = strncmp(text + 2, site->name, name) == 0 && strchr(": ", text[2 + name]);
    return *named || strstr(text, " more: ") ? strtod(value + strlen(key), NULL) : NAN;
}

double run_alpha_backward(const sr_runfile *run, const sr_run_site *site) {
    const char *line = sr_run_get_info(run)->config;
    double found = site->alpha;
    if (!isnan(site->alpha_bwd)) return site->alpha_bwd;
    for (bool named = false, any = false; *line && !named;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const double value = commented_alpha(line, site, &named);
        if (isnan(value)) continue;
        found = named || !any || value == found ? value : NAN;
        any = true;
    }
    return found;
}

void run_data_name(const sr_runfile *run, char *name, size_t size) {
    char directory[2048], source[41], target[41], direction[96];
    run_option(run, "data-dir", directory, sizeof directory);
    for (size_t used = strlen(directory); used > 1 && directory[used - 1] == '/';)
        directory[--used] = 0;
    const char *slash = strrchr(directory, '/'), *base = slash ? slash + 1 : directory;
    const bool named = base[0] && base[0] != '.';
    snprintf(name, size, "%s", named ? base : sr_run_get_info(run)->data);
    run_option(run, "source", source, sizeof source);
    run_option(run, "target", target, sizeof target);
    snprintf(direction, sizeof direction, "%s-%s", source, target);
    const size_t used = strlen(name), tail = strlen(direction);
    const bool there = used >= tail && strcmp(name + used - tail, direction) == 0;
    if (named && source[0] && !there) snprintf(name + used, size - used, " %s", direction);
}
