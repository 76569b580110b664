/* cmd_info.c -- statrec info RUN: prints the contents of a run file, finished or not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/globs.h"
#include "base/program/progress.h"
#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "cli/info/cmd_info_parts.h"
#include "diagnose/diagnose.h"
#include "runfile/read/file/reader.h"
#include "train/loaded_model.h"

enum { LABEL_WIDTH = 14, EVALS_SHOWN = 5, NORMS_SHOWN = 8, SPECTRA_SHOWN = 4 };

typedef struct info_values {
    bool options, follow;
    option_text format;
} info_values;

#define AT(field) offsetof(info_values, field)
static const option info_rows[] = {
    FLAG_OPTION(NULL, "options", AT(options), "no",
                "print only the stored options, as a .conf file"),
    FLAG_OPTION(NULL, "follow", AT(follow), "no",
                "print a line when new rows arrive, until the run or its writer ends"),
    CHOICE_OPTION(NULL, "format", AT(format), "text", "text|" TSV_FORMATS,
                  "print the sites as a table, everything else in its notes"),
};

static const command_frame frame = {
    "usage: statrec info [OPTIONS] RUN.h5|X.ckpt\n"
    "\n"
    "Prints status, origin, readable rows, last evaluations, sites and statistics of a run\n"
    "file. Without RUN.h5 it reads RUN.h5.part. Reads an unfinished file up to its last\n"
    "flush. Prints the readable parts of a damaged file and names the others.\n"
    "\n",
    {info_rows, sizeof info_rows / sizeof info_rows[0]},
    NULL,
    "0 readable, 1 not readable or damaged, or (--follow) its writer ended, 2 usage.",
    2};

static void print_label(const char *label) {
    printf("%-*s", LABEL_WIDTH, label);
}

static void print_text(const char *label, const char *text) {
    if (!text || !*text) return;
    print_label(label);
    tsv_escape(stdout, text);
    putchar('\n');
}

/* -- the run --------------------------------------------------------------------------------- */

static int64_t last_step(const sr_runfile *f, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(f);
    int64_t step = 0;
    if (info->steps > 0) sr_run_step_ints(f, "step", info->steps - 1, 1, &step, why);
    return step;
}

static void print_status(const sr_runfile *f, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(f);
    if (strcmp(info->status, "running") != 0) {
        print_text("status", info->status);
    } else if (info->steps == 0) {
        print_text("status", "unfinished: no step readable yet");
    } else {
        print_label("status");
        printf("unfinished: readable up to step %lld\n", (long long)last_step(f, why));
    }
    print_text("reason", info->reason);
}

/* RUN.h5.part beside RUN.h5: a resumed or replaced run that is being written, or was killed. */
static void print_beside(const sr_run_info *info) {
    char part[4096 + 8];
    snprintf(part, sizeof part, "%.4095s.part", info->path);
    sr_runfile *f = access(part, F_OK) == 0 ? sr_run_open(part, NULL) : NULL;
    if (!f) return;
    const sr_run_info *other = sr_run_get_info(f);
    const bool running = !strcmp(other->status, "running");
    print_label("newer");
    printf("%s: %s, %lld steps\n", part, running ? "unfinished" : other->status,
           (long long)other->steps);
    sr_run_close(f);
}

/* The writer of an unfinished file. */
static void print_writer(const sr_run_info *info) {
    long pid = 0;
    double idle = NAN;
    char ago[32];
    if (strcmp(info->status, "running") != 0) return;
    const writer_state state = cmd_info_writer(info, &pid, &idle);
    progress_duration(idle, ago, sizeof ago);
    print_label("writer");
    if (state == WRITER_ALIVE)
        printf("process %ld is alive; ", pid);
    else if (state == WRITER_GONE)
        printf("gone: no process has the file open for writing; ");
    else
        printf("not known here (host %s); ", *info->host ? info->host : "?");
    printf("last written %s ago\n", ago);
}

/* Distinct methods of the sites, in the order of their first site. */
static void print_norms(const sr_runfile *f) {
    const char *seen[NORMS_SHOWN];
    int count = 0;
    const sr_run_site *s;
    print_label("norm");
    for (int64_t i = 0; (s = sr_run_get_site(f, i)); i++) {
        bool known = false;
        for (int k = 0; k < count; k++) known |= strcmp(seen[k], s->called) == 0;
        if (known) continue;
        if (count == NORMS_SHOWN) {
            printf(", ...");
            break;
        }
        if (count) printf(", ");
        tsv_escape(stdout, s->called);
        seen[count++] = s->called;
    }
    putchar('\n');
}

static void print_origin(const sr_runfile *f) {
    const sr_run_info *info = sr_run_get_info(f);
    if (*info->program || *info->version) {
        print_label("program");
        tsv_escape(stdout, info->program);
        putchar(' ');
        tsv_escape(stdout, info->version);
        putchar('\n');
    }
    print_text("command", info->command);
    print_text("model", info->model);
    print_text("data", info->data);
    print_text("task", info->task);
    print_norms(f);
    print_text("loss", info->loss_reduction);
    print_label("seed");
    printf("%llu\n", (unsigned long long)info->seed);
    print_label("threads");
    printf("%d\n", info->threads);
    print_text("host", info->host);
    print_text("git", info->git);
    print_text("parent", info->parent);
    info_print_copied(f);
    print_text("ranks", info->ranks);
    print_text("created", info->created);
    print_text("finished", info->finished);
    if (!isnan(info->wall_seconds)) {
        print_label("wall time");
        char duration[32];
        progress_duration(info->wall_seconds, duration, sizeof duration);
        if (info->wall_seconds < 60)
            printf("%.1f s\n", info->wall_seconds);
        else
            printf("%s (%.1f s)\n", duration, info->wall_seconds);
    }
    print_text("weights", info->weights_digest);
}

/* -- contents -------------------------------------------------------------------------------- */

static void print_steps(const sr_runfile *f, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(f);
    print_label("steps");
    printf("%lld", (long long)info->steps);
    int64_t first, update;
    double loss, epoch;
    int64_t last = info->steps - 1;
    if (info->steps > 0 && sr_run_step_ints(f, "step", 0, 1, &first, why) == SR_OK &&
        sr_run_step_ints(f, "update", last, 1, &update, why) == SR_OK &&
        sr_run_step_reals(f, "loss", last, 1, &loss, why) == SR_OK &&
        sr_run_step_reals(f, "epoch", last, 1, &epoch, why) == SR_OK)
        printf(": %lld to %lld, update %lld, epoch %.4g, last loss %.6g", (long long)first,
               (long long)last_step(f, why), (long long)update, epoch, loss);
    putchar('\n');
}

/* Up to EVALS_SHOWN values after a name. */
static void print_values(const char *name, int digits, const double *value, int64_t count) {
    printf("  ");
    tsv_escape(stdout, name);
    printf("%*s", (int)(strlen(name) < 20 ? 20 - strlen(name) : 0), "");
    for (int64_t i = 0; i < count; i++) printf(" %12.*g", digits, value[i]);
    printf("%*s", (int)(EVALS_SHOWN - count) * 13, "");
}

/* Name, last values (blank without any), unit and direction. */
static void print_metric(const sr_runfile *f, const sr_run_metric *m, int64_t first, int64_t count,
                         sr_failure *why) {
    static const char *const direction[] = {", less is better", "", ", more is better"};
    double value[EVALS_SHOWN];
    bool any = false;
    if (count && sr_run_has_eval(f, m->name) &&
        sr_run_eval(f, m->name, first, count, value, why) != SR_OK)
        return;
    for (int64_t i = 0; i < count && sr_run_has_eval(f, m->name); i++) any |= !isnan(value[i]);
    print_values(m->name, 6, value, any ? count : 0);
    fputs("  ", stdout);
    tsv_escape(stdout, m->unit);
    printf("%s\n", direction[m->better + 1]);
}

/* A run that has no evaluation yet may still have one. */
static bool may_have_values(const sr_runfile *f, const char *name, int64_t rows) {
    enum { BLOCK = 512 };
    double value[BLOCK];
    sr_failure why = {0};
    for (int64_t at = 0; at < rows && sr_run_has_eval(f, name); at += BLOCK) {
        const int64_t n = rows - at < BLOCK ? rows - at : BLOCK;
        if (sr_run_eval(f, name, at, n, value, &why) != SR_OK) return true;
        for (int64_t i = 0; i < n; i++)
            if (!isnan(value[i])) return true;
    }
    return rows == 0;
}

/* The last evaluations as a table with a line for each metric. */
static void print_evals(const sr_runfile *f, sr_failure *why) {
    const sr_run_metric *m;
    int64_t rows = sr_run_get_info(f)->evals;
    print_label("evaluations");
    printf("%lld\n", (long long)rows);
    int64_t first = rows > EVALS_SHOWN ? rows - EVALS_SHOWN : 0, count = rows - first;
    double value[EVALS_SHOWN];
    if (count && sr_run_eval(f, "step", first, count, value, why) != SR_OK) return;
    if (count) print_values("step", 12, value, count), putchar('\n');
    if (count && sr_run_eval(f, "epoch", first, count, value, why) != SR_OK) return;
    if (count) print_values("epoch", 6, value, count), putchar('\n');
    for (int64_t i = 0; (m = sr_run_get_metric(f, i)); i++)
        if (may_have_values(f, m->name, rows)) print_metric(f, m, first, count, why);
}

/* Number of spectra, their steps and sites. */
static void print_spectra(const sr_runfile *f, sr_failure *why) {
    const sr_run_info *info = sr_run_get_info(f);
    int64_t step[SPECTRA_SHOWN], rows, sites = 0, shown = 0, widest = 0;
    print_label("spectra");
    if (info->spectra == 0) {
        puts("none");
        return;
    }
    for (int64_t i = 0; i < info->sites; i++)
        if (sr_run_get_site(f, i)->width > widest) widest = sr_run_get_site(f, i)->width;
    double *value = malloc((size_t)(widest + 1) * sizeof *value);
    if (!value) {
        sr_fail(why, SR_MEMORY, "%s: a spectrum", info->path);
        return;
    }
    for (int64_t i = 0; i < info->sites && why->status == SR_OK; i++)
        if (sr_run_spectrum(f, 0, i, 0, step, &rows, value, why) == SR_OK && rows >= 0)
            sites += !globs_is_replica(sr_run_get_site(f, i)->name);
    for (; shown < info->spectra && shown < SPECTRA_SHOWN && why->status == SR_OK; shown++)
        sr_run_spectrum(f, 0, 0, shown, &step[shown], &rows, value, why);
    free(value);
    if (why->status != SR_OK) {
        puts("unreadable");
        return;
    }
    printf("%lld: step%s", (long long)info->spectra, info->spectra > 1 ? "s" : "");
    for (int64_t i = 0; i < shown; i++) printf("%s %lld", i ? "," : "", (long long)step[i]);
    printf("%s of %lld sites, inputs and gradients\n", info->spectra > shown ? ", ..." : "",
           (long long)sites);
}

static const char *const final_names[] = {
#define FINAL_NAME(name, ...) #name,
    SR_FINALS(FINAL_NAME)};

static bool is_measured(double *const *value, int64_t site) {
    bool any = false;
    for (int k = 0; k < SR_FINAL_COUNT; k++) any |= !isnan(value[k][site]);
    return any;
}

/* One line per site with a number, then the definitions. */
static void print_final_sites(const sr_runfile *f, double *const *value, sr_failure *why) {
    char path[SR_NAME_SIZE];
    const char *definition;
    printf("  %4s  %-24s", "site", "name");
    for (int k = 0; k < SR_FINAL_COUNT; k++) printf(" %12s", final_names[k]);
    putchar('\n');
    for (int64_t i = 0; i < sr_run_get_info(f)->sites; i++) {
        if (!is_measured(value, i)) continue;
        info_print_site_name(f, i);
        for (int k = 0; k < SR_FINAL_COUNT; k++) printf(" %12.6g", value[k][i]);
        putchar('\n');
    }
    for (int k = 0; k < SR_FINAL_COUNT; k++) {
        snprintf(path, sizeof path, "final/%s", final_names[k]);
        reader_definition(f, path, &definition, why);
        printf("  %s: ", final_names[k]);
        tsv_escape(stdout, definition);
        putchar('\n');
    }
}

static void print_final(const sr_runfile *f, sr_failure *why) {
    int64_t batches, sites = sr_run_get_info(f)->sites;
    double *memory = malloc((size_t)(SR_FINAL_COUNT * sites + 1) * sizeof *memory);
    double *value[SR_FINAL_COUNT];
    print_label("final pass");
    if (!memory) {
        sr_fail(why, SR_MEMORY, "%s: the final pass", sr_run_get_info(f)->path);
        return;
    }
    for (int k = 0; k < SR_FINAL_COUNT; k++) value[k] = memory + k * sites;
    if (sr_run_final(f, &batches, value, why) != SR_OK) {
        puts("unreadable");
    } else if (batches < 0) {
        puts("none");
    } else {
        const int64_t pairs = sr_run_get_info(f)->pairs;
        int64_t measured = 0;
        for (int64_t i = 0; i < sites; i++) measured += is_measured(value, i);
        printf("%lld batch%s with frozen running values%s\n", (long long)batches,
               batches == 1 ? "" : "es", measured ? "" : "; no site has any");
        if (pairs) printf("  %lld pairs of input and output of a site\n", (long long)pairs);
        if (measured) print_final_sites(f, value, why);
    }
    free(memory);
}

static void print_names(const sr_runfile *f, const char *group,
                        bool (*has)(const sr_runfile *, const char *)) {
    const char *name;
    print_label(group);
    bool any = false;
    for (int i = 0; (name = sr_run_name(f, group, i)); i++) {
        if (has && !has(f, name)) continue;
        if (any) putchar(' ');
        tsv_escape(stdout, name);
        any = true;
    }
    puts(any ? "" : "none");
}

/* Prints the failure of a part, unless it was printed already. */
static void print_damage(const sr_runfile *f, sr_failure *part, sr_failure *first) {
    const char *known;
    bool told = part->status == SR_OK || strcmp(part->text, first->text) == 0;
    for (int i = 0; !told && (known = sr_run_damage(f, i)); i++) told = !strcmp(known, part->text);
    if (!told) print_text("damaged", part->text);
    sr_fail(first, part->status, "%s", part->text);
    *part = (sr_failure){0};
}

/* Prints everything readable; *why keeps the first failure. */
static void print_run(const sr_runfile *f, sr_failure *why) {
    sr_failure part = {0};
    const char *damage;
    print_text("file", sr_run_get_info(f)->path);
    for (int i = 0; (damage = sr_run_damage(f, i)); i++) {
        print_text("damaged", damage);
        sr_fail(why, SR_FORMAT, "%s", damage);
    }
    print_status(f, &part), print_damage(f, &part, why);
    print_writer(sr_run_get_info(f));
    print_beside(sr_run_get_info(f));
    print_origin(f);
    print_steps(f, &part), print_damage(f, &part, why);
    const sr_run_info *info = sr_run_get_info(f);
    int64_t step[2];
    print_label("vectors");
    printf("%lld", (long long)info->vectors);
    if (info->vectors > 1 && sr_run_vector_steps(f, 0, 2, step, &part) == SR_OK)
        printf(": steps %lld, %lld, ...", (long long)step[0], (long long)step[1]);
    printf(" of %lld columns\n", (long long)info->width);
    print_damage(f, &part, why);
    print_evals(f, &part), print_damage(f, &part, why);
    print_label("sites");
    info_print_sites(f);
    print_names(f, "scalars", sr_run_has_scalar);
    info_print_declared(f);
    print_names(f, "vectors", sr_run_has_vector);
    print_names(f, "embeddings", NULL);
    print_spectra(f, &part), print_damage(f, &part, why);
    print_final(f, &part), print_damage(f, &part, why);
}

/* -- the table of sites ---------------------------------------------------------------------- */

static void note_run(const sr_runfile *f, tsv *table) {
    const sr_run_info *info = sr_run_get_info(f);
    const struct {
        const char *key, *text;
    } texts[] = {{"file", info->path},
                 {"status", info->status},
                 {"reason", info->reason},
                 {"written by", info->program},
                 {"written as", info->command},
                 {"model", info->model},
                 {"data", info->data},
                 {"task", info->task},
                 {"loss", info->loss_reduction},
                 {"host", info->host},
                 {"git", info->git},
                 {"parent", info->parent},
                 {"ranks", info->ranks},
                 {"created", info->created},
                 {"finished", info->finished},
                 {"weights", info->weights_digest}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (*texts[i].text) tsv_note(table, texts[i].key, "%s", texts[i].text);
    tsv_note(table, "seed", "%llu", (unsigned long long)info->seed);
    tsv_note(table, "rows", "%lld steps, %lld vectors, %lld evaluations, %lld spectra",
             (long long)info->steps, (long long)info->vectors, (long long)info->evals,
             (long long)info->spectra);
    info_note_declared(f, table);
    info_note_copied(f, table);
}

static void print_site_table(const sr_runfile *f, tsv *table, sr_failure *why) {
    const sr_run_site *s;
    tsv_column(table, "site", "normalization site");
    tsv_column(table, "norm", "its normalization");
    tsv_column(table, "kind", "its part of the model");
    tsv_column(table, "width", "features");
    tsv_column(table, "depth", "position in the forward pass, from 0");
    tsv_column(table, "eps", "added to the variance or mean square");
    tsv_column(table, "alpha", "weight of the old running value");
    tsv_column(table, "layer_scale", "groups of the layer scale before it; 0: none");
    tsv_column(table, "observed", "1: batch statistics are recorded for comparison only");
    tsv_header(table);
    for (int64_t i = 0; (s = sr_run_get_site(f, i)); i++) {
        tsv_text(table, s->name), tsv_text(table, s->norm), tsv_text(table, s->kind);
        tsv_int(table, s->width), tsv_int(table, s->depth);
        tsv_real(table, s->eps), tsv_real(table, s->alpha);
        tsv_int(table, s->layer_scale), tsv_int(table, s->observed);
    }
    tsv_finish(stdout, why);
}

static void print_table(const sr_runfile *f, const char *format, const char *command,
                        sr_failure *why) {
    tsv table;
    const char *damage;
    tsv_set_format(format);
    tsv_begin(&table, stdout, "statrec info", command);
    note_run(f, &table);
    for (int i = 0; (damage = sr_run_damage(f, i)); i++) {
        tsv_note(&table, "damaged", "%s", damage);
        sr_fail(why, SR_FORMAT, "%s", damage);
    }
    print_site_table(f, &table, why);
}

static sr_status print_file(const info_values *v, const char *path, const char *command,
                            sr_failure *why) {
    sr_runfile *f = sr_run_open(path, why);
    if (!f) return why->status;
    if (v->options)
        tsv_plain(stdout, sr_run_get_info(f)->config, strlen(sr_run_get_info(f)->config));
    else if (strcmp(v->format, "text") == 0)
        print_run(f, why);
    else
        print_table(f, v->format, command, why);
    sr_run_close(f);
    if (why->status == SR_FORMAT) sr_hint(why, "`statrec check` lists all that is damaged");
    return why->status;
}

int cmd_info(const tool *t) {
    info_values values;
    sr_failure why = {0};
    int files = 0, code;
    char *command = tool_command(t); /* before the options move */
    const bool ends = command_ends(t, &frame, &values, &files, &code);
    if (ends || files != 1 || values.follow) free(command);
    if (ends) return code;
    if (files != 1) return tool_error(t, TOOL_USAGE, "one run file expected, %d given", files);
    if (values.follow && (values.options || strcmp(values.format, "text") != 0))
        return tool_error(t, TOOL_USAGE, "--follow goes neither with --options nor with --format");
    if (values.follow) return cmd_info_follow(t, t->argv[2]);
    const bool checkpoint = checkpoint_is_name(t->argv[2]);
    if (checkpoint) {
        free(command);
        return checkpoint_info(t->argv[2], values.options, &why) == SR_OK ? TOOL_DONE
                                                                          : tool_report(t, &why);
    }
    sr_status status = command ? print_file(&values, t->argv[2], command, &why)
                               : sr_fail(&why, SR_MEMORY, "out of memory");
    free(command);
    if (status == SR_OK && values.options) diagnose_warn_damage(t, 1, t->argv + 2);
    return status == SR_OK ? TOOL_DONE : tool_report(t, &why);
}
