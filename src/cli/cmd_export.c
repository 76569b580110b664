/* cmd_export.c -- statrec export RUN -o X.npz: records of a run, or weights of a checkpoint, as
 * arrays for numpy.load. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/globs.h"
#include "base/npz/npz.h"
#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "diagnose/diagnose.h"
#include "statrec/runfile.h"
#include "train/loaded_model.h"

typedef struct export_values {
    option_text output, stat, site;
    bool npz, force;
} export_values;

#define AT(field) offsetof(export_values, field)
static const option export_rows[] = {
    OUTPUT_OPTION(AT(output), "write this archive, X.npz"),
    FLAG_OPTION(NULL, "npz", AT(npz), "no", "without -o: write RUN.npz or X.npz beside the file"),
    TEXT_OPTION(NULL, "stat", AT(stat), "*",
                "export these names below /scalars and /vectors: globs, separated by commas",
                .value = "NAME,..."),
    TEXT_OPTION(NULL, "site", AT(site), "*",
                "export these sites: globs, first, middle, last, last-bn, separated by commas",
                .value = "SITE,..."),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the archive if it exists"),
};

static const command_frame frame = {
    "usage: statrec export RUN.h5 [-o X.npz|--npz] [--stat LIST] [--site LIST]\n"
    "       statrec export X.ckpt [-o X.npz|--npz]\n"
    "\n"
    "Writes the records of a run as a NumPy archive, for numpy.load. T steps, S chosen sites,\n"
    "V recorded steps of vectors, E evaluations, d the width of a site:\n"
    "  sites [S]                  names, as bytes\n"
    "  steps/NAME [T]             step, update, tokens, epoch, loss, lr, grad_norm, seconds\n"
    "  steps/NAME [T]             custom statistics per step\n"
    "  scalars/NAME [T, S]        with custom statistics; NaN where a site has none\n"
    "  vectors/step [V]\n"
    "  vectors/NAME/SITE [V, d]   of sites with vectors\n"
    "  evals/NAME [E]             with evals/step\n"
    "  final/pair_NAME [S, K]     x, y, feature: pairs of input and output, if recorded\n"
    "Statistics without a value in the run are left out.\n"
    "A checkpoint gives every parameter and running statistic by name,\n"
    "\"encoder.0.norm1.mu\". `statrec train --weights X.npz` reads them. Weights of linear\n"
    "layers are [out, in], weights of convolutions [out, height, width, in].\n"
    "\n",
    {export_rows, sizeof export_rows / sizeof export_rows[0]},
    NULL,
    "0 written, 1 failed, 2 usage.",
    2};

typedef struct exporter {
    const export_values *options;
    const sr_runfile *run;
    const sr_run_info *info;
    bool *chosen; /* [sites of the run] */
    int64_t sites;
    npz_writer *archive;
    bool any; /* a statistic was found */
} exporter;

/* -- sites ----------------------------------------------------------------------------------- */

static const char *name_of_site(const void *run, int64_t i) {
    return sr_run_get_site(run, i)->name;
}

/* bn: only sites with batch statistics, which have a distance from running ones in the last
 * step. */
static bool may_be_meant(const void *run, int64_t site, bool bn) {
    static const char *const names[] = {"dist_mu", "dist_psi2"};
    const int64_t steps = sr_run_get_info(run)->steps;
    if (!bn) return true;
    for (int i = 0; i < 2 && steps > 0; i++) {
        float value = NAN;
        if (sr_run_has_scalar(run, names[i]) &&
            sr_run_scalar(run, names[i], site, steps - 1, 1, &value, NULL) == SR_OK &&
            !isnan(value))
            return true;
    }
    return false;
}

static sr_status choose_sites(exporter *e, sr_failure *why) {
    const globs_sites sites = {e->info->sites, e->run, name_of_site, may_be_meant};
    char missed[GLOBS_WORD];
    e->chosen = calloc((size_t)e->info->sites + 1, sizeof *e->chosen);
    if (!e->chosen) return sr_fail(why, SR_MEMORY, "out of memory");
    if (!globs_choose(e->options->site, &sites, e->chosen, missed))
        return sr_fail(why, SR_USAGE, "--site: no site of %s matches '%.200s'", e->info->path,
                       missed);
    for (int64_t i = 0; i < e->info->sites; i++) e->sites += e->chosen[i];
    return SR_OK;
}

static sr_status export_site_names(exporter *e, sr_failure *why) {
    npz_array a = {.type = NPZ_TEXT64, .rank = 1, .dim = {e->sites}};
    char(*name)[SR_NAME_SIZE] = calloc((size_t)e->sites + 1, sizeof *name);
    if (!name) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0, k = 0; i < e->info->sites; i++)
        if (e->chosen[i]) memcpy(name[k++], sr_run_get_site(e->run, i)->name, sizeof *name);
    a.data = name;
    sr_status status = npz_add(e->archive, "sites", &a, why);
    free(name);
    return status;
}

/* -- columns --------------------------------------------------------------------------------- */

static sr_status add_column(exporter *e, const char *group, const char *name, npz_type type,
                            int64_t rows, void *data, sr_failure *why) {
    char path[2 * SR_NAME_SIZE];
    npz_array a = {.type = type, .rank = 1, .dim = {rows}, .data = data};
    snprintf(path, sizeof path, "%s/%s", group, name);
    return npz_add(e->archive, path, &a, why);
}

static sr_status export_steps(exporter *e, sr_failure *why) {
    const int64_t rows = e->info->steps;
    int64_t *whole = malloc((size_t)(rows + 1) * sizeof *whole);
    double *number = malloc((size_t)(rows + 1) * sizeof *number);
    sr_status status = whole && number ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
#define WHOLE(name, ...)                                                                           \
    if (status == SR_OK) status = sr_run_step_ints(e->run, #name, 0, rows, whole, why);            \
    if (status == SR_OK) status = add_column(e, "steps", #name, NPZ_INT64, rows, whole, why);
#define REAL(name, ...)                                                                            \
    if (status == SR_OK) status = sr_run_step_reals(e->run, #name, 0, rows, number, why);          \
    if (status == SR_OK) status = add_column(e, "steps", #name, NPZ_FLOAT64, rows, number, why);
    SR_STEP_INTS(WHOLE)
    SR_STEP_REALS(REAL)
    const sr_run_declared *d;
    for (int64_t i = 0; status == SR_OK && (d = sr_run_get_declared(e->run, i)); i++) {
        if (d->scope != SR_PER_STEP) continue;
        status = sr_run_step_reals(e->run, d->name, 0, rows, number, why);
        if (status == SR_OK)
            status = add_column(e, "steps", d->name, NPZ_FLOAT64, rows, number, why);
    }
    free(whole), free(number);
    return status;
}

static sr_status export_evals(exporter *e, sr_failure *why) {
    const int64_t rows = e->info->evals;
    const char *name;
    double *value = malloc((size_t)(rows + 1) * sizeof *value);
    if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status = sr_run_eval(e->run, "step", 0, rows, value, why);
    if (status == SR_OK) status = add_column(e, "evals", "step", NPZ_FLOAT64, rows, value, why);
    for (int i = 0; status == SR_OK && (name = sr_run_name(e->run, "evals", i)); i++) {
        status = sr_run_eval(e->run, name, 0, rows, value, why);
        if (status == SR_OK) status = add_column(e, "evals", name, NPZ_FLOAT64, rows, value, why);
    }
    free(value);
    return status;
}

/* [T, S] for the chosen sites. */
static sr_status export_scalar(exporter *e, const char *name, sr_failure *why) {
    const int64_t rows = e->info->steps;
    char path[2 * SR_NAME_SIZE];
    float *one = malloc((size_t)(rows + 1) * sizeof *one);
    float *all = malloc((size_t)(rows * e->sites + 1) * sizeof *all);
    sr_status status = one && all ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0, k = 0; i < e->info->sites && status == SR_OK; i++) {
        if (!e->chosen[i]) continue;
        status = sr_run_scalar(e->run, name, i, 0, rows, one, why);
        for (int64_t t = 0; t < rows && status == SR_OK; t++) all[t * e->sites + k] = one[t];
        k++;
    }
    npz_array a = {.type = NPZ_FLOAT32, .rank = 2, .dim = {rows, e->sites}, .data = all};
    snprintf(path, sizeof path, "scalars/%s", name);
    if (status == SR_OK) status = npz_add(e->archive, path, &a, why);
    free(one), free(all);
    return status;
}

/* [V, d] for each chosen site with values. */
static sr_status export_vector(exporter *e, const char *name, sr_failure *why) {
    const int64_t rows = e->info->vectors;
    sr_status status = SR_OK;
    for (int64_t i = 0; i < e->info->sites && status == SR_OK; i++) {
        const sr_run_site *s = sr_run_get_site(e->run, i);
        char path[3 * SR_NAME_SIZE];
        bool any = false;
        if (!e->chosen[i]) continue;
        float *value = malloc((size_t)(rows * s->width + 1) * sizeof *value);
        if (!value) return sr_fail(why, SR_MEMORY, "out of memory");
        status = sr_run_vector(e->run, name, i, 0, rows, value, why);
        for (int64_t k = 0; k < rows * s->width && status == SR_OK; k++) any |= !isnan(value[k]);
        npz_array a = {.type = NPZ_FLOAT32, .rank = 2, .dim = {rows, s->width}, .data = value};
        snprintf(path, sizeof path, "vectors/%s/%s", name, s->name);
        if (any && status == SR_OK) status = npz_add(e->archive, path, &a, why);
        free(value);
    }
    return status;
}

static sr_status export_statistics(exporter *e, sr_failure *why) {
    const char *name;
    bool any = false;
    sr_status status = SR_OK;
    for (int i = 0; status == SR_OK && (name = sr_run_name(e->run, "scalars", i)); i++) {
        if (!globs_match(e->options->stat, name)) continue;
        any = true;
        if (sr_run_has_scalar(e->run, name)) status = export_scalar(e, name, why);
    }
    const int64_t rows = e->info->vectors;
    int64_t *step = malloc((size_t)(rows + 1) * sizeof *step);
    if (!step) return sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) status = sr_run_vector_steps(e->run, 0, rows, step, why);
    if (status == SR_OK) status = add_column(e, "vectors", "step", NPZ_INT64, rows, step, why);
    free(step);
    for (int i = 0; status == SR_OK && (name = sr_run_name(e->run, "vectors", i)); i++) {
        if (!globs_match(e->options->stat, name)) continue;
        any = true;
        if (sr_run_has_vector(e->run, name)) status = export_vector(e, name, why);
    }
    if (status != SR_OK || any) return status;
    return sr_fail(why, SR_USAGE, "--stat: '%.200s' matches no statistic of %s", e->options->stat,
                   e->info->path);
}

/* [S, K] for the chosen sites. */
static sr_status export_pairs(exporter *e, sr_failure *why) {
    const int64_t count = e->info->pairs;
    const size_t room = (size_t)(e->sites * count) + 1;
    if (count == 0) return SR_OK;
    float *x = malloc(room * sizeof *x), *y = malloc(room * sizeof *y);
    int32_t *feature = malloc(room * sizeof *feature);
    sr_status status = x && y && feature ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    for (int64_t i = 0, at = 0; i < e->info->sites && status == SR_OK; i++) {
        if (!e->chosen[i]) continue;
        status = sr_run_pairs(e->run, i, x + at, y + at, feature + at, why);
        at += count;
    }
    void *const value[SR_PAIR_COUNT] = {x, y, feature};
#define ADD_PAIR(name, kind, ...)                                                                  \
    npz_array name##_array = {NPZ_##kind, 2, {e->sites, count}, value[SR_PAIR_##name]};            \
    if (status == SR_OK) status = npz_add(e->archive, "final/pair_" #name, &name##_array, why);
    SR_PAIRS(ADD_PAIR)
#undef ADD_PAIR
    free(x), free(y), free(feature);
    return status;
}

static sr_status export_run(const tool *t, const export_values *v, const char *name,
                            sr_failure *why) {
    sr_runfile *f = sr_run_open(name, why);
    if (!f) return why->status;
    diagnose_warn_damage(t, 1, t->argv + 2);
    exporter e = {.options = v, .run = f, .info = sr_run_get_info(f)};
    sr_status status = choose_sites(&e, why);
    if (status == SR_OK && !(e.archive = npz_create(v->output, v->force, why)))
        status = why->status;
    if (status == SR_OK) status = export_site_names(&e, why);
    if (status == SR_OK) status = export_steps(&e, why);
    if (status == SR_OK) status = export_statistics(&e, why);
    if (status == SR_OK) status = export_evals(&e, why);
    if (status == SR_OK) status = export_pairs(&e, why);
    if (status == SR_OK)
        status = npz_write(e.archive, why);
    else
        npz_abandon(e.archive);
    free(e.chosen);
    sr_run_close(f);
    return status;
}

/* -- checkpoints ----------------------------------------------------------------------------- */

static sr_status export_weights(const export_values *v, const char *name, sr_failure *why) {
    loaded_model *t = calloc(1, sizeof *t);
    if (!t) return sr_fail(why, SR_MEMORY, "out of memory");
    sr_status status =
        loaded_model_open(t, name, &(loaded_model_options){.threads = 1, .data_dir = ""}, why);
    if (status == SR_OK) status = weights_write_npz(t->model, v->output, v->force, why);
    loaded_model_close(t);
    free(t);
    return status;
}

/* -- the command ----------------------------------------------------------------------------- */

static void drop_ending(char *name, const char *ending) {
    char *dot = strrchr(name, '.');
    if (dot && !strcmp(dot, ending)) *dot = '\0';
}

int cmd_export(const tool *t) {
    export_values values;
    sr_failure why = {0};
    int files = 0, code;
    if (command_ends(t, &frame, &values, &files, &code)) return code;
    if (files != 1) return tool_error(t, TOOL_USAGE, "one run file expected, %d given", files);
    const char *name = t->argv[2];
    if (!values.output[0] && !values.npz)
        return tool_error(t, TOOL_USAGE, "-o X.npz or --npz is missing");
    if (!values.output[0]) { /* run.h5 and run.h5.part give run.npz */
        option_text stem;
        const int length = snprintf(stem, sizeof stem, "%s", name);
        drop_ending(stem, ".part");
        drop_ending(stem, ".h5");
        drop_ending(stem, ".ckpt");
        if (length >= (int)sizeof stem || snprintf(values.output, sizeof values.output, "%s.npz",
                                                   stem) >= (int)sizeof values.output)
            return tool_error(t, TOOL_USAGE, "--npz: the name is too long: %.80s...", name);
    }
    const bool checkpoint = checkpoint_is_name(name), any_stat = !strcmp(values.stat, "*");
    if (checkpoint && (!any_stat || strcmp(values.site, "*") != 0))
        return tool_error(t, TOOL_USAGE, "--%s has no effect on a checkpoint",
                          any_stat ? "site" : "stat");
    sr_status status =
        checkpoint ? export_weights(&values, name, &why) : export_run(t, &values, name, &why);
    if (status != SR_OK) return tool_report(t, &why);
    tsv_escape(stdout, values.output);
    puts(": written");
    return TOOL_DONE;
}
