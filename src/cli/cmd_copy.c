/* cmd_copy.c -- statrec copy RUN... -o OUT: a run, or a part of it, in a new run file. */
#include <stdlib.h>
#include <string.h>

#include "analysis/frame/site_selection.h"
#include "analysis/frame/step_range.h"
#include "base/tsv.h"
#include "cli/command_frame.h"
#include "cli/commands.h"
#include "diagnose/diagnose.h"
#include "runfile/repair/copy_run.h"
#include "train/train.h"

typedef struct copy_values {
    option_text output, phase, site, stat;
    int64_t every, vectors_every;
    bool anonymous, force;
} copy_values;

#define AT(field) offsetof(copy_values, field)
static const option copy_rows[] = {
    OUTPUT_OPTION(AT(output), "write this run file"),
    INT_OPTION(NULL, "every", AT(every), "1", 1, 1e9, "steps",
               "keep the first step at or after each multiple of N, and the last step"),
    INT_OPTION(NULL, "vectors-every", AT(vectors_every), "-1", -1, 1e9, "steps",
               "the same for vectors and spectra, with their steps; 0: none; -1: as --every"),
    TEXT_OPTION(NULL, "phase", AT(phase), "all", WINDOW_PHASE_HELP, .value = "PHASE"),
    TEXT_OPTION(NULL, "site", AT(site), "*",
                "copy these sites: globs, first, middle, last, last-bn, separated by commas",
                .value = "SITE,..."),
    TEXT_OPTION(NULL, "stat", AT(stat), "*",
                "copy these statistics: globs, separated by commas, as in statrec info",
                .value = "NAME,..."),
    FLAG_OPTION(NULL, "anonymous", AT(anonymous), "no",
                "leave out host, user, paths, revision, times and command line"),
    FLAG_OPTION(NULL, "force", AT(force), "no", "replace the new file if it exists"),
};

static const command_frame frame = {
    "usage: statrec copy RUN.h5... -o OUT.h5 [OPTIONS]\n"
    "\n"
    "Copies a run, or a part of it, into a new run file with checksums. Copied numbers do not\n"
    "change. Evaluations and singular values of embeddings within --phase stay, and the final\n"
    "pass if the last step does. `statrec info OUT.h5` prints what the copy is made of.\n"
    "Several files are parts of one run: same model, data, seed and sites, and steps that do\n"
    "not overlap. A file that is still being written gives the rows that are in it.\n"
    "\n",
    {copy_rows, sizeof copy_rows / sizeof copy_rows[0]},
    NULL,
    "0 a new file was written, 1 failed, 2 usage, 128+n after signal n.",
    2};

/* -- statistics ------------------------------------------------------------------------------ */

/* A form (g_mu_share) needs the statistics that it is computed from. */
static bool is_term(const char *form, const char *name) {
    const stat_form *f = form_find(form);
    for (int i = 0; f && i < form_terms(f); i++)
        if (strcmp(f->term[i], name) == 0) return true;
    return false;
}

/* The next word of a list separated by commas; false at its end. */
static bool next_word(const char **at, option_text word) {
    while (**at == ',') ++*at;
    const size_t length = strcspn(*at, ",");
    snprintf(word, sizeof(option_text), "%.*s", (int)length, *at);
    *at += length;
    return length > 0;
}

/* The numbers of rows belong to every statistic. */
static bool keeps(const void *context, const char *name) {
    const char *at = context;
    option_text word;
    if (strcmp(name, "rows") == 0) return true;
    while (next_word(&at, word))
        if (globs_match(word, name) || is_term(word, name)) return true;
    return false;
}

static bool has_statistic(const sr_runfile *run, const char *word) {
    static const char *const groups[] = {"scalars", "vectors"};
    const sr_run_declared *d;
    const char *name;
    for (int g = 0; g < 2; g++)
        for (int i = 0; (name = sr_run_name(run, groups[g], i)); i++)
            if (globs_match(word, name)) return true;
    for (int64_t i = 0; (d = sr_run_get_declared(run, i)); i++)
        if (globs_match(word, d->name)) return true;
#define MATCHES(name, ...) globs_match(word, #name) ||
    return SR_SPECTRA(MATCHES) form_find(word) != NULL;
#undef MATCHES
}

static sr_status choose_statistics(const copy_values *v, const sr_runfile *run, run_copy_options *o,
                                   sr_failure *why) {
    const char *at = v->stat;
    option_text word;
    if (strcmp(v->stat, "*") == 0) return SR_OK;
    while (next_word(&at, word))
        if (!has_statistic(run, word)) {
            sr_fail(why, SR_USAGE, "--stat: '%.200s' matches no statistic of %s", word,
                    sr_run_get_info(run)->path);
            sr_hint(why, "`statrec info` lists them");
            return SR_USAGE;
        }
    o->choice.keeps = keeps, o->choice.context = v->stat;
    return SR_OK;
}

/* -- sites and steps ------------------------------------------------------------------------- */

static sr_status choose_sites(const copy_values *v, const sr_runfile *run, int64_t **site,
                              run_copy_options *o, sr_failure *why) {
    const int64_t sites = sr_run_get_info(run)->sites;
    char missed[GLOBS_WORD];
    if (strcmp(v->site, "*") == 0) return SR_OK; /* replicas, too */
    bool *chosen = calloc((size_t)sites + 1, sizeof *chosen);
    *site = calloc((size_t)sites + 1, sizeof **site);
    sr_status status = chosen && *site ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK && !choice_match(run, NULL, v->site, chosen, missed)) {
        status = sr_fail(why, SR_USAGE, "--site: no site of %s matches '%.200s'",
                         sr_run_get_info(run)->path, missed);
        sr_hint(why, "`statrec info --format tsv` lists them");
    }
    for (int64_t i = 0; i < sites && status == SR_OK; i++)
        if (chosen[i]) (*site)[o->choice.sites++] = i;
    o->choice.site = *site;
    free(chosen);
    return status;
}

/* The words of --phase mean steps of one file. Steps before the first counted one (0 in some
 * programs) belong to a phase from the start of the run. */
static sr_status choose_steps(const copy_values *v, const sr_runfile *run, int files,
                              run_copy_options *o, sr_failure *why) {
    step_window w;
    const bool range = strchr(v->phase, ':') != NULL;
    o->first = INT64_MIN, o->last = INT64_MAX;
    if (strcmp(v->phase, "all") == 0) return SR_OK;
    if (files > 1 && !range)
        return sr_fail(why, SR_USAGE, "--phase %s: of several files only FROM:TO", v->phase);
    if (range) {
        char *end;
        o->first = strtoll(v->phase, &end, 10);
        const char *to = *end == ':' ? end + 1 : "";
        o->last = strtoll(to, &end, 10);
        if (*to && !*end && o->first >= 0 && o->first <= o->last) return SR_OK;
        return sr_fail(why, SR_USAGE, "--phase: '%s' is not FROM:TO", v->phase);
    }
    if (window_make(&w, run, sr_run_get_info(run)->path, "0", v->phase, why) != SR_OK)
        return why->status;
    o->first = w.first <= w.begin ? INT64_MIN : w.first, o->last = w.last;
    return SR_OK;
}

/* -- parts of one training ------------------------------------------------------------------- */

/* A resumed training may change some options; options of paths are compared nowhere. */
static bool may_differ(const char *key) {
    return train_resume_may_change(key) || !strcmp(key, "output") || !strcmp(key, "checkpoint") ||
           !strcmp(key, "config") || !strcmp(key, "force") || !strcmp(key, "weights") ||
           !strcmp(key, "word-vectors");
}

static sr_status compare_options(const sr_runfile *a, const sr_runfile *b, sr_failure *why) {
    const char *at = sr_run_get_info(a)->config, *other = sr_run_get_info(b)->config;
    option_line l, m;
    while (options_next_line(&at, &l)) {
        char key[SR_NAME_SIZE];
        snprintf(key, sizeof key, "%.*s", l.key_length, l.key);
        if (may_differ(key) || !options_find_line(other, l.key, l.key_length, &m)) continue;
        if (l.value_length == m.value_length && !strncmp(l.value, m.value, (size_t)l.value_length))
            continue;
        return sr_fail(why, SR_USAGE,
                       "%s: not a part of the run in %s: its %s is '%.*s', not '%.*s'",
                       sr_run_get_info(b)->path, sr_run_get_info(a)->path, key, m.value_length,
                       m.value, l.value_length, l.value);
    }
    return SR_OK;
}

static sr_status check_options(const sr_runfile *first, char *const *paths, int count,
                               sr_failure *why) {
    sr_status status = SR_OK;
    if (strcmp(sr_run_get_info(first)->program, "statrec train") != 0) return SR_OK;
    for (int i = 1; i < count && status == SR_OK; i++) {
        sr_runfile *f = sr_run_open(paths[i], why);
        status = f ? compare_options(first, f, why) : why->status;
        sr_run_close(f);
    }
    return status;
}

/* -- anonymous copies ------------------------------------------------------------------------ */

/* Whether the value of an option of `statrec train` names no file. */
static bool shares(const char *key) {
    const option_table all = train_options();
    static const char of_files[] = "FILE,DIRECTORY,PREFIX,RUN.h5";
    for (int i = 0; i < all.count; i++) {
        const option *row = &all.row[i];
        if (strcmp(row->key, key) == 0)
            return row->type != OPTION_TEXT || !row->value || !globs_match(of_files, row->value);
    }
    return false;
}

/* -- the command ----------------------------------------------------------------------------- */

static void add_word(char *text, size_t size, const char *key, const char *value) {
    char *quoted = value ? tool_argument(value) : NULL;
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s--%s%s%s", used ? " " : "", key, value ? " " : "",
             quoted ? quoted : "");
    free(quoted);
}

/* The options that select the copied data, as a user would type them. */
static void describe_options(const copy_values *v, char *text, size_t size) {
    char number[24];
    text[0] = '\0';
    snprintf(number, sizeof number, "%lld", (long long)v->every);
    if (v->every > 1) add_word(text, size, "every", number);
    snprintf(number, sizeof number, "%lld", (long long)v->vectors_every);
    if (v->vectors_every >= 0) add_word(text, size, "vectors-every", number);
    if (strcmp(v->phase, "all") != 0) add_word(text, size, "phase", v->phase);
    if (strcmp(v->site, "*") != 0) add_word(text, size, "site", v->site);
    if (strcmp(v->stat, "*") != 0) add_word(text, size, "stat", v->stat);
    if (v->anonymous) add_word(text, size, "anonymous", NULL);
    if (!*text) snprintf(text, size, "none");
}

static void print_count(const char *what, int64_t copied, int64_t of) {
    if (of > 0) printf("%-12s %lld of %lld\n", what, (long long)copied, (long long)of);
}

static void print_result(const tool *t, const copy_values *v, const run_copied *c) {
    diagnose_warn_damage(t, 1, t->argv + 2);
    if (c->unfinished)
        tool_warn(t, "%s: its source is unfinished: has its rows until now, status interrupted",
                  v->output);
    print_count("steps", c->steps, c->of_steps);
    print_count("vectors", c->vectors, c->of_vectors);
    print_count("spectra", c->spectra, c->of_spectra);
    print_count("evaluations", c->evals, c->of_evals);
    print_count("bytes", c->bytes, c->of_bytes);
    if (v->anonymous)
        puts(
            "left in it   names of model, data, sites, statistics and metrics, and the options of\n"
            "             statrec train; `statrec info` and `statrec info --options` print them");
    tsv_escape(stdout, v->output);
    puts(": written");
}

static sr_status copy(const tool *t, const copy_values *v, int files, run_copied *result,
                      sr_failure *why) {
    char text[3 * OPTION_TEXT_SIZE + 128];
    int64_t *site = NULL;
    run_copy_options o = {.force = v->force,
                          .every = v->every,
                          .vectors_every = v->vectors_every < 0 ? v->every : v->vectors_every,
                          .choice.stopped = tool_signal,
                          .text = text,
                          .anonymous = v->anonymous,
                          .shares = shares};
    describe_options(v, text, sizeof text);
    sr_runfile *run = sr_run_open(t->argv[2], why);
    sr_status status = run ? choose_statistics(v, run, &o, why) : why->status;
    if (status == SR_OK) status = choose_sites(v, run, &site, &o, why);
    if (status == SR_OK) status = choose_steps(v, run, files, &o, why);
    if (status == SR_OK) status = check_options(run, t->argv + 2, files, why);
    sr_run_close(run);
    if (status == SR_OK) status = run_copy(t->argv + 2, files, v->output, &o, result, why);
    free(site);
    return status;
}

int cmd_copy(const tool *t) {
    copy_values values;
    run_copied result = {0};
    sr_failure why = {0};
    int files = 0, code;
    if (command_ends(t, &frame, &values, &files, &code)) return code;
    if (files == 0) return tool_error(t, TOOL_USAGE, "no run file given");
    if (!values.output[0]) return tool_error(t, TOOL_USAGE, "-o OUT.h5 is missing");
    tool_catch_signals();
    if (copy(t, &values, files, &result, &why) != SR_OK) {
        const int failed = tool_report(t, &why);
        return tool_signal() ? 128 + tool_signal() : failed;
    }
    print_result(t, &values, &result);
    return TOOL_DONE;
}
