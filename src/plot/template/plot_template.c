/* Finds figure templates and reads their `#:` lines:
 *
 *   #: title TEXT
 *   #: runs LEAST[-[MOST]] WORDS          how many runs; WORDS for the usage line
 *   #: samples NAMES                      of sample_runs/, for a figure without run files
 *   #: size WIDTH HEIGHT                  inches
 *   #: site SITES  #: stat STATISTICS     the figure takes --site or --stat; this is the default
 *   #: metric NAME                        the same with --metric
 *   #: step STEPS                         the same with --step, recorded steps of /vectors
 *   #: question WORD                      the part of a report that it is in: healthy, running,
 *                                         gradient, features, compare, papers
 *   #: tasks one                          its axes are for runs of one model and data set
 *   #: controls WORDS                     what --xrange and others may change (plot_controls.c)
 *   #: choice NAME WORD|WORD... HELP      the figure takes --NAME (plot_placeholders.c)
 *   #: word NAME CHOICE TEXT|TEXT...      {NAME} follows the choice
 *   #: published TABLES METRICS           the figure takes --published: globs, names
 *   #: table NAME COMMAND...              {run}: once per run; {run1}: that run; {runs}: all at
 * once
 *   #: table? NAME COMMAND...             may fail: then the figure goes without
 *   #: curves NAME by COLUMNS x COLUMN y COLUMNS [buckets N]
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_kind.h"
#include "base/program/install_files.h"
#include "base/program/tool.h"
#include "plot/template/plot_controls.h"
#include "plot/template/plot_files.h"
#include "plot/template/plot_sizes.h"
#include "plot/template/plot_template.h"

/* -- sample runs ----------------------------------------------------------------------------- */

/* A directory that the user names is the only one: data must not come from elsewhere unseen. */
static sr_status find_sample(const char *name, char path[2 * PLOT_PATH], sr_failure *why) {
    const char *set = getenv("STATREC_SAMPLES");
    char directory[PLOT_PATH];
    for (int i = 0; install_files_directory("STATREC_SAMPLES", "sample_runs", i, directory); i++) {
        snprintf(path, 2 * PLOT_PATH, "%s/%s.h5", directory, name);
        if (access(path, R_OK) == 0) return SR_OK;
        if (set && *set) break;
    }
    sr_fail(why, SR_USAGE, "no run file given, and the sample run %s.h5 is not found", name);
    sr_hint(why, "give run files, or set STATREC_SAMPLES to the directory sample_runs/ of statrec");
    return SR_USAGE;
}

sr_status plot_samples_find(const char *names, plot_samples *s, sr_failure *why) {
    plot_name name;
    s->runs = 0;
    for (const char *at = names; *(at += strspn(at, " \t")) && s->runs < PLOT_SAMPLES;) {
        const size_t length = strcspn(at, " \t");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        sr_status status = find_sample(name, s->text[s->runs], why);
        if (status != SR_OK) return status;
        s->path[s->runs] = s->text[s->runs];
        s->runs++;
        at += length;
    }
    return SR_OK;
}

static bool is_template(const char *file) {
    const size_t length = strlen(file);
    return length > 3 && strcmp(file + length - 3, ".gp") == 0 && strcmp(file, "style.gp") != 0;
}

typedef struct figure_names {
    char text[64][PLOT_PATH];
    const char *name[64];
    int count;
} figure_names;

static sr_status note_name(plot_template *t, void *self, sr_failure *why) {
    figure_names *n = self;
    (void)why;
    if (n->count == 64) return SR_OK;
    snprintf(n->text[n->count], sizeof n->text[0], "%s", t->name);
    n->name[n->count] = n->text[n->count];
    n->count++;
    return SR_OK;
}

static void hint_at_figures(const char *figure, sr_failure *why) {
    figure_names n = {.count = 0};
    sr_failure unread = {0};
    plot_template_each(note_name, &n, &unread);
    const char *nearest = tool_nearest(figure, n.name, n.count);
    if (nearest)
        sr_hint(why, "did you mean '%s'? statplot list names the figures", nearest);
    else
        sr_hint(why, "statplot list names the figures; a path with a / is a template of your own");
}

static sr_status find_path(const char *figure, char path[PLOT_PATH], sr_failure *why) {
    if (strchr(figure, '/') || is_template(figure)) {
        if (snprintf(path, PLOT_PATH, "%s", figure) < PLOT_PATH && access(path, R_OK) == 0)
            return SR_OK;
        return sr_fail(why, SR_IO, "%s: %s", figure, strerror(errno));
    }
    char directory[PLOT_PATH];
    for (int i = 0; plot_directory(i, directory); i++) {
        const int length = snprintf(path, PLOT_PATH, "%s/%s.gp", directory, figure);
        if (length < PLOT_PATH && strcmp(figure, "style") != 0 && access(path, R_OK) == 0)
            return SR_OK;
    }
    sr_fail(why, SR_USAGE, "no figure named '%s'", figure);
    hint_at_figures(figure, why);
    return SR_USAGE;
}

/* -- the lines ------------------------------------------------------------------------------- */

typedef struct template_line {
    plot_template *t;
    int line;
} template_line;

static sr_status wrong(const template_line *p, sr_failure *why, const char *what,
                       const char *word) {
    return sr_fail(why, SR_FORMAT, "%s:%d: %s '%s'", p->t->path, p->line, what, word ? word : "");
}

static char *next_word(char **rest) {
    return strtok_r(NULL, " \t", rest);
}

static bool is_name(const char *text) {
    const size_t length =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return length > 0 && length < PLOT_NAME && !text[length] && !strchr("0123456789", text[0]);
}

/* Comma-separated column names; -1 when one of them is not a name or there are too many. */
static int read_names(char *list, plot_name *name, int most) {
    int count = 0;
    char *rest;
    for (char *w = strtok_r(list, ",", &rest); w; w = strtok_r(NULL, ",", &rest)) {
        const bool open = strchr(w, '{') && strlen(w) < PLOT_NAME;
        if (count == most || (!is_name(w) && !open)) return -1;
        snprintf(name[count++], PLOT_NAME, "%s", w);
    }
    return count ? count : -1;
}

static plot_table *find_table(plot_template *t, const char *name) {
    for (int i = 0; i < t->tables; i++)
        if (strcmp(t->table[i].name, name) == 0) return &t->table[i];
    return NULL;
}

static sr_status read_runs(template_line *p, char *rest, sr_failure *why) {
    char *end, *text = rest;
    p->t->least_runs = p->t->most_runs = (int)strtol(text, &end, 10);
    if (end == text || p->t->least_runs < 1) return wrong(p, why, "not a number of runs:", text);
    if (*end == '-') p->t->most_runs = (int)strtol(end + 1, &end, 10);
    snprintf(p->t->takes, sizeof p->t->takes, "%s", end + strspn(end, " "));
    return SR_OK;
}

const plot_question plot_questions[PLOT_QUESTIONS] = {
    {"healthy", "Is it healthy?"},
    {"running", "Where do batch and running statistics differ?"},
    {"gradient", "What goes through the statistics backward?"},
    {"features", "What do the features look like?"},
    {"compare", "How do the runs compare?"},
    {"papers", "What do the papers show?"},
    {"", "Further figures"},
};

static sr_status read_question(template_line *p, const char *word, sr_failure *why) {
    for (int i = 0; i < PLOT_QUESTIONS - 1; i++)
        if (strcmp(plot_questions[i].word, word) == 0) return p->t->question = i, SR_OK;
    return wrong(p, why, "no such question:", word);
}

static sr_status read_size(template_line *p, char *rest, sr_failure *why) {
    char *middle, *end;
    p->t->width = strtod(rest, &middle);
    p->t->height = strtod(middle, &end);
    if (p->t->width > 0.5 && p->t->height > 0.5 && !end[strspn(end, " ")]) return SR_OK;
    return wrong(p, why, "not a size in inches:", rest);
}

static sr_status read_table(template_line *p, char *rest, bool optional, sr_failure *why) {
    char *word = strtok_r(rest, " \t", &rest);
    if (!word || !is_name(word) || find_table(p->t, word))
        return wrong(p, why, "no name, or one used before:", word);
    if (p->t->tables == PLOT_TABLES) return wrong(p, why, "too many tables at", word);
    plot_table *table = &p->t->table[p->t->tables++];
    *table = (plot_table){.optional = optional, .buckets = PLOT_BUCKETS};
    snprintf(table->name, sizeof table->name, "%s", word);
    while ((word = next_word(&rest))) {
        if (table->words == PLOT_WORDS - 1) return wrong(p, why, "too many words at", word);
        table->word[table->words++] = word;
    }
    return table->words ? SR_OK : wrong(p, why, "no command for table", table->name);
}

static sr_status read_curves(template_line *p, char *rest, sr_failure *why) {
    char *word = strtok_r(rest, " \t", &rest), *value = NULL;
    plot_table *table = word ? find_table(p->t, word) : NULL;
    if (!table) return wrong(p, why, "no table named", word);
    table->curves = true;
    while ((word = next_word(&rest)) && (value = next_word(&rest))) {
        bool good = true;
        if (strcmp(word, "by") == 0)
            good = (table->keys = read_names(value, table->key, PLOT_KEYS)) > 0;
        else if (strcmp(word, "y") == 0)
            good = (table->values = read_names(value, table->y, PLOT_VALUES)) > 0;
        else if (strcmp(word, "x") == 0)
            good = read_names(value, &table->x, 1) == 1;
        else if (strcmp(word, "buckets") == 0)
            good = (table->buckets = atoi(value)) > 0;
        else
            return wrong(p, why, "not by, x, y or buckets:", word);
        if (!good) return wrong(p, why, "cannot read", value);
    }
    if (table->values > 0 && table->x[0] && !word) return SR_OK;
    return wrong(p, why, "curves need `x COLUMN y COLUMNS`:", table->name);
}

static sr_status read_published(template_line *p, char *rest, sr_failure *why) {
    char *tables = strtok_r(rest, " \t", &rest), *metrics = tables ? next_word(&rest) : NULL;
    if (!metrics) return wrong(p, why, "published needs TABLES and METRICS, not", tables);
    snprintf(p->t->published, sizeof p->t->published, "%s", tables);
    p->t->prints = read_names(metrics, p->t->print, PLOT_VALUES);
    return p->t->prints > 0 ? SR_OK : wrong(p, why, "cannot read", metrics);
}

/* NAME WORD|WORD... HELP */
static sr_status read_choice(template_line *p, char *rest, sr_failure *why) {
    char *name = strtok_r(rest, " \t", &rest), *words = name ? next_word(&rest) : NULL;
    if (!words || !is_name(name)) return wrong(p, why, "choice needs NAME WORD|WORD, not", name);
    const char *fault = plot_placeholders_choice(p->t, name, words, rest + strspn(rest, " \t"));
    return fault ? wrong(p, why, fault, name) : SR_OK;
}

/* NAME CHOICE TEXT|TEXT... */
static sr_status read_word(template_line *p, char *rest, sr_failure *why) {
    char *name = strtok_r(rest, " \t", &rest), *choice = name ? next_word(&rest) : NULL;
    char *texts = choice ? next_word(&rest) : NULL;
    if (!texts || !is_name(name))
        return wrong(p, why, "word needs NAME CHOICE TEXT|TEXT, not", name);
    const char *fault = plot_placeholders_follow(p->t, name, choice, texts);
    return fault ? wrong(p, why, fault, name) : SR_OK;
}

static sr_status read_line(template_line *p, char *line, sr_failure *why) {
    char *rest = line + strcspn(line, " \t");
    if (*rest) *rest++ = 0;
    rest += strspn(rest, " \t");
    if (strcmp(line, "title") == 0)
        return snprintf(p->t->title, sizeof p->t->title, "%s", rest), SR_OK;
    if (strcmp(line, "runs") == 0) return read_runs(p, rest, why);
    if (strcmp(line, "size") == 0) return read_size(p, rest, why);
    if (strcmp(line, "question") == 0) return read_question(p, rest, why);
    if (strcmp(line, "site") == 0)
        return snprintf(p->t->site, sizeof p->t->site, "%s", rest), SR_OK;
    if (strcmp(line, "stat") == 0)
        return snprintf(p->t->stat, sizeof p->t->stat, "%s", rest), SR_OK;
    if (strcmp(line, "metric") == 0)
        return snprintf(p->t->metric, sizeof p->t->metric, "%s", rest), SR_OK;
    if (strcmp(line, "step") == 0)
        return snprintf(p->t->step, sizeof p->t->step, "%s", rest), SR_OK;
    if (strcmp(line, "samples") == 0)
        return snprintf(p->t->samples, sizeof p->t->samples, "%s", rest), SR_OK;
    if (strcmp(line, "table") == 0) return read_table(p, rest, false, why);
    if (strcmp(line, "table?") == 0) return read_table(p, rest, true, why);
    if (strcmp(line, "curves") == 0) return read_curves(p, rest, why);
    if (strcmp(line, "published") == 0) return read_published(p, rest, why);
    if (strcmp(line, "choice") == 0) return read_choice(p, rest, why);
    if (strcmp(line, "word") == 0) return read_word(p, rest, why);
    if (strcmp(line, "tasks") == 0)
        return (p->t->one_task = strcmp(rest, "one") == 0)
                   ? SR_OK
                   : wrong(p, why, "tasks are one, not", rest);
    if (strcmp(line, "lines") == 0)
        return (p->t->lines_of_runs = strcmp(rest, "runs") == 0)
                   ? SR_OK
                   : wrong(p, why, "lines are runs, not", rest);
    if (strcmp(line, "controls") == 0)
        return plot_controls_read(p->t, rest) ? SR_OK : wrong(p, why, "no such control in", rest);
    return wrong(p, why, "unknown word after `#:`:", line);
}

/* -- a whole template ------------------------------------------------------------------------ */

static sr_status read_text(const char *path, char **text, sr_failure *why) {
    size_t size = 0;
    sr_status status = install_files_check_file(path, why);
    if (status != SR_OK) return status;
    status = file_kind_check_path(path, 0, "a template of statplot", why);
    if (status != SR_OK) return status;
    FILE *in = fopen(path, "r");
    if (!in) return sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
    *text = NULL;
    errno = 0;
    const ssize_t length = getdelim(text, &size, 0, in);
    const int reason = errno;
    fclose(in);
    if (length >= 0) return SR_OK;
    free(*text);
    *text = NULL;
    return sr_fail(why, reason ? SR_IO : SR_FORMAT, "%s: %s", path,
                   reason ? strerror(reason) : "is empty");
}

static void set_name(plot_template *t) {
    const char *slash = strrchr(t->path, '/');
    snprintf(t->name, sizeof t->name, "%s", slash ? slash + 1 : t->path);
    if (is_template(t->name)) t->name[strlen(t->name) - 3] = 0;
}

sr_status plot_template_read(const char *path, plot_template *t, sr_failure *why) {
    *t = (plot_template){.question = PLOT_QUESTIONS - 1,
                         .least_runs = 1,
                         .width = 3.25,
                         .height = 2.3,
                         .steps = "all"};
    snprintf(t->path, sizeof t->path, "%s", path);
    set_name(t);
    sr_status status = read_text(path, &t->text, why);
    template_line p = {t, 0};
    char *next = t->text;
    while (next && status == SR_OK) {
        char *line = next;
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        p.line++;
        if (strncmp(line, "#:", 2) == 0)
            status = read_line(&p, line + 2 + strspn(line + 2, " \t"), why);
    }
    if (status == SR_OK && (!t->title[0] || !t->tables))
        status = sr_fail(why, SR_FORMAT, "%s: no `#: title` or no `#: table` line", path);
    if (status != SR_OK) plot_template_free(t);
    return status;
}

static sr_status choose(plot_template *t, const char *option, const char *given, char *value,
                        size_t size, sr_failure *why) {
    if (!given[0]) return SR_OK;
    if (!value[0]) return sr_fail(why, SR_USAGE, "figure %s takes no %s", t->name, option);
    snprintf(value, size, "%s", given);
    return SR_OK;
}

/* Any name that a run may declare: gnuplot sees such a column by its number. */
static bool is_column(const char *text, bool open) {
    return open ? text[0] && strlen(text) < PLOT_NAME && !strchr(text, ',') : is_name(text);
}

static bool is_open(const char *column) {
    return strcmp(column, "{stat}") == 0 || strcmp(column, "{metric}") == 0;
}

/* The user's word in the place of a column. */
static sr_status choose_column(const plot_template *t, plot_name column, sr_failure *why) {
    char filled[2 * PLOT_PATH];
    const char *what = strcmp(column, "{stat}") == 0     ? "statistic"
                       : strcmp(column, "{metric}") == 0 ? "metric"
                                                         : "column";
    if (!strchr(column, '{')) return SR_OK;
    if (!plot_placeholders_fill(t, column, filled, sizeof filled) ||
        !is_column(filled, is_open(column)))
        return sr_fail(why, SR_USAGE, "figure %s takes one %s, not '%.80s'", t->name, what, filled);
    snprintf(column, PLOT_NAME, "%.63s", filled);
    return SR_OK;
}

/* The papers' metrics belong to the validation or the test set; without a named one, to no task:
 * perplexity. */
static void name_metrics(plot_template *t) {
    const char *metric = strncmp(t->metric, "valid_", 6) == 0 ? t->metric + 6 : t->metric;
    if (strcmp(metric, "leading") == 0) metric = "ppl";
    for (int i = 0; i < t->prints; i++)
        if (strcmp(t->print[i], "{metric}") == 0) snprintf(t->print[i], PLOT_NAME, "%.63s", metric);
}

static sr_status choose_published(plot_template *t, const plot_choice *c, sr_failure *why) {
    if (!c->published && !c->published_tables[0]) return SR_OK;
    if (!t->prints) return sr_fail(why, SR_USAGE, "figure %s takes no --published", t->name);
    name_metrics(t);
    for (int i = 0; i < t->prints; i++) {
        sr_status status = choose_column(t, t->print[i], why);
        if (status != SR_OK) return status;
    }
    return choose(t, "--published-table", c->published_tables, t->published, sizeof t->published,
                  why);
}

sr_status plot_template_choose(plot_template *t, const plot_choice *c, sr_failure *why) {
    sr_status status = choose(t, "--site", c->site, t->site, sizeof t->site, why);
    if (status == SR_OK) status = choose(t, "--stat", c->stat, t->stat, sizeof t->stat, why);
    if (status == SR_OK)
        status = choose(t, "--metric", c->metric, t->metric, sizeof t->metric, why);
    if (status == SR_OK) status = choose(t, "--step", c->step, t->step, sizeof t->step, why);
    if (status == SR_OK) status = plot_placeholders_choose(t, c, why);
    if (status == SR_OK) status = choose_published(t, c, why);
    if (status == SR_OK) status = plot_placeholders_fill_commands(t, why);
    for (int i = 0; i < t->tables && status == SR_OK; i++) {
        plot_table *table = &t->table[i];
        status = choose_column(t, table->x, why);
        for (int k = 0; k < table->values && status == SR_OK; k++) {
            table->open[k] = is_open(table->y[k]);
            status = choose_column(t, table->y[k], why);
        }
    }
    return status;
}

void plot_template_free(plot_template *t) {
    for (int i = 0; i < t->fills; i++) free(t->filled[i]);
    free(t->text);
    t->text = NULL;
    t->fills = 0;
}

sr_status plot_template_find(const char *figure, plot_template *t, sr_failure *why) {
    char path[PLOT_PATH];
    sr_status status = find_path(figure, path, why);
    return status == SR_OK ? plot_template_read(path, t, why) : status;
}

/* -- list ------------------------------------------------------------------------------------ */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int only_templates(const struct dirent *entry) {
    return is_template(entry->d_name);
}

static sr_status visit_one(const char *directory, const char *file,
                           sr_status (*visit)(plot_template *t, void *self, sr_failure *why),
                           void *self, sr_failure *why) {
    char path[2 * PLOT_PATH];
    plot_template t;
    snprintf(path, sizeof path, "%s/%s", directory, file);
    sr_status status = plot_template_read(path, &t, why);
    if (status != SR_OK) return status;
    status = visit(&t, self, why);
    plot_template_free(&t);
    return status;
}

/* Visits the first directory that has templates: figures are read from it, too. */
sr_status plot_template_each(sr_status (*visit)(plot_template *t, void *self, sr_failure *why),
                             void *self, sr_failure *why) {
    char directory[PLOT_PATH];
    for (int i = 0; plot_directory(i, directory); i++) {
        struct dirent **entry = NULL;
        const int count = scandir(directory, &entry, only_templates, by_name);
        sr_status status = SR_OK;
        if (count < 0 && errno != ENOENT && errno != ENOTDIR)
            return sr_fail(why, SR_IO, "%s: %s", directory, strerror(errno));
        for (int k = 0; k < count; k++) {
            if (status == SR_OK) status = visit_one(directory, entry[k]->d_name, visit, self, why);
            free(entry[k]);
        }
        free(entry);
        if (count > 0) return status;
    }
    sr_fail(why, SR_IO, "no figure templates found");
    sr_hint(why, "set STATREC_PLOTS to the directory plots/ of statrec");
    return SR_IO;
}

void plot_template_takes(const plot_template *t, char *text, size_t size) {
    size_t used = (size_t)snprintf(text, size, "%s", t->takes);
    for (int i = 0; i < t->words && used < size; i++)
        if (t->word[i].choice == i)
            used += (size_t)snprintf(text + used, size - used, " [--%s=%s]", t->word[i].name,
                                     t->word[i].texts);
}

static sr_status list_one(plot_template *t, void *self, sr_failure *why) {
    char takes[2 * PLOT_PATH];
    (void)why;
    plot_template_takes(t, takes, sizeof takes);
    fprintf(self, "%s\t%s\t%s\n", t->name, takes, t->title);
    return SR_OK;
}

sr_status plot_template_list(FILE *out, sr_failure *why) {
    return plot_template_each(list_one, out, why);
}
