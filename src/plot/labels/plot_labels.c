/* Legend labels: the differences between the runs in model, norm, data and seed. If these do not
 * suffice, also options that differ, as in "bn, max-tokens 256". */
#include <stdlib.h>
#include <string.h>

#include "base/options/norm_value.h"
#include "base/options/options.h"
#include "plot/labels/plot_labels.h"
#include "plot/labels/plot_runs.h"

static void append(char *text, size_t size, const char *part) {
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used && part[0] ? ", " : "", part);
}

static bool differs(const plot_run *p, int runs, int part) {
    for (int i = 1; i < runs; i++)
        if (strcmp(p[i].text[part], p[0].text[part]) != 0) return true;
    return false;
}

static bool stands_alone(const plot_labels *l, int run) {
    for (int i = 0; i < l->runs; i++)
        if (i != run && strcmp(l->label[i], l->label[run]) == 0) return false;
    return true;
}

static bool distinct(const plot_labels *l) {
    int run = 0;
    while (run < l->runs && stands_alone(l, run)) run++;
    return run == l->runs;
}

static void label_by_parts(plot_labels *l, const plot_run *p) {
    for (int part = 0; part < RUN_PARTS; part++) {
        const bool seed = part == RUN_SEED, other = differs(p, l->runs, part), alike = !distinct(l);
        for (int i = 0; i < l->runs; i++) {
            append(l->full[i], sizeof l->full[i], p[i].text[part]);
            if (seed ? other && alike : other || l->runs == 1)
                append(l->label[i], sizeof l->label[i], p[i].text[part]);
        }
        if (!seed && !other) append(l->shared, sizeof l->shared, p[0].text[part]);
    }
}

/* -- options --------------------------------------------------------------------------------- */

/* Options that affect recording or printing, not training; and parts from above. */
bool plot_option_tells_nothing(const char *line) {
    static const char *const key[] = {
        "output",        "force",   "record",    "observe", "vectors-every", "size-limit",
        "spectra-every", "final-",  "svd-every", "flush-",  "on-write",      "quiet",
        "profile",       "threads", "validate-", "model",   "activations-",  "parameter-norms-",
        "data =",        "seed",    "config",    "pairs",   "keep =",        "sync =",
        "rank-timeout",  "prefetch"};
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++)
        if (strncmp(line, key[i], strlen(key[i])) == 0) return true;
    return false;
}

static bool same_option(const plot_run *a, const plot_run *b, const option_line *l) {
    option_line one, other;
    const bool here = options_find_line(a->config, l->key, l->key_length, &one);
    if (options_find_line(b->config, l->key, l->key_length, &other) != here)
        return options_left_out(here ? b->config : a->config); /* it had no effect there */
    return !here || (one.value_length == other.value_length &&
                     strncmp(one.value, other.value, (size_t)one.value_length) == 0);
}

/* "rbn-lambda-mean" and "rbn"; "pn-alpha-bkw" and "pn-released": the first word is the same. */
static bool is_of(const char *line, const char *norm) {
    const size_t first = strcspn(line, "- ");
    return line[first] == '-' && first == strcspn(norm, "-+ ") && strncmp(line, norm, first) == 0;
}

/* Options of the normalization itself: labels show all that differ, and others while labels
 * agree. */
static bool of_norm(const plot_run *p, const char *line) {
    bool found = strncmp(line, "norm-", 5) == 0 || strncmp(line, "norm =", 6) == 0;
    for (const char *at = p->norms; *at && !found; at += strcspn(at, " ") + 1)
        found = is_of(line, at);
    return found;
}

/* Bytes of "rbn-lambda-mean" that a label with "rbn" need not repeat; all of norm-at. */
static int known_part(const char *line, const char *norm) {
    if (strncmp(line, "norm-at", 7) == 0) return (int)strcspn(line, " ");
    return is_of(line, norm) ? (int)strcspn(line, "-") + 1 : 0;
}

/* The meaning of 0 in options that 0 leaves open. */
static const char *word_of_zero(const option_line *l) {
    static const char *const word[][2] = {
        {"embed-dim", "preset"},
        {"ffn-dim", "preset"},
        {"heads", "preset"},
        {"encoder-layers", "preset"},
        {"decoder-layers", "preset"},
        {"vocab-size", "all"},
        {"limit", "none"},
        {"max-steps", "none"},
        {"clip-norm", "off"},
    };
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (strlen(word[i][0]) == (size_t)l->key_length &&
            strncmp(word[i][0], l->key, (size_t)l->key_length) == 0)
            return word[i][1];
    return NULL;
}

/* "lambda 1 nu 1" of --norm 'rbn(lambda=1;nu=1)'; the label has the method already. */
static void append_params(char *label, size_t size, const option_line *norm) {
    char part[RUN_PART] = "";
    norm_value v;
    option_line p;
    if (!norm_value_split(norm->value, norm->value_length, &v)) return;
    for (const char *at = NULL; norm_value_next(&v, &at, &p) && p.value;) {
        const size_t used = strlen(part);
        snprintf(part + used, sizeof part - used, "%s%.*s %.*s", used ? " " : "", p.key_length,
                 p.key, p.value_length, p.value);
    }
    if (part[0]) append(label, size, part);
}

/* "max-tokens 256"; of a path its end; nothing for an option that was left open. */
static void append_option(char *label, size_t size, const plot_run *p, const option_line *l) {
    char part[RUN_PART];
    option_line own;
    if (!options_find_line(p->config, l->key, l->key_length, &own)) return;
    if (l->key_length == 4 && !strncmp(l->key, "norm", 4)) {
        append_params(label, size, &own);
        return;
    }
    const char *value = own.value;
    int length = own.value_length;
    const int known = known_part(l->key, p->text[RUN_NORM]), key = l->key_length - known;
    for (int i = 0; i + 1 < length && strncmp(l->key, "norm-at", 7) != 0; i++)
        if (value[i] == '/') value += i + 1, length -= i + 1, i = -1;
    if (!length || strncmp(value, "nan", 3) == 0) return;
    if (length == 1 && value[0] == '0' && word_of_zero(l)) {
        value = word_of_zero(l);
        length = (int)strlen(value);
    }
    snprintf(part, sizeof part, "%.*s%s%.*s", key, l->key + known, key > 0 ? " " : "", length,
             value);
    append(label, size, part);
}

static bool same_parts(const plot_run *a, const plot_run *b) {
    for (int i = 0; i < RUN_PARTS; i++)
        if (strcmp(a->text[i], b->text[i]) != 0) return false;
    return true;
}

/* One option among the runs that agree with run `of` in model, norm, data and seed. */
static void try_option(plot_labels *l, const plot_run *p, int of, const option_line *line) {
    bool differs = false, agree = false;
    for (int i = 0; i < l->runs && !differs; i++)
        differs = same_parts(&p[i], &p[of]) && !same_option(&p[i], &p[of], line);
    for (int i = 0; differs && i < l->runs; i++)
        for (int k = 0; k < i && same_parts(&p[i], &p[of]); k++)
            agree = agree || (same_parts(&p[k], &p[of]) && strcmp(l->label[i], l->label[k]) == 0);
    for (int i = 0; differs && (agree || of_norm(&p[of], line->key)) && i < l->runs; i++)
        if (same_parts(&p[i], &p[of])) append_option(l->label[i], sizeof l->label[i], &p[i], line);
}

/* Once for each set of runs that agree in their parts. */
static void label_by_options(plot_labels *l, const plot_run *p) {
    for (int i = 0; i < l->runs; i++) {
        bool done = false;
        for (int k = 0; k < i; k++) done = done || same_parts(&p[k], &p[i]);
        option_line line;
        for (const char *at = p[i].config; !done && options_next_line(&at, &line);)
            if (!plot_option_tells_nothing(line.key)) try_option(l, p, i, &line);
    }
}

/* The last `names` names of a path; all of it if it has fewer. */
static const char *path_end(const char *path, int names) {
    const char *at = path + strlen(path);
    for (; at > path; at--)
        if (at[-1] == '/' && --names <= 0) break;
    return at;
}

/* The end of a path that no other run's has: "a.h5", or with the folder that differs. */
static const char *own_path(const plot_run *p, int runs, int run) {
    const char *path = p[run].path, *end = path_end(path, 1);
    for (int names = 2, i = 0; i < runs; i++) {
        if (strcmp(p[i].path, path) == 0) continue;
        while (end > path && strcmp(path_end(p[i].path, names - 1), end) == 0)
            end = path_end(path, names++);
    }
    return end;
}

/* Runs that agree in all of that, or lack some of it, are labelled by their file names. */
static sr_status label_by_path(plot_labels *l, const plot_run *p, sr_failure *why) {
    bool *alone = calloc((unsigned)l->runs, sizeof *alone);
    if (!alone) return sr_fail(why, SR_MEMORY, "out of memory");
    for (int i = 0; i < l->runs; i++) alone[i] = stands_alone(l, i);
    for (int i = 0; i < l->runs; i++) {
        if (!alone[i] || !l->label[i][0])
            append(l->label[i], sizeof l->label[i], own_path(p, l->runs, i));
    }
    free(alone);
    return SR_OK;
}

/* Reads up to a comma and sets *at after it (NULL at the end); `\,` is a comma and `\\` a
   backslash. */
static void take_label(const char **at, char *label, size_t size) {
    size_t used = 0;
    const char *c = *at;
    for (; *c && *c != ','; c++) {
        if (*c == '\\' && (c[1] == ',' || c[1] == '\\')) c++;
        if (used + 1 < size) label[used++] = *c;
    }
    label[used] = 0;
    *at = *c ? c + 1 : NULL;
}

static sr_status label_as_given(plot_labels *l, const char *given, sr_failure *why) {
    int count = 0;
    for (const char *at = given; at; count++) {
        char rest[sizeof *l->label];
        take_label(&at, count < l->runs ? l->label[count] : rest, sizeof rest);
    }
    if (count == l->runs) return SR_OK;
    return sr_fail(why, SR_USAGE, "--labels: %d labels for %d runs", count, l->runs);
}

sr_status plot_labels_make(plot_labels *l, const plot_run *run, int count, const char *given,
                           sr_failure *why) {
    *l = (plot_labels){.runs = count,
                       .label = calloc((size_t)count + 1, sizeof *l->label),
                       .full = calloc((size_t)count + 1, sizeof *l->full)};
    sr_status status = l->label && l->full ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory");
    if (status == SR_OK) label_by_parts(l, run);
    if (status == SR_OK && given[0]) {
        status = label_as_given(l, given, why);
    } else if (status == SR_OK) {
        label_by_options(l, run);
        status = label_by_path(l, run, why);
    }
    if (status != SR_OK) plot_labels_free(l);
    return status;
}

void plot_labels_free(plot_labels *l) {
    free(l->label);
    free(l->full);
    *l = (plot_labels){0};
}
