/* The tables of a figure. Runs the analyses that its template names side by side, with run files in
 * place of {run}, and turns their tables into data files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plot/plot_command.h"
#include "plot/plot_curves.h"
#include "plot/plot_process.h"
#include "plot/plot_table_cache.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

bool plot_table_of_each(const plot_table *t) {
    for (int i = 0; i < t->words; i++)
        if (strcmp(t->word[i], "{run}") == 0) return true;
    return false;
}

/* The only run in the command; 0 if it covers all. */
static int run_of(const plot_table *t, int run) {
    int number = 0;
    for (int i = 0; i < t->words && !number; i++)
        if (sscanf(t->word[i], "{run%d}", &number) != 1) number = 0;
    return number ? number : run;
}

/* A table's analysis of one run, or of all. */
typedef struct analysis_job {
    const plot_table *of;
    int run;     /* from 1; 0: all */
    char **argv; /* [argc] and NULL; owned, its words are borrowed */
    int argc;
    char output[2 * PLOT_PATH], errors[2 * PLOT_PATH];
    char buckets[16]; /* {buckets} */
} analysis_job;

static sr_status job_add(analysis_job *j, const plot_sources *from, char *word, sr_failure *why) {
    int number = j->run;
    if (strcmp(word, "{runs}") == 0) {
        for (int r = 0; r < from->runs; r++) j->argv[j->argc++] = from->run[r].path;
        return SR_OK;
    }
    if (strcmp(word, "{run}") == 0 || sscanf(word, "{run%d}", &number) == 1) {
        if (number < 1 || number > from->runs)
            return sr_fail(why, SR_FORMAT, "table %s: there is no %s", j->of->name, word);
        word = from->run[number - 1].path;
    } else if (strcmp(word, "{buckets}") == 0) {
        word = j->buckets;
    }
    j->argv[j->argc++] = word;
    return SR_OK;
}

static sr_status job_make(analysis_job *j, const plot_sources *from, sr_failure *why) {
    const plot_table *t = j->of;
    size_t most = (size_t)t->words + 1;
    sr_status status = SR_OK;
    for (int i = 0; i < t->words; i++)
        if (strcmp(t->word[i], "{runs}") == 0) most += (size_t)from->runs - 1;
    j->argv = malloc(most * sizeof *j->argv);
    if (!j->argv) return sr_fail(why, SR_MEMORY, "out of memory for %d runs", from->runs);
    snprintf(j->output, sizeof j->output, "%s/%s.%d.tsv", from->directory, t->name, j->run);
    snprintf(j->errors, sizeof j->errors, "%s/%s.%d.stderr", from->directory, t->name, j->run);
    snprintf(j->buckets, sizeof j->buckets, "%d", t->buckets);
    for (int i = 0; i < t->words && status == SR_OK; i++)
        status = job_add(j, from, t->word[i], why);
    j->argv[j->argc] = NULL;
    return status;
}

/* The analyses of some tables, and how each went: [count], table after table. */
typedef struct job_list {
    analysis_job *job;
    plot_process *process;
    sr_failure *each;
    int count;
} job_list;

static int jobs_of(const plot_sources *from, const plot_table *t) {
    return plot_table_of_each(t) ? from->runs : 1;
}

static sr_status list_create(job_list *l, const plot_sources *from, sr_failure *why) {
    const plot_template *t = from->template;
    size_t most = 1;
    for (int i = 0; i < t->tables; i++) most += (size_t)jobs_of(from, &t->table[i]);
    *l = (job_list){.job = calloc(most, sizeof *l->job),
                    .process = calloc(most, sizeof *l->process),
                    .each = calloc(most, sizeof *l->each)};
    return l->job && l->process && l->each ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
}

static void list_free(job_list *l) {
    for (int i = 0; l->job && i < l->count; i++) free(l->job[i].argv);
    free(l->job), free(l->process), free(l->each);
}

static sr_status list_add(job_list *l, const plot_sources *from, const plot_table *t, int run,
                          sr_failure *why) {
    analysis_job *j = &l->job[l->count];
    *j = (analysis_job){.of = t, .run = run};
    sr_status status = job_make(j, from, why);
    l->process[l->count++] =
        (plot_process){.argv = j->argv, .output = j->output, .errors = j->errors};
    return status;
}

/* A report tries figures with runs that may be rejected. Analyses of all runs take the longest, so
 * they wait until no earlier table rejects a run. */
static bool table_waits(const plot_sources *from, const plot_table *table) {
    if (!from->refusal || plot_table_of_each(table)) return false;
    for (const plot_table *before = from->template->table; before < table; before++)
        if (plot_table_of_each(before) && !before->optional) return true;
    return false;
}

/* Those that wait, or the others. */
static sr_status list_fill(job_list *l, const plot_sources *from, bool waiting, sr_failure *why) {
    sr_status status = list_create(l, from, why);
    for (int i = 0; i < from->template->tables && status == SR_OK; i++) {
        const plot_table *t = &from->template->table[i];
        if (table_waits(from, t) != waiting) continue;
        const int first = plot_table_of_each(t) ? 1 : 0;
        for (int k = 0; k < jobs_of(from, t) && status == SR_OK; k++)
            status = list_add(l, from, t, first + k, why);
    }
    return status;
}

/* Removes the output of analyses that failed. If the table is required, its first failure is the
 * figure's, and it rejects the run. So do later ones of {run}; one of {run2} may fit as {run1}. */
static void list_judge(const job_list *l, const plot_table *t, const plot_sources *from,
                       sr_failure *first) {
    const bool each = plot_table_of_each(t);
    for (int i = 0; i < l->count; i++) {
        const analysis_job *j = &l->job[i];
        const sr_failure *one = &l->each[i];
        if (j->of != t || one->status == SR_OK) continue;
        unlink(j->output);
        if (t->optional || (first->status != SR_OK && !each)) continue;
        const int run = run_of(t, j->run);
        if (first->status == SR_OK) *first = *one;
        if (from->refusal && run && from->refusal[run - 1].status == SR_OK)
            from->refusal[run - 1] = *one;
    }
}

static sr_status list_run(job_list *l, const plot_sources *from, bool waiting, sr_failure *why) {
    sr_status status = list_fill(l, from, waiting, why);
    if (status != SR_OK) return status;
    return plot_table_cache_run(from->kept, l->process, l->count, l->each, why);
}

/* Whether a table that is drawn over epochs has a row without one. */
static sr_status lacks_epochs(const plot_sources *from, bool *lacks, sr_failure *why) {
    const plot_template *t = from->template;
    sr_status status = SR_OK;
    *lacks = false;
    for (int i = 0; i < t->tables && status == SR_OK && !*lacks; i++) {
        const plot_table *table = &t->table[i];
        const int each = plot_table_of_each(table) ? 1 : 0;
        status = plot_data_lacks_epochs(table, from->directory, each,
                                        each + jobs_of(from, table) - 1, lacks, why);
    }
    return status;
}

/* The first failure in the order of the tables; the others are checked nevertheless, for the runs
 * that they reject. */
sr_status plot_tables_make(const plot_sources *from, plot_data *data, sr_failure *why) {
    const plot_template *t = from->template;
    job_list l[2] = {{0}, {0}};
    sr_failure first = {0};
    sr_status status = list_run(&l[0], from, false, why);
    bool over_steps = false;
    if (status == SR_OK) status = lacks_epochs(from, &over_steps, why);
    for (int i = 0; i < t->tables && status == SR_OK; i++) {
        const plot_table *table = &t->table[i];
        const bool waits = table_waits(from, table);
        const int each = plot_table_of_each(table) ? 1 : 0;
        if (waits && first.status == SR_OK && !l[1].job) status = list_run(&l[1], from, true, why);
        list_judge(&l[waits], table, from, &first);
        if (first.status == SR_OK)
            plot_data_make(&data[i], table, from->directory, each ? from->run : NULL, each,
                           each + jobs_of(from, table) - 1, over_steps, &first);
    }
    if (status == SR_OK && first.status != SR_OK) *why = first, status = first.status;
    list_free(&l[0]), list_free(&l[1]);
    return status;
}
