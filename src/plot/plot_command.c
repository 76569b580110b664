/* The tables of a figure: the analyses that its template names, with run files in the place of
 * {run}, run side by side, and their tables turned into data files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statnet/plot.h"

typedef struct command {
    char **argv; /* ends with NULL */
    int argc;
    char **run; /* [runs] those of its words that are owned */
    int runs;
} command;

static sr_status command_create(command *c, const plot_table *t, int runs, sr_failure *why) {
    size_t most = (size_t)t->words + 1;
    for (int i = 0; i < t->words; i++)
        if (strcmp(t->word[i], "{runs}") == 0) most += (size_t)runs;
    *c = (command){.argv = calloc(most, sizeof *c->argv), .run = calloc(most, sizeof *c->run)};
    return c->argv && c->run ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for %d runs", runs);
}

static void command_free(command *c) {
    for (int i = 0; i < c->runs; i++) free(c->run[i]);
    free(c->argv), free(c->run);
}

char *plot_run_word(const char *path) {
    const size_t capacity = strlen(path) + 3;
    char *text = malloc(capacity);
    if (text) snprintf(text, capacity, "%s%s", path[0] == '-' ? "./" : "", path);
    return text;
}

static sr_status command_add_run(command *c, const char *path, sr_failure *why) {
    char *text = plot_run_word(path);
    if (!text) return sr_fail(why, SR_MEMORY, "out of memory");
    c->run[c->runs++] = c->argv[c->argc++] = text;
    return SR_OK;
}

static sr_status command_add(command *c, plot_sources *from, const plot_table *t, char *word,
                             int run, sr_failure *why) {
    int number = 0;
    sr_status status = SR_OK;
    if (strcmp(word, "{runs}") == 0) {
        for (int r = 0; r < from->runs && status == SR_OK; r++)
            status = command_add_run(c, from->path[r], why);
        return status;
    }
    if (strcmp(word, "{run}") == 0) return command_add_run(c, from->path[run - 1], why);
    if (sscanf(word, "{run%d}", &number) == 1) {
        if (number < 1 || number > from->runs)
            return sr_fail(why, SR_FORMAT, "table %s: there is no %s", t->name, word);
        return command_add_run(c, from->path[number - 1], why);
    }
    if (strcmp(word, "{buckets}") == 0) word = from->buckets;
    c->argv[c->argc++] = word;
    return SR_OK;
}

bool plot_table_of_each(const plot_table *t) {
    for (int i = 0; i < t->words; i++)
        if (strcmp(t->word[i], "{run}") == 0) return true;
    return false;
}

/* The only run in the command; 0 when it is of all. */
static int run_of(const plot_table *t, int run) {
    int number = 0;
    for (int i = 0; i < t->words && !number; i++)
        if (sscanf(t->word[i], "{run%d}", &number) != 1) number = 0;
    return number ? number : run;
}

/* A table's analysis of one run, or of all. */
typedef struct analysis_job {
    command c;
    char output[2 * PLOT_PATH], errors[2 * PLOT_PATH];
} analysis_job;

static sr_status job_make(analysis_job *j, plot_sources *from, const plot_table *t, int run,
                          sr_failure *why) {
    sr_status status = command_create(&j->c, t, from->runs, why);
    snprintf(j->output, sizeof j->output, "%s/%s.%d.tsv", from->directory, t->name, run);
    snprintf(j->errors, sizeof j->errors, "%s/%s.%d.stderr", from->directory, t->name, run);
    for (int i = 0; i < t->words && status == SR_OK; i++)
        status = command_add(&j->c, from, t, t->word[i], run, why);
    return status;
}

/* The analyses of runs first .. first + count - 1, with failures in each; no table is left of one that failed. */
static sr_status run_jobs(plot_sources *from, const plot_table *t, int first, int count,
                          sr_failure *each, sr_failure *why) {
    analysis_job *job = calloc((size_t)count, sizeof *job);
    plot_process *p = calloc((size_t)count, sizeof *p);
    sr_status status = job && p ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    snprintf(from->buckets, sizeof from->buckets, "%d", t->buckets);
    for (int i = 0; i < count && status == SR_OK; i++) {
        status = job_make(&job[i], from, t, first + i, why);
        p[i] =
            (plot_process){.argv = job[i].c.argv, .output = job[i].output, .errors = job[i].errors};
    }
    if (status == SR_OK) status = plot_process_run_all(p, count, each, why);
    for (int i = 0; job && i < count; i++) {
        if (each[i].status != SR_OK) unlink(job[i].output);
        command_free(&job[i].c);
    }
    free(job), free(p);
    return status;
}

sr_status plot_table_make(plot_sources *from, const plot_table *t, plot_data *data,
                          sr_failure *why) {
    const bool of_each = plot_table_of_each(t);
    const int first = of_each ? 1 : 0, count = of_each ? from->runs : 1;
    sr_failure *each = calloc((size_t)count, sizeof *each);
    sr_status status = each ? run_jobs(from, t, first, count, each, why)
                            : sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < count && status == SR_OK && !t->optional; i++) {
        if (each[i].status == SR_OK) continue;
        from->failed_run = run_of(t, first + i);
        *why = each[i];
        status = why->status;
    }
    free(each);
    return status == SR_OK ? plot_data_make(data, t, from->directory, first, first + count - 1, why)
                           : status;
}
