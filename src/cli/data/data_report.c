/* data_report.c -- prints a data set for statrec data; see data_report.h. */
#include "cli/data/data_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tsv.h"
#include "cli/data/data_command.h"
#include "data/data_counts.h"
#include "train/loaded_model.h"

enum { LABEL_WIDTH = 14, OTHERS_SHOWN = 8 };

static const char *const titles[] = {
    [SPLIT_TRAIN] = "training", [SPLIT_VALID] = "validation", [SPLIT_TEST] = "test"};

static void print_label(const char *label) {
    printf("%-*s", LABEL_WIDTH, label);
}

static void print_text(const char *label, const char *text) {
    print_label(label);
    tsv_escape(stdout, text);
    putchar('\n');
}

static double percent(int64_t part, int64_t all) {
    return all ? 100 * (double)part / (double)all : 0;
}

/* -- counts */

static void print_words(const data_counts *c, bool pairs) {
    static const char *const side[] = {"source words", "target words"};
    for (int i = 0; i < 1 + pairs; i++)
        if (c->words[i])
            printf(", %lld %s, longest %lld", (long long)c->words[i], pairs ? side[i] : "words",
                   (long long)c->longest[i]);
    const data_side last = pairs ? SIDE_TARGET : SIDE_SOURCE;
    if (c->words[0]) printf(", %.2f %% <unk>", percent(c->unknown[last], c->words[last]));
    if (pairs && c->unknown[SIDE_SOURCE])
        printf(", %.2f %% of the source words",
               percent(c->unknown[SIDE_SOURCE], c->words[SIDE_SOURCE]));
}

static void print_counts(const data_counts *c, data_split split, bool pairs) {
    print_label(titles[split]);
    if (c->records == 0) {
        puts("none");
        return;
    }
    printf("%lld %s", (long long)c->records, c->unit);
    print_words(c, pairs);
    if (c->classes)
        printf(", %lld class%s of %lld to %lld", (long long)c->classes, c->classes == 1 ? "" : "es",
               (long long)c->fewest, (long long)c->most);
    putchar('\n');
}

/* -- irregularities */

/* Lines so far. */
typedef struct oddities {
    int count;
} oddities;

static void odd(oddities *o, const char *text) {
    print_text("odd", text);
    o->count++;
}

/* "training pairs that occur again: 2 of 10 (20.0 %)" */
static void odd_count(oddities *o, data_split split, const char *what, int64_t count, int64_t all) {
    char text[256];
    if (!count) return;
    snprintf(text, sizeof text, "%s %s: %lld of %lld (%.1f %%)", titles[split], what,
             (long long)count, (long long)all, percent(count, all));
    odd(o, text);
}

static void print_odd_counts(oddities *o, const data_counts *c, data_split split) {
    const bool pairs = strcmp(c->unit, "pairs") == 0, lines = strcmp(c->unit, "lines") == 0;
    const int64_t all = c->records, read = lines ? all : all + c->empty + c->too_long;
    char what[128];
    snprintf(what, sizeof what, "%s that occur again", c->unit);
    odd_count(o, split, what, c->repeated, all);
    snprintf(what, sizeof what, "%s that are in the training data, too", c->unit);
    odd_count(o, split, what, c->common, all);
    snprintf(what, sizeof what, "%s without a word%s%s", c->unit, pairs ? " on a side" : "",
             lines ? "" : ", left out");
    odd_count(o, split, what, c->empty, read);
    snprintf(what, sizeof what, "%s that lose their end (--max-length, --pad-to)", c->unit);
    odd_count(o, split, what, c->cut, all);
    snprintf(what, sizeof what, "%s with more than %d times the words on one side", c->unit,
             DATA_RATIO);
    odd_count(o, split, what, c->uneven, all);
}

/* The warnings of training; fractions of repeated records are in the counts. */
static void print_warnings(oddities *o, const char *warnings) {
    for (const char *at = warnings; *at; at += *at == '\n') {
        const int length = (int)strcspn(at, "\n");
        char line[SR_FAILURE_TEXT];
        snprintf(line, sizeof line, "%.*s", length, at);
        if (!strstr(line, " are in the training text, too")) odd(o, line);
        at += length;
    }
}

static sr_status print_vectors(oddities *o, const dataset *d, const char *path, sr_failure *why) {
    const vocab *words = data_dictionary(d, SIDE_SOURCE);
    vector_matches m;
    if (!*path || !words) return SR_OK;
    const sr_status status = word_vectors_read(path, words, NULL, &m, why);
    if (status != SR_OK) return status;
    print_label("vectors");
    printf("%lld of %lld words (%.1f %%)\n", (long long)m.found, (long long)m.words,
           percent(m.found, m.words));
    if (*m.line_ends) odd(o, m.line_ends);
    if (m.found == m.words) return SR_OK;
    char text[SR_FAILURE_TEXT];
    vector_matches_warning(&m, words, path, text, sizeof text);
    odd(o, text);
    return SR_OK;
}

static sr_status print_set(dataset *d, const data_finding *set, const char *vectors,
                           sr_failure *why) {
    data_counts c[SPLIT_TEST + 1];
    oddities o = {0};
    sr_status status = SR_OK;
    const bool pairs = data_get_shape(d)->task == TASK_PAIRS;
    for (int i = 0; status == SR_OK && i <= SPLIT_TEST; i++)
        status = data_count(d, (data_split)i, &c[i], why);
    if (status != SR_OK) return status;
    for (int i = 0; i <= SPLIT_TEST; i++) print_counts(&c[i], (data_split)i, pairs);
    print_text("read", data_describe(d));
    if (*set->also) print_text("languages", set->also);
    for (int i = 0; i <= SPLIT_TEST; i++) print_odd_counts(&o, &c[i], (data_split)i);
    print_warnings(&o, data_warnings(d));
    status = print_vectors(&o, d, vectors, why);
    if (status == SR_OK && o.count == 0) print_text("odd", "nothing");
    return status;
}

/* -- a set */

static bool is_running(const char *name) {
    for (int i = 0; data_name(i); i++)
        if (!strcmp(data_name(i), name)) return data_task(i) == TASK_LM;
    return false;
}

/* Opens it as training would, but reads no batch. */
static dataset *open_set(data_command *c, train_text *text, sr_failure *why) {
    c->config.data.prefetch = false, c->config.data.survey = true;
    c->config.data.seed = (uint64_t)c->config.seed;
    dataset *d = train_data_open(&c->config, text, why);
    const bool running = is_running(c->config.data.name);
    if (!d && why->status == SR_USAGE && !strcmp(c->config.data.name, "polarity")) {
        sr_failure again = {0};
        if (data_command_fold(c, &again) == SR_OK) d = train_data_open(&c->config, text, &again);
        if (d) *why = (sr_failure){0};
    }
    if (d || !running || why->status != SR_FORMAT) return d;
    for (int window = 16; !d && window >= 1; window /= 16) {
        sr_failure again = {0};
        if (data_command_shrink(c, window, &again) == SR_OK)
            d = train_data_open(&c->config, text, &again);
    }
    if (d) *why = (sr_failure){0};
    return d;
}

sr_status data_report_print(const folder_files *files, const data_finding *set, const char *vectors,
                            sr_failure *why) {
    data_command *c = calloc(1, sizeof *c);
    train_text text = {0};
    if (!c) return sr_fail(why, SR_MEMORY, "out of memory for a command");
    sr_status status = data_command_make(c, set, files->path, why);
    dataset *d = status == SR_OK ? open_set(c, &text, why) : NULL;
    if (status == SR_OK && !d) status = why->status;
    char *command = d ? data_command_text(c) : NULL;
    if (d && !command) status = sr_fail(why, SR_MEMORY, "out of memory for a command");
    if (status == SR_OK) {
        print_text("folder", files->path);
        print_text("data", set->data);
        print_label("train");
        tsv_plain(stdout, command, strlen(command)); /* to be typed: no escapes */
        putchar('\n');
        status = print_set(d, set, vectors, why);
    }
    free(command);
    data_close(d);
    free(c);
    return status;
}

/* -- other files */

static const char *look_text(const folder_file *file) {
    static const char *const kinds[] = {
        [LOOKS_NOTHING] = "",
        [LOOKS_TEXT] = "text",
        [LOOKS_LABELLED] = "lines with labels",
        [LOOKS_CSV] = "columns between commas",
        [LOOKS_TAGGED] = "words with tags",
        [LOOKS_TREES] = "dependency trees",
        [LOOKS_TABBED] = "columns between tabs",
        [LOOKS_VECTORS] = "word vectors",
        [LOOKS_MERGES] = "merges of byte-pair encoding",
    };
    return file->folder ? "a folder" : kinds[file->looks.kind];
}

static void print_other(const folder_file *file) {
    char text[FOLDER_NAME + SR_FAILURE_TEXT];
    const char *look = look_text(file);
    if (*file->why.text)
        snprintf(text, sizeof text, "%s", file->why.text);
    else
        snprintf(text, sizeof text, "%s%s%s", file->name, *look ? ": " : "", look);
    print_text("other", text);
}

void data_report_others(const data_found *found) {
    const folder_files *f = &found->files;
    int shown = 0, others = 0;
    for (int i = 0; i < f->count; i++) {
        if (f->file[i].used) continue;
        if (others++ < OTHERS_SHOWN) print_other(&f->file[i]), shown++;
    }
    if (others > shown) {
        print_label("other");
        printf("%d more\n", others - shown);
    }
    if (found->more) {
        print_label("other");
        printf("more than %d data sets; give one of the training files\n", FIND_MOST);
    }
    if (f->links) {
        print_label("other");
        printf("%d link%s out of the folder, not followed\n", f->links, f->links == 1 ? "" : "s");
    }
    if (f->others) {
        print_label("other");
        printf("%d left out: no regular file, or an odd name\n", f->others);
    }
    if (f->more) {
        print_label("other");
        printf("the folder has more than %d files; the others were not looked at\n",
               FOLDER_FILES_MOST);
    }
}

void data_report_nothing(const tool *t, const data_found *found) {
    sr_failure why = {0};
    if (found->files.count == 1 && *found->files.file->why.text) {
        tool_report(t, &found->files.file->why);
        return;
    }
    data_report_others(found);
    sr_fail(&why, SR_FORMAT, "%s: no data set that a reader knows", found->files.path);
    for (int i = 0; i < found->files.count; i++)
        if (*found->files.file[i].why.hint) sr_hint(&why, "%s", found->files.file[i].why.hint);
    sr_hint(&why, "`statrec list data` names the formats; docs/data.md has their files");
    tool_report(t, &why);
}
