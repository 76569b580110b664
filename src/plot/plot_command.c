/* The tables of a figure: the analyses that its template names, with run files in the place of
 * {run}, run one after the other, and their tables turned into data files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "statnet/plot.h"

typedef struct command {
    char **argv; /* ends with NULL; room for every run in the place of every word */
    int argc;
    char **run; /* [runs] those of its words that are owned */
    int runs;
} command;

static sr_status command_create(command *c, int words, int runs, sr_failure *why) {
    const size_t most = (size_t)words * (size_t)(runs > 1 ? runs : 1) + 1;
    *c = (command){.argv = calloc(most, sizeof *c->argv), .run = calloc(most, sizeof *c->run)};
    return c->argv && c->run ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for %d runs", runs);
}

static void command_free(command *c) {
    for (int i = 0; i < c->runs; i++) free(c->run[i]);
    free(c->argv), free(c->run);
}

/* A run stands beside options, so a name that begins with a dash gets a path in front. */
static sr_status command_add_run(command *c, const char *path, sr_failure *why) {
    const size_t capacity = strlen(path) + 3;
    char *text = malloc(capacity);
    if (!text) return sr_fail(why, SR_MEMORY, "out of memory");
    snprintf(text, capacity, "%s%s", path[0] == '-' ? "./" : "", path);
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

static bool per_run(const plot_table *t) {
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

static sr_status run_analysis(plot_sources *from, const plot_table *t, int run, sr_failure *why) {
    char output[2 * PLOT_PATH], errors[2 * PLOT_PATH];
    command c;
    sr_status status = command_create(&c, t->words, from->runs, why);
    snprintf(output, sizeof output, "%s/%s.%d.tsv", from->directory, t->name, run);
    snprintf(errors, sizeof errors, "%s/%s.%d.stderr", from->directory, t->name, run);
    snprintf(from->buckets, sizeof from->buckets, "%d", t->buckets);
    for (int i = 0; i < t->words && status == SR_OK; i++)
        status = command_add(&c, from, t, t->word[i], run, why);
    const plot_process p = {c.argv, NULL, output, errors, 0};
    if (status == SR_OK) status = plot_process_run(&p, why);
    command_free(&c);
    if (status != SR_OK) unlink(output);
    return status;
}

sr_status plot_table_make(plot_sources *from, const plot_table *t, plot_data *data,
                          sr_failure *why) {
    const bool each = per_run(t);
    const int first = each ? 1 : 0, last = each ? from->runs : 0;
    for (int run = first; run <= last; run++) {
        sr_failure one = {0};
        const sr_status status = run_analysis(from, t, run, &one);
        if (status == SR_OK || (t->optional && status != SR_STATE)) continue;
        from->failed_run = run_of(t, run);
        *why = one;
        return status;
    }
    return plot_data_make(data, t, from->directory, first, last, why);
}
